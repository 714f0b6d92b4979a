"""The dashboards are what Grafana takes, what their builder says, and ask for series that there are."""

import json
import re
import subprocess
import sys
import unittest

import jsonschema
import yaml

import contract
from places import DEPLOY, ROOT

FOLDER = DEPLOY / "grafana"
FILES = sorted(FOLDER.glob("*.json"))
SCHEMA = json.loads((DEPLOY / "tests/schemas/dashboard.json").read_text())
RECORDED = {
    rule["record"]: rule["expr"]
    for group in yaml.safe_load((DEPLOY / "prometheus/recording.yaml").read_text())["groups"]
    for rule in group["rules"]
}


def panels(board):
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def queries(board):
    """Each query with the panel or variable that asks it."""
    for panel in panels(board):
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            inner = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
            yield variable["name"], f"count by ({inner[2]}) ({inner[1]})"


class Dashboards(unittest.TestCase):
    def each(self):
        for path in FILES:
            with self.subTest(path.name):
                yield json.loads(path.read_text())

    def test_there_is_one_for_the_fleet_one_source_and_one_service(self):
        self.assertEqual([path.name for path in FILES], ["fleet.json", "service.json", "source.json"])
        self.assertEqual(len({board["uid"] for board in self.each()}), 3)

    def test_they_are_what_their_builder_says(self):
        before = {path: path.read_text() for path in FILES}
        made = "import json, build; print(json.dumps({name: build.text(made) for name, made in build.DASHBOARDS.items()}))"
        ended = subprocess.run([sys.executable, "-B", "-c", made], cwd=FOLDER, capture_output=True, text=True, check=True)
        self.assertEqual({path.name: text for path, text in before.items()}, json.loads(ended.stdout), "run deploy/grafana/build.py")

    def test_they_are_what_grafana_takes(self):
        for board in self.each():
            jsonschema.validate(board, SCHEMA)
            with self.assertRaises(jsonschema.ValidationError):
                jsonschema.validate({**board, "misspelt": 1}, SCHEMA)

    def test_each_panel_has_a_number_and_a_place_of_its_own(self):
        for board in self.each():
            numbers = [panel["id"] for panel in board["panels"]]
            self.assertEqual(len(numbers), len(set(numbers)))
            taken = set()
            for panel in board["panels"]:
                at = panel["gridPos"]
                self.assertLessEqual(at["x"] + at["w"], 24, panel["title"])
                cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
                self.assertFalse(cells & taken, panel["title"])
                taken |= cells

    def test_each_series_label_and_value_that_is_asked_for_is_on_the_page_of_metrics(self):
        for board in self.each():
            asked = list(queries(board))
            self.assertGreater(len(asked), 5)
            for title, expression in asked:
                with self.subTest(title):
                    self.assertEqual(list(contract.wrong(expression, RECORDED)), [])

    def test_each_variable_that_is_asked_with_is_one(self):
        for board in self.each():
            variables = {variable["name"] for variable in board["templating"]["list"]}
            used = set(re.findall(r"\$\{?([a-z]+)", json.dumps(board)))
            self.assertEqual(used, variables)

    def test_a_late_source_leads_to_its_page_in_the_console(self):
        board = json.loads((FOLDER / "fleet.json").read_text())
        (late,) = [panel for panel in panels(board) if panel["title"] == "Late Sources"]
        (link,) = late["fieldConfig"]["defaults"]["links"]
        self.assertEqual(link["url"], "${console}/sources/${__data.fields.source}")
        self.assertIn('.route("/console/sources/{source}"', (ROOT / "services/gateway/src/console/mod.rs").read_text())
        # The link needs the label of the Source among the fields of the answer.
        self.assertIn("by (source)", late["targets"][0]["expr"])

    def test_rates_are_taken_over_the_interval_that_fits_and_amounts_over_days(self):
        for board in self.each():
            for title, expression in queries(board):
                for function, window in re.findall(r"\b(rate|increase)\([^\[]*\[([^\]]*)\]", expression):
                    self.assertIn(window, ("$__rate_interval",) if function == "rate" else ("$__rate_interval", "1d"), title)

    def test_runbooks_that_are_linked_to_are_there(self):
        linked = set()
        for board in self.each():
            for panel in panels(board):
                for link in panel["links"]:
                    self.assertEqual(link["url"], f"${{runbooks}}/{link['title']}.md")
                    linked.add(link["title"])
        pages = {path.stem for path in (ROOT / "docs/runbooks").glob("*.md")} - {"README"}
        self.assertLessEqual(linked, pages)
        self.assertEqual(pages - linked, set(), "runbooks that no panel leads to")


if __name__ == "__main__":
    unittest.main()
