#!/usr/bin/env -S python3 -B
"""What a million resources cost: dollars of an object store, and processor seconds, from reports and prices.json.

    load-tests/cost/cost.py --write               # put the tables into docs/COST.md
    load-tests/cost/cost.py --check               # fail if docs/COST.md has other tables
    load-tests/cost/cost.py [REPORT.json ...]     # print them; rows of these reports come first

Of several reports with a row, one of a million resources or more counts before others, then one of 100,000 or more,
then one of 100 or more, then the newest: the jobs of a short harvest are smaller, and cost more.
"""

import argparse
import json
import sys
from pathlib import Path

from reports import RESULTS, ROOT, beside, find, load, median

PRICES = ROOT / "load-tests/cost/prices.json"
PAGE = ROOT / "docs/COST.md"
BEGIN, END = "<!-- tables of load-tests/cost/cost.py: begin -->\n", "<!-- tables: end -->\n"
MILLION = 1_000_000

# The rows: a title, the case and row of the report, and for how many resources (`of`) or runs (`times`) it is told.
FLEET = ("small-files-fleet", "fleet, packs", {"of": MILLION})
REQUESTS = [
    ("first harvest of 1,000,000, packs", "small-files-fleet", "fleet, packs, requests counted", {"of": MILLION}),
    ("the same, one object each", "small-files-fleet", "fleet, one object each", {"of": MILLION}),
    ("first harvests of 1,000 Sources of {resources:,}", "small-source", "first harvest", {"times": 1000}),
    ("1,000 requested runs without news", "small-source", "second run", {"times": 1000}),
    ("1,000 runs of {resources:,} changes", "small-source", "run with changes", {"times": 1000}),
]
SECONDS = [
    ("first harvest, fleet, bucket", *FLEET),
    ("first harvest, one process, directory", "million-unchanged", "first harvest", {"of": MILLION}),
    ("new edition, all stored", "million-unchanged", "all held, new edition of the list", {"of": MILLION}),
    ("audit, nothing differs", "million-audit", "audit, nothing differs", {"of": MILLION}),
    ("one run without news, {resources:,} stored", "incremental-idle", "nothing new", {"times": 1}),
]
# The counts that a store bills alike: those of a proxy, by method, and where there was none those of the services'
# metrics. `requests_other` are the POSTs that begin and end an upload in parts. `store_gets` has the HEADs too.
WRITES = [["requests_put", "requests_list", "requests_other"], ["store_puts", "store_lists", "store_copies"]]
READS = [["requests_get", "requests_head"], ["store_gets"]]
CPU = ["cpu_seconds", "other_cpu_seconds", "source_cpu_seconds"]


def shown(path, told):
    name = f"[{path.stem}](../load-tests/results/{path.name})" if path.parent == RESULTS else path.stem
    return f"{name}, {told['finished_at'][:10]}"


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def dollars(value):
    return "0" if value == 0 else f"{value:,.2f}" if value >= 1 else f"{value:.3f}"


def table(title, head, rows):
    lines = [f"| {' | '.join(row)} |\n" for row in [head, *rows]]
    return f"### {title}\n\n{lines[0]}|{'---|' * len(head)}\n{''.join(lines[1:])}"


def tables(reports, prices):
    head = ["store", "1,000 PUT, LIST", "1,000 GET, HEAD", "a GB for a month", "a GB to the Internet", "prices of"]
    usd = ["usd_per_1000_writes", "usd_per_1000_reads", "usd_per_gb_month", "usd_per_gb_egress"]
    rows = [[price["place"], *(f"{price[key]:g}" for key in usd), price["date"]] for price in prices]
    text = table("Prices in USD", head, rows)
    text += "".join(f"\n{price['store']}: {price['source']}.\n[Page]({price['page']}).\n" for price in prices)
    stores = [price["store"] for price in prices]

    rows = []
    for title, case, name, scale in REQUESTS:
        path, told, row = find(reports, case, name)
        writes, reads = median(row, scale, *WRITES), median(row, scale, *READS)
        each = [(writes * price[usd[0]] + reads * price[usd[1]]) / 1000 for price in prices]
        rows.append([title.format(**row), shown(path, told), number(writes), number(reads), *map(dollars, each)])
    text += "\n" + table("Requests to the store", ["what", "report", "PUT, LIST", "GET, HEAD", *stores], rows)

    each = find(reports, *FLEET[:2])[1]["setup"]["bytes_each"]
    catalog, pack = beside()
    parts = [
        (f"resources of {each:,} bytes", each, usd[2]),
        ("beside them in packs", pack, usd[2]),
        ("catalog, all merged", catalog, usd[2]),
        ("all of it, for a month", each + pack + catalog, usd[2]),
        ("resources, sent to the Internet once", each, usd[3]),
    ]
    rows = []
    for what, size, key in parts:
        gb = size * MILLION / 1e9
        rows.append([what, number(size), number(gb), *(dollars(gb * price[key]) for price in prices)])
    text += "\n" + table("Storage of 1,000,000 resources", ["what", "bytes each", "GB", *stores], rows)

    rows = []
    for title, case, name, scale in SECONDS:
        path, told, row = find(reports, case, name)
        figures = [median(row, scale, [key]) for key in [*CPU, "requests_seen_by_source"]]
        rows.append([title.format(**row), shown(path, told), *map(number, figures)])
    head = ["of 1,000,000 resources", "report", "Thresher", "all others", "the Source", "requests to the Source"]
    return text + "\n" + table("Processor seconds", head, rows)


def main(arguments):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("reports", nargs="*", type=Path, help="reports whose rows come before those that are kept")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/COST.md")
    parser.add_argument("--check", action="store_true", help="fail if docs/COST.md has other tables")
    options = parser.parse_args(arguments)
    reports = [load(options.reports), load(RESULTS.glob("*.json"))]
    made = tables(reports, json.loads(PRICES.read_text()))
    before, _, rest = PAGE.read_text().partition(BEGIN)
    held, _, after = rest.partition(END)
    if options.write:
        PAGE.write_text(before + BEGIN + made + END + after)
    elif not options.check:
        print(made, end="")
    elif held != made:
        sys.exit("docs/COST.md has other tables than the reports give: run load-tests/cost/cost.py --write")


if __name__ == "__main__":
    main(sys.argv[1:])
