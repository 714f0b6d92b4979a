"""The page of metrics, and the code that it tells of."""

import re
import unittest

import contract
import exposed
from places import ROOT, read

# How a metric is given its name in the code; the prefix is set once, and the suffix follows from the kind.
NAMED = re.compile(
    r'(?:registry\.register|encode_descriptor|metrics\.add(?:_labelled)?|\b(?:counter|gauge)s?)\(\s*"(\w+)",'
    r'|^ +\(\s*"((?:scheduler|source)_\w+)",\s*"',
    re.M,
)
# The name itself is that of the info without its suffix.
INFO = {"build"}


def sources():
    """The files in which metrics are made; their tests are left out."""
    for path in sorted([*ROOT.glob("libs/*/src/**/*.rs"), *ROOT.glob("services/*/src/**/*.rs")]):
        text = path.read_text().split("#[cfg(test)]")[0]
        if "prometheus_client" in text:
            yield path, text


def without_suffix(name, kind):
    return name.removeprefix("thresher_").removesuffix({"counter": "_total", "info": "_info"}.get(kind, ""))


class Page(unittest.TestCase):
    def test_what_the_code_makes_is_on_the_page_and_nothing_else(self):
        made = {one or other for _, text in sources() for one, other in NAMED.findall(text)} | INFO
        rows = [contract.cells(row) for row in re.findall(r"^\| `(?:thresher|process)_.*$", contract.PAGE, re.M)]
        told = {without_suffix(contract.quoted(name)[0], kind) for name, kind, *_ in rows}
        self.assertGreater(len(made), 40)
        self.assertEqual(made - told, set(), "in the code, and not on the page")
        self.assertEqual(told - made, set(), "on the page, and not in the code")

    def test_names_follow_the_practice_of_prometheus(self):
        for row in re.findall(r"^\| `(?:thresher|process)_.*$", contract.PAGE, re.M):
            name, kind, _, unit, *_ = contract.cells(row)
            (name,) = contract.quoted(name)
            with self.subTest(name):
                self.assertIn(kind, ("counter", "gauge", "histogram", "info"))
                self.assertEqual(name.endswith("_total"), kind == "counter")
                for base in ("seconds", "bytes"):
                    self.assertEqual(unit == base, f"_{base}" in name.removesuffix("_total")[-len(base) - 1 :] or name.endswith(f"_{base}_total"))
                self.assertNotRegex(name, r"milli|micro|kilo|mega|minutes|hours")

    def test_each_label_of_each_series_has_its_values_told_once(self):
        known, used = contract.series(), set()
        for name, (_, labels) in known.items():
            for label in labels - {"le"}:
                rows = [row for row in contract.label_rows() if row[0] == label and contract.fnmatch.fnmatchcase(name, row[1])]
                self.assertEqual(len(rows), 1, f"{label} of {name}")
                used.add(rows[0])
        self.assertEqual(set(contract.label_rows()), used, "labels that no series has")

    def test_the_sets_of_names_are_those_of_the_code(self):
        reason = read("libs/model/src/problem_reason.rs").split("enum ProblemReason {")[1].split("\n}")[0]
        reasons = {re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower() for name in re.findall(r"^    (\w+),", reason, re.M)}
        self.assertEqual(set(contract.named("Reasons")), reasons)
        quirks = re.findall(r'^ +\w+ "([\w-]+)" (?:true|false) (?:true|false)', read("libs/resourcesync/src/quirk.rs"), re.M)
        self.assertGreater(len(quirks), 50)
        self.assertEqual(contract.named("Quirks"), quirks)


class Exposed(unittest.TestCase):
    """What a process says is held to the page; a running fleet is, where the services are tested."""

    def test_what_keeps_to_the_page_is_let_pass(self):
        text = (
            "# TYPE thresher_fetch_resources counter\n"
            'thresher_fetch_resources_total{result="dns"} 3\n'
            "# TYPE thresher_build info\n"
            'thresher_build_info{service="fetcher",version="1.2.3"} 1\n'
            "# TYPE thresher_gateway_request_seconds histogram\n"
            'thresher_gateway_request_seconds_bucket{le="+Inf",route="/v1/sources/{source}"} 1\n'
            "# TYPE thresher_source_problems gauge\n"
            'thresher_source_problems{source="other"} 1\n'
        )
        self.assertEqual(list(exposed.wrong(text)), [])
        self.assertIn("thresher_spool_bytes is on the page, and was not said", list(exposed.wrong(text, whole=True)))

    def test_what_does_not_is_found(self):
        many = "".join(f'thresher_source_problems{{source="s{n}"}} 1\n' for n in range(60))
        for text in (
            "thresher_fetch_everything_total 3\n",
            "# TYPE thresher_spool_bytes counter\n",
            "thresher_fetch_resources_total 3\n",
            'thresher_fetch_resources_total{result="dsn"} 3\n',
            'thresher_fetch_resources_total{result="dns",lane="http://h"} 3\n',
            'thresher_http_received_bytes_total{origin_group="https://example.org"} 3\n',
            'thresher_gateway_request_seconds_count{route="favicon"} 3\n',
            many,
        ):
            self.assertNotEqual(list(exposed.wrong(text)), [], text)


if __name__ == "__main__":
    unittest.main()
