"""promtool and prometheus: those that are named or installed, or else those of Debian's package, unpacked and not installed.

    deploy/tests/promtool.py prometheus   the path of the one that is asked for
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from places import ROOT


def find(name="promtool"):
    """The path of promtool, or of prometheus. Downloads the package, by apt's own sources and checks, where there is none."""
    named = os.environ.get(name.upper()) or shutil.which(name)
    if named:
        return named
    target = Path(os.environ.get("THRESHER_TARGET") or ROOT / "target")
    program = target / "prometheus/usr/bin" / name
    target.mkdir(parents=True, exist_ok=True)
    # Tests run as many processes: one downloads, the others wait here.
    with open(target / "prometheus.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            unpack("prometheus", target)
    return str(program)


def unpack(package, target):
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise SystemExit("there is no Prometheus: install it (Debian: apt-get install prometheus), or name its programs in PROMTOOL and PROMETHEUS")
    with tempfile.TemporaryDirectory(dir=target) as fresh:
        download = ["apt-get", "download", package]
        if subprocess.run(download, cwd=fresh, capture_output=True).returncode != 0:
            # The lists of packages may be missing or too old to name what the mirror has.
            subprocess.run(["apt-get", "update"], check=True, capture_output=True)
            subprocess.run(download, cwd=fresh, check=True, capture_output=True)
        (file,) = Path(fresh).glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", file, Path(fresh) / "whole"], check=True)
        # Only what is whole gets the name that later runs look for.
        shutil.rmtree(target / package, ignore_errors=True)
        (Path(fresh) / "whole").rename(target / package)


if __name__ == "__main__":
    print(find(*sys.argv[1:]))
