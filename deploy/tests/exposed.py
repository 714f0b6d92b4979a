#!/usr/bin/env python3
"""Holds what a process says on /metrics, which comes by standard input, against docs/METRICS.md.

    curl --silent localhost:9600/metrics | deploy/tests/exposed.py

What is not there is no fault unless `--whole` is given: of a process with all services, after a harvest. A publisher is
none of these services.
"""

import re
import sys

import contract

SHAPES = {
    "origin_group": r"[a-z0-9-]{1,40}",
    "group": r"[A-Za-z0-9._-]{1,63}",
    "source": r"[A-Za-z0-9._-]{1,200}",
    "route": r"/[\w/{}.-]*|unmatched",
    "version": r"[\w.+-]+",
    "le": r"[\d.e+-]+|\+Inf",
}
# The most rows of single Sources, and one of all others.
MOST_SOURCES = 51


def samples(text):
    """Name and labels of each line that is no comment."""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, braces = re.match(r"([\w:]+)(?:\{(.*)\})? ", line).groups()
            yield name, dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', braces or ""))


def wrong(text, whole=False):
    """The series of a process that the page lacks and, if all are expected, those that the process lacks."""
    known = contract.series()
    kinds = {name: kind for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M)}
    told, apart = {}, set()
    for row in re.findall(r"^\| `(?:thresher|process)_.*$", contract.PAGE, re.M):
        name, kind, _, _, of, _ = contract.cells(row)
        (name,) = contract.quoted(name)
        if of == "publisher":
            apart.add(name.removesuffix("_total"))
        told[name.removesuffix({"counter": "_total", "info": "_info"}.get(kind, ""))] = kind
    for name, kind in kinds.items():
        if told.get(name) != kind:
            yield f"{name} is a {kind}, and on the page {told.get(name, 'it is not')}"
    if whole:
        yield from (f"{name} is on the page, and was not said" for name in sorted(set(told) - set(kinds) - apart))
    sources = set()
    for name, labels in samples(text):
        if name not in known:
            yield f"{name} is not on the page"
            continue
        if set(labels) != known[name][1]:
            yield f"{name} has labels {sorted(labels)}, and on the page {sorted(known[name][1])}"
            continue
        for label, value in labels.items():
            allowed = contract.values(name, label)
            if label == "source":
                sources.add(value)
            if value not in allowed if allowed is not None else not re.fullmatch(SHAPES[label], value):
                yield f"{label} of {name} is {value!r}, which the page does not tell of"
    if len(sources) > MOST_SOURCES:
        yield f"{len(sources)} Sources have series of their own"


if __name__ == "__main__":
    found = list(wrong(sys.stdin.read(), whole="--whole" in sys.argv))
    print("\n".join(found))
    sys.exit(1 if found else 0)
