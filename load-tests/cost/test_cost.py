#!/usr/bin/env -S python3 -B
"""The tables of docs/COST.md are those of the reports, and the program chooses and computes as it says."""

import tempfile
import unittest
import unittest.mock
from pathlib import Path

import cost
import reports


def report(at, resources, counted, name="fleet, packs"):
    rounds = [{"cpu_seconds": one, "counted": counted} for one in (9.0, 2.0, 3.0)]
    told = {"case": "small-files-fleet", "finished_at": at, "setup": {"bytes_each": 2048}}
    return Path(f"{at}.json"), {**told, "rows": [{"name": name, "resources": resources, "rounds": rounds}]}


class Page(unittest.TestCase):
    def test_the_page_has_the_tables_of_the_reports(self):
        cost.main(["--check"])

    def test_another_table_is_noticed_and_named(self):
        page = cost.PAGE.read_text()
        self.assertEqual((page.count(cost.BEGIN), page.count(cost.END)), (1, 1))
        other = Path(self.enterContext(tempfile.TemporaryDirectory())) / "COST.md"
        other.write_text(page.replace("| GB |", "| MB |"))
        self.enterContext(unittest.mock.patch.object(cost, "PAGE", other))
        with self.assertRaisesRegex(SystemExit, "--write"):
            cost.main(["--check"])
        cost.main(["--write"])
        self.assertEqual(other.read_text(), page)


class Figures(unittest.TestCase):
    def test_the_newest_large_report_counts(self):
        sizes = {"2026-11-25": 20_000, "2026-11-23": 200_000, "2026-11-24": 100_000}
        small, old, new = (report(at, resources, {}) for at, resources in sizes.items())
        self.assertEqual(reports.find([[], [small, old, new]], "small-files-fleet", "fleet, packs")[0], new[0])
        self.assertEqual(reports.find([[small], [old, new]], "small-files-fleet", "fleet, packs")[0], small[0])
        self.assertEqual(reports.find([[], [small]], "small-files-fleet", "fleet, packs")[0], small[0])

    def test_a_report_of_a_million_or_of_a_hundred_counts_before_a_newer_one_of_fewer(self):
        million, newer = report("2026-11-25", 1_000_000, {}), report("2026-11-26", 200_000, {})
        self.assertEqual(reports.find([[newer, million]], "small-files-fleet", "fleet, packs")[0], million[0])
        hundred, newer = report("2026-11-25", 100, {}), report("2026-11-26", 20, {})
        self.assertEqual(reports.find([[newer, hundred]], "small-files-fleet", "fleet, packs")[0], hundred[0])

    def test_a_row_or_a_count_that_is_not_there_is_named(self):
        with self.assertRaisesRegex(SystemExit, "no report of small-files-fleet has the row 'x'"):
            reports.find([[report("2026-11-25", 1, {})]], "small-files-fleet", "x")
        row = report("2026-11-25", 1, {})[1]["rows"][0]
        with self.assertRaisesRegex(SystemExit, "has none of store_puts"):
            reports.median(row, {"of": 1}, ["store_puts"])

    def test_figures_are_medians_for_a_million_or_for_so_many_runs(self):
        row = report("2026-11-25", 200_000, {"store_puts": 30, "store_lists": 10})[1]["rows"][0]
        self.assertEqual(reports.median(row, {"of": 1_000_000}, ["cpu_seconds"]), 15.0)
        self.assertEqual(reports.median(row, {"times": 1000}, *cost.WRITES), 40_000)

    def test_requests_that_two_ways_count_are_counted_once_and_by_method(self):
        counted = {"requests_put": 20, "requests_list": 3, "requests_other": 4, "store_puts": 24, "store_lists": 3}
        counted |= {"requests_get": 5, "requests_head": 6, "requests_delete": 9, "store_gets": 11}
        row = report("2026-11-25", 1_000_000, counted)[1]["rows"][0]
        self.assertEqual(reports.median(row, {"of": 1_000_000}, *cost.WRITES), 27)
        self.assertEqual(reports.median(row, {"of": 1_000_000}, *cost.READS), 11)


class Dollars(unittest.TestCase):
    def test_requests_and_bytes_are_multiplied_with_their_prices(self):
        def row(counted):
            return {"resources": 1_000_000, "rounds": [{**dict.fromkeys(cost.CPU, 1.0), "counted": counted}]}

        counted = {"store_puts": 900_000, "store_lists": 100_000, "store_gets": 2_000_000, "requests_seen_by_source": 5}
        cases = {case: [] for _, case, *_ in cost.REQUESTS + cost.SECONDS}
        for case, name in {(case, name) for _, case, name, _ in cost.REQUESTS + cost.SECONDS}:
            cases[case].append({"name": name, **row(counted)})
        told = {"finished_at": "2026-11-26T00", "setup": {"bytes_each": 1_000_000}}
        group = [(Path("x.json"), {"case": case, "rows": rows, **told}) for case, rows in cases.items()]
        made = cost.tables([group], PRICES)
        # 1,000 thousands at 3 and 2,000 thousands at 0.5; 1,000 GB at 0.02, and at 0.1.
        self.assertIn("| first harvest of 1,000,000, packs | x, 2026-11-26 | 1,000,000 | 2,000,000 | 4,000.00 |", made)
        self.assertIn("| resources of 1,000,000 bytes | 1,000,000 | 1,000 | 20.00 |", made)
        self.assertIn("| resources, sent to the Internet once | 1,000,000 | 1,000 | 100.00 |", made)


PRICES = [
    {
        "store": "Shop", "place": "Shop", "date": "2026-01-01", "source": "a list", "page": "https://shop.example/",
        "usd_per_1000_writes": 3, "usd_per_1000_reads": 0.5, "usd_per_gb_month": 0.02, "usd_per_gb_egress": 0.1,
    },
]

if __name__ == "__main__":
    unittest.main()
