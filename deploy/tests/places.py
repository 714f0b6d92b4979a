"""Paths, and content that several tests read from them."""

import re
import sys
from pathlib import Path

DEPLOY = Path(__file__).resolve().parents[1]
ROOT = DEPLOY.parent
KUBERNETES = DEPLOY / "kubernetes"
OVERLAYS = sorted(path.parent for path in KUBERNETES.glob("overlays/*/kustomization.yaml"))

# The builder is a program of its own folder, which people run without these tests.
sys.path.insert(0, str(KUBERNETES))

# `serve` is all of them in one process.
APART = {"serve"}


def services():
    """The services that a fleet on Kubernetes has: each crate of services/ with a configuration in deploy/config, but for those apart."""
    configured = {path.stem for path in (DEPLOY / "config").glob("*.yaml")} - APART
    return sorted(name for name in configured if (ROOT / "services" / name / "src/main.rs").is_file())


def read(path):
    return (ROOT / path).read_text()


def registered(area):
    """The names of the register's rows of an area, by their variants."""
    rows = re.findall(rf'(\w+) = {area} "([^"]+)"', read("libs/model/src/persisted.rs"))
    return dict(rows)


def stage_names():
    """The names of the streams' stages, from the code that makes them."""
    used = re.findall(r"Self::\w+ => Persisted::(\w+)", read("libs/bus/src/jetstream/names.rs"))
    streams = registered("Stream")
    return {streams[name] for name in used}
