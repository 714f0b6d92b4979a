"""Figures of load-tests: which report counts, and the medians of its rows."""

import json
import re
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "load-tests/results"
SIZES = ROOT / "docs/performance/catalog-size.md"
# A harvest of fewer resources has smaller jobs, so what it costs says little about a million. A million says it itself.
# Among small Sources, those of 100 resources are told.
LARGE = [100, 100_000, 1_000_000]


def missing(what):
    """Ends the program: a figure that the tables need is not there."""
    sys.exit(f"cost.py: {what}")


def load(paths):
    """Reports, each with its path."""
    return [(path.resolve(), json.loads(path.read_text())) for path in paths]


def find(groups, case, name):
    """The path of a report of a case that has this row, the report, and the row: of the first group that has any."""
    for reports in groups:
        rows = [(path, told, row) for path, told in reports if told["case"] == case for row in told["rows"]]
        having = [one for one in rows if one[2]["name"] == name]
        if having:
            return max(having, key=lambda one: (sum(one[2]["resources"] >= of for of in LARGE), one[1]["finished_at"]))
    missing(f"no report of {case} has the row {name!r}: run the case, and keep its report in load-tests/results")


def median(row, scale, *ways):
    """The median over the rounds of the sum of these figures, for as many resources or runs as `scale` says.

    Each way is a list of figures. The first one counts that the row has any of: several ways count the same requests.
    """
    times = scale["of"] / row["resources"] if "of" in scale else scale["times"]
    rounds = [{**one.get("counted", {}), **one} for one in row["rounds"]]
    for names in ways:
        if all(set(names) & one.keys() for one in rounds):
            return times * statistics.median(sum(one.get(name, 0) for name in names) for one in rounds)
    missing(f"the row {row['name']!r} has none of {', '.join(name for names in ways for name in names)}")


def beside():
    """Bytes of a resource in the catalog, and beside it in a pack, as the page of catalog-size says."""
    text = SIZES.read_text()
    found = [re.search(r"^\| all \|.*\| ([\d.]+) \|$", text, re.M), re.search(r"has ([\d.]+) bytes beside each", text)]
    if None in found:
        missing(f"{SIZES.relative_to(ROOT)} has no row `all`, or no «has … bytes beside each» of a pack")
    return [float(one[1]) for one in found]
