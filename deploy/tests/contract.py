"""docs/METRICS.md as the contract of rules and dashboards: each series, its kind, its labels, and their values."""

import fnmatch
import re

from places import read

PAGE = read("docs/METRICS.md")
# Prometheus makes them of what it scrapes.
TARGET = {"job", "instance"}
# Labels whose values are bounded, but not written down one by one.
OPEN = {"group", "origin_group", "source", "route", "version"}


def cells(row):
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def quoted(text):
    return re.findall(r"`([^`]+)`", text)


def series():
    """Each series that can be queried, with its kind and its labels."""
    found = {}
    for row in re.findall(r"^\| `(?:thresher|process)_.*$", PAGE, re.M):
        name, kind, labels, unit, of, says = cells(row)
        assert unit and of and says, row
        (name,) = quoted(name)
        labels = set(quoted(labels))
        if kind == "histogram":
            found[f"{name}_bucket"] = ("counter", labels | {"le"})
            found[f"{name}_count"] = found[f"{name}_sum"] = ("counter", labels)
        else:
            found[name] = (kind, labels)
    return found


def named(title):
    """The names of a set on the page: reasons, quirks."""
    return quoted(re.search(rf"^\*\*{title}\*\*[^:]*: (.*)\.$", PAGE, re.M)[1])


def label_rows():
    part = PAGE.split("\n## Labels\n")[1].split("\n## ")[0]
    rows = [cells(row) for row in re.findall(r"^\| `.*$", part, re.M)]
    return [(quoted(label)[0], quoted(of)[0], values) for label, of, values in rows]


def values(name, label):
    """The values that a label of a series may have, or None where they are not written down."""
    if label in OPEN or label == "le":
        return None
    (told,) = [told for row, of, told in label_rows() if row == label and fnmatch.fnmatchcase(name, of)]
    allowed = set(quoted(told))
    if "*reason*" in told:
        allowed |= set(named("Reasons"))
    if "*quirk*" in told:
        allowed |= set(named("Quirks"))
    return allowed


def wrong(expression, recorded):
    """The errors of an expression, by the page and by the recording rules."""
    known = series()
    seen = set()
    without_strings = re.sub(r'"[^"]*"', lambda text: text[0].replace("thresher", "text"), expression)
    for name, braces in re.findall(r"\b((?:thresher|process_resident)[\w:]*)(\{[^}]*\})?", without_strings):
        bases = base(name, recorded)
        if not bases:
            yield f"{name} is not on the page of metrics"
            continue
        labels = {label for one in bases for label in known[one][1]}
        seen |= labels
        for label, operator, value in re.findall(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"', braces):
            if label not in labels | TARGET:
                yield f"{name} has no label {label}"
            elif label not in TARGET:
                having = [values(one, label) for one in bases if label in known[one][1]]
                for one in value.split("|") if "~" in operator else [value]:
                    if "$" not in one and all(allowed is not None and one not in allowed for allowed in having):
                        yield f"{label} of {name} is never {one!r}"
    if not seen and not re.search(r"\b(?:thresher|process_resident)", expression):
        yield f"it asks for nothing: {expression}"
    for grouped in re.findall(r"\b(?:by|without|on)\s*\(([^)]*)\)", expression):
        for label in filter(None, re.split(r"\s*,\s*", grouped.strip())):
            if label not in seen | TARGET:
                yield f"nothing that is asked for has a label {label}: {expression}"


def base(name, recorded):
    """The series of the page that a name stands for: itself, or those that are recorded under it."""
    known = series()
    if name in known:
        return {name}
    found = set()
    for inner in re.findall(r"\b(?:thresher|process_resident)[\w:]*", recorded.get(name, "")):
        found |= base(inner, recorded)
    return found
