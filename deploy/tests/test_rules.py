"""Alerts, their tests, their runbooks and the page of metrics belong together."""

import re
import subprocess
import unittest

import yaml

import contract
import promtool
from places import DEPLOY, ROOT, read, services

FOLDER = DEPLOY / "prometheus"
def rules(file):
    """The rules of a file."""
    return [rule for group in yaml.safe_load((FOLDER / file).read_text())["groups"] for rule in group["rules"]]


RECORDED, ALERTS = rules("recording.yaml"), rules("alerts.yaml")


def series(expression):
    """The names of the series that an expression asks for."""
    without_strings = re.sub(r'"[^"]*"', '""', expression)
    return set(re.findall(r"\b(?:thresher[\w:]*|up)\b(?!\s*\()", without_strings))


def matched(expression):
    """Labels and the values that an expression asks for of them."""
    for label, operator, value in re.findall(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"', expression):
        for one in value.split("|") if "~" in operator else [value]:
            yield label, one


# What is recorded, by its name.
EXPRESSIONS = {rule["record"]: rule["expr"] for rule in RECORDED}


class Rules(unittest.TestCase):
    def test_each_series_label_and_value_that_is_asked_for_is_on_the_page_of_metrics(self):
        self.assertGreater(len(contract.series()), 40)
        for rule in RECORDED + ALERTS:
            with self.subTest(rule=rule.get("alert") or rule["record"]):
                self.assertEqual(list(contract.wrong(rule["expr"], EXPRESSIONS)), [])

    def test_a_series_that_is_misspelt_would_be_seen(self):
        self.assertEqual(series('sum by (x) (rate(thresher_a_total{b="thresher_c"}[5m])) > thresher:d:e'), {"thresher_a_total", "thresher:d:e"})

    def test_what_is_not_on_the_page_would_be_seen(self):
        for expression in (
            "thresher_fetch_resource_total",
            "thresher:problem > 0",
            'thresher_fetch_resources_total{reason="dns"}',
            'thresher_fetch_resources_total{result=~"dns|dsn"}',
            'thresher:problems{reason="dsn"}',
            "sum by (lane) (thresher_http_requests_in_flight)",
            "vector(1)",
        ):
            self.assertNotEqual(list(contract.wrong(expression, EXPRESSIONS)), [], expression)

    def test_what_is_recorded_is_used_or_named_for_its_series(self):
        for rule in RECORDED:
            self.assertRegex(rule["record"], r"^thresher:\w+(:\w+)?$")

    def test_each_service_is_missed_when_it_is_gone(self):
        (gone,) = [rule for rule in ALERTS if rule["alert"] == "ThresherServiceGone"]
        missed, beside = gone["expr"].split("unless")
        # A fleet may be without a publisher.
        self.assertEqual({value for _, value in matched(missed)}, set(services()) - {"publisher"})
        self.assertEqual(list(matched(beside)), [("service", "serve")])

    def test_each_alert_says_what_how_grave_and_where_to_read_on(self):
        for rule in ALERTS:
            with self.subTest(alert=rule["alert"]):
                self.assertIn(rule["labels"]["severity"], ("critical", "warning"))
                self.assertTrue(rule["annotations"]["summary"] and rule["annotations"]["description"])
                self.assertEqual(rule["annotations"]["runbook_url"], f"docs/runbooks/{rule['alert']}.md")

    def test_each_alert_has_a_runbook_with_its_three_parts_and_each_runbook_an_alert(self):
        pages = {path.stem: path.read_text() for path in (ROOT / "docs/runbooks").glob("*.md") if path.stem != "README"}
        self.assertEqual(set(pages), {rule["alert"] for rule in ALERTS})
        for name, page in pages.items():
            self.assertTrue(page.startswith(f"# {name}\n"), name)
            for heading in ("## What it means", "## How to see it", "## What to do"):
                self.assertIn(heading, page, name)

    def test_each_command_that_a_runbook_names_is_one(self):
        commands = set(re.findall(r"^\| `thresher ([\w]+)", read("README.md"), re.M)) | {"source", "run", "serve"}
        for path in (ROOT / "docs/runbooks").glob("*.md"):
            for command in re.findall(r"`thresher ([a-z]+)", path.read_text()):
                self.assertIn(command, commands, path.name)

    def test_each_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not(self):
        for rule in ALERTS:
            told = yaml.safe_load((FOLDER / f"tests/{rule['alert']}.yaml").read_text())
            checks = [check for test in told["tests"] for check in test["alert_rule_test"]]
            self.assertEqual({check["alertname"] for check in checks}, {rule["alert"]})
            self.assertTrue(any(check["exp_alerts"] for check in checks), rule["alert"])
            self.assertTrue(any(not check["exp_alerts"] for check in checks), rule["alert"])

    def test_each_recorded_series_has_a_test(self):
        told = yaml.safe_load((FOLDER / "tests/recording.yaml").read_text())
        tested = {name for test in told["tests"] for check in test["promql_expr_test"] for name in series(check["expr"])}
        self.assertEqual(tested, {rule["record"] for rule in RECORDED})

    def test_promtool_takes_the_rules_and_their_tests_pass(self):
        program = promtool.find()
        files = [FOLDER / name for name in ("recording.yaml", "alerts.yaml")]
        for command in (["check", "rules", *files], ["test", "rules", *sorted(FOLDER.glob("tests/*.yaml"))]):
            ended = subprocess.run([program, *command], capture_output=True, text=True)
            self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)


if __name__ == "__main__":
    unittest.main()
