#!/usr/bin/env python3
"""Writes the dashboards beside it. They are what this says: change it here, and run it again.

    deploy/grafana/build.py

Grafana's own JSON says each thing many times; what differs from panel to panel is here, once.
"""

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
# Runbooks are pages of the project; where they are served is the operator's business, so it is a variable.
RUNBOOKS = "${runbooks}"
# So is the console. Its page of a Source says why the Source is late.
CONSOLE = "${console}"
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24


def stat(title, says, expr, unit="short", bad=None, runbook=None):
    """One number; red from `bad` on."""
    steps = [{"color": "green", "value": None}] + ([{"color": "red", "value": bad}] if bad is not None else [])
    options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "value", "graphMode": "area", "textMode": "auto"}
    return panel("stat", title, says, [(expr, "")], unit, options, runbook, thresholds=steps, size=(4, 4))


def graph(title, says, *queries, unit="short", runbook=None, width=8):
    """Lines over time; each query with what its lines are called."""
    options = {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}, "tooltip": {"mode": "multi", "sort": "desc"}}
    return panel("timeseries", title, says, queries, unit, options, runbook, size=(width, 8))


def table(title, says, expr, unit="short", runbook=None, width=8, to_console=False):
    """The present values, one in a row; each Source may lead to its page in the console."""
    made = panel("table", title, says, [(expr, "")], unit, {"showHeader": True, "cellHeight": "sm"}, runbook, size=(width, 8))
    made["targets"][0].update(instant=True, range=False, format="table")
    if to_console:
        link = {"title": "Why? Open the Source in the console", "url": f"{CONSOLE}/sources/${{__data.fields.source}}", "targetBlank": True}
        made["fieldConfig"]["defaults"]["links"] = [link]
    made["transformations"] = [{"id": "organize", "options": {"excludeByName": {"Time": True}, "indexByName": {}, "renameByName": {}}}]
    return made


def panel(kind, title, says, queries, unit, options, runbook, size, thresholds=None):
    targets = [
        {"refId": chr(ord("A") + n), "datasource": DATASOURCE, "expr": expr, "legendFormat": legend or "__auto", "range": True, "instant": False, "editorMode": "code"}
        for n, (expr, legend) in enumerate(queries)
    ]
    defaults = {"unit": unit, "min": 0, "thresholds": {"mode": "absolute", "steps": thresholds or [{"color": "green", "value": None}]}}
    links = [{"title": runbook, "url": f"{RUNBOOKS}/{runbook}.md", "targetBlank": True}] if runbook else []
    return {
        "type": kind,
        "title": title,
        "description": says,
        "datasource": DATASOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "links": links,
        "size": size,
    }


def row(title):
    return {"type": "row", "title": title, "collapsed": False, "panels": [], "size": (WIDTH, 1)}


def place(panels):
    """Gives panels their numbers and places, from left to right, line by line."""
    x = y = height = 0
    for number, one in enumerate(panels, 1):
        width, tall = one.pop("size")
        if x + width > WIDTH:
            x, y, height = 0, y + height, 0
        one["id"], one["gridPos"] = number, {"x": x, "y": y, "w": width, "h": tall}
        x, height = x + width, max(height, tall)
    return panels


def choice(name, label, query, many=True):
    """A variable whose values are those of a label."""
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": many,
        "includeAll": many,
        "allValue": ".+" if many else None,
        "current": {},
        "hide": 0,
    }


def text_field(name, label, value):
    """A variable that the operator types."""
    return {"name": name, "label": label, "type": "textbox", "query": value, "current": {"text": value, "value": value}, "hide": 0}


def dashboard(uid, title, says, variables, panels):
    given = [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "refresh": 1, "current": {}, "hide": 0},
        text_field("runbooks", "Where runbooks are", "docs/runbooks"),
    ]
    others = [{"title": "Thresher", "type": "dashboards", "tags": ["thresher"], "asDropdown": True, "includeVars": False, "keepTime": True, "url": "", "targetBlank": False}]
    return {
        "uid": uid,
        "title": title,
        "description": says,
        "tags": ["thresher"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "utc",
        "templating": {"list": given + variables},
        "annotations": {"list": []},
        "links": others,
        "panels": place(panels),
    }


def rate(series, by, where=""):
    return f"sum by ({by}) (rate({series}{where}[$__rate_interval]))"


FLEET = dashboard(
    "thresher-fleet",
    "Thresher: the fleet",
    "Whether all Sources are in step, what there is to do, and what keeps it from being done.",
    [text_field("console", "Where the console is", "http://localhost:8080/console")],
    [
        row("Is all well?"),
        stat("Not ready", "Processes that wait for what they cannot work without.", "count(thresher_service_ready == 0) or vector(0)", bad=1, runbook="ThresherNotReady"),
        stat("Stale Sources", "Sources that were not in step again in time, by their own schedules.", "sum(thresher_scheduler_sources_stale)", bad=1, runbook="ThresherSourcesStale"),
        stat("Pending", "Resources that are still to be fetched or deleted.", "sum(thresher_scheduler_pending_resources)", runbook="ThresherBacklogNotShrinking"),
        stat("Oldest work", "How long the run waits that was asked for first and is not over.", "max(thresher_scheduler_run_age_seconds)", unit="s", runbook="ThresherBacklogNotShrinking"),
        stat("Guard", "Sources whose deletions wait for the operator's approval.", 'sum(thresher_scheduler_problems{reason="guard"}) or vector(0)', bad=1, runbook="ThresherDeletionsAwaitApproval"),
        stat("Dead letters", "Messages that were given up within a day.", "sum(increase(thresher_bus_dead_letters_total[1d]))", bad=1, runbook="ThresherDeadLetters"),
        stat("Sources", "Sources that are looked after.", "sum(thresher_scheduler_sources)"),
        stat("Runs in hand", "Runs that are worked on.", "sum(thresher_scheduler_runs_active)"),
        stat("Failed runs", "Runs that could not go on, within a day.", 'sum(increase(thresher_scheduler_runs_total{result="failed"}[1d]))', bad=1, runbook="ThresherRunsFail"),
        stat("Shortfall", "Entries that came to no end that is counted, within a day. There should be none.", "sum(increase(thresher_scheduler_unaccounted_entries_total[1d]))", bad=1, runbook="ThresherShortfall"),
        stat("Open problems", "Resources, documents and entries that could not be brought in step.", 'sum(thresher:problems{reason!="ignored"})', runbook="ThresherProblemsGrow"),
        stat("Damaged", "Resources whose bytes are damaged or missing.", 'sum(thresher:problems{reason=~"damaged-bytes|missing-bytes"}) or vector(0)', bad=1, runbook="ThresherBytesDamaged"),
        row("Why is a Source late?"),
        table("Late Sources", "How long ago Sources should have been in step again. A click on one opens its page in the console, which says what it waits for.", "topk(20, max by (source) (thresher_source_overdue_seconds))", unit="s", runbook="ThresherSourcesStale", to_console=True),
        graph("Waiting runs", "Runs without a place: queued for one, or waiting for their Sources or their turn.", ("sum(thresher_scheduler_runs_queued)", "a place"), ("sum by (reason) (thresher_scheduler_runs_waiting)", "{{reason}}"), runbook="ThresherSourcesStale"),
        graph("Places", "Memory that schedulers have given to runs. Runs queue when it is all given.", ("sum(thresher_scheduler_places_used_bytes)", "in use"), unit="bytes", runbook="ThresherMemoryBeyondBound"),
        row("What is done"),
        graph("Resources settled", "What became of resources, by outcome.", (rate("thresher_scheduler_resources_total", "outcome"), "{{outcome}}"), unit="ops"),
        graph("Entries read", "Entries of lists and manifests, and documents by what came of asking for them.", ("sum(rate(thresher_scheduler_entries_total[$__rate_interval]))", "entries"), (rate("thresher_scheduler_documents_total", "result"), "documents: {{result}}"), unit="ops"),
        graph("Verdicts", "What was judged, fetched by itself or in packages.", (rate("thresher_verify_resources_total", "verdict"), "{{verdict}}"), (rate("thresher_unpack_members_total", "verdict"), "packages: {{verdict}}"), unit="ops", runbook="ThresherVerifierStalled"),
        graph("Pending", "What there is to do. It shrinks while runs are worked on.", ("sum(thresher_scheduler_pending_resources)", "pending"), ("sum(thresher_scheduler_window_resources)", "in jobs"), runbook="ThresherBacklogNotShrinking"),
        graph("Runs ended", "Runs by their end.", (rate("thresher_scheduler_runs_total", "result"), "{{result}}"), unit="ops", runbook="ThresherRunsFail"),
        graph("Bytes", "Bytes received from Sources, and stored.", ("sum(rate(thresher_http_received_bytes_total[$__rate_interval]))", "received"), ("sum(rate(thresher_fetch_bytes_total[$__rate_interval]))", "stored"), unit="Bps"),
        row("Sources' servers"),
        graph("Answers", "Requests to Sources by class of status; none: nothing came.", (rate("thresher_http_requests_total", "status"), "{{status}}"), unit="reqps", runbook="ThresherSourcesUnanswered"),
        graph("Answers by group", "Requests to Sources by group of origins.", (rate("thresher_http_requests_total", "origin_group"), "{{origin_group}}"), unit="reqps"),
        graph("Time to an answer", "Half, and 95 of 100, of the answers began within this time.", ("histogram_quantile(0.5, sum by (le, origin_group) (rate(thresher_http_response_seconds_bucket[$__rate_interval])))", "{{origin_group}}: 50 %"), ("histogram_quantile(0.95, sum by (le, origin_group) (rate(thresher_http_response_seconds_bucket[$__rate_interval])))", "{{origin_group}}: 95 %"), unit="s"),
        graph("In flight", "Requests whose answers have not ended.", ("sum by (origin_group) (thresher_http_requests_in_flight)", "{{origin_group}}"), runbook="ThresherFetchStalls"),
        graph("Fetched", "Resources of finished fetch jobs, by result.", (rate("thresher_fetch_resources_total", "result"), "{{result}}"), unit="ops"),
        graph("Unanswered", "Of what was asked for within half an hour, the part that no server answered for.", ("thresher:fetch_unanswered:ratio30m", "unanswered"), unit="percentunit", runbook="ThresherSourcesUnanswered"),
        row("Queues"),
        graph("Window", "Jobs that are out, and the most that may be.", ("sum(thresher_scheduler_window_jobs)", "out"), ("sum(thresher_scheduler_window_jobs_limit)", "limit")),
        graph("Waiting", "Messages that lie in the queues of the stages.", ("max by (queue, state) (thresher_bus_queue_messages)", "{{queue}}: {{state}}")),
        graph("Handed out again", "Messages that were handed out more than once: a worker died, or could not work on them.", (rate("thresher_bus_deliveries_total", "queue", '{delivery="redelivery"}'), "{{queue}}"), unit="ops", runbook="ThresherPoison"),
        row("Push"),
        graph("Subscriptions", "Subscriptions to hubs by state.", ("sum by (state) (thresher_scheduler_subscriptions)", "{{state}}"), runbook="ThresherHubSilent"),
        graph("Deliveries", "Deliveries of hubs by what became of them.", (rate("thresher_gateway_deliveries_total", "verdict"), "{{verdict}}"), unit="ops", runbook="ThresherHubSilent"),
        graph("Requests to hubs", "What hubs were asked for, and what came of it.", (rate("thresher_scheduler_hub_requests_total", "mode, result"), "{{mode}}: {{result}}"), unit="ops", runbook="ThresherHubSilent"),
        graph("Push lag", "Half, and 95 of 100, of the changes that hubs told of were held within this time, by the Sources' clocks.", ("histogram_quantile(0.5, sum by (le) (rate(thresher_scheduler_push_lag_seconds_bucket[$__rate_interval])))", "50 %"), ("histogram_quantile(0.95, sum by (le) (rate(thresher_scheduler_push_lag_seconds_bucket[$__rate_interval])))", "95 %"), unit="s"),
        graph("Missed", "Changes that hubs should have told of and did not, and subscriptions that were asked for anew for that.", ("sum(increase(thresher_scheduler_missed_changes_total[$__rate_interval]))", "missed"), ("sum(increase(thresher_scheduler_resubscriptions_total[$__rate_interval]))", "asked anew"), runbook="ThresherNotificationsMissed"),
        row("What is published"),
        graph("Sets", "Publications of Sources, and those whose last publication failed. A fleet without a publisher has none.", ("sum(thresher_publisher_sets) or vector(0)", "served"), ("sum(thresher_publisher_sets_failing) or vector(0)", "failing"), runbook="ThresherPublicationFails"),
        graph("Publications", "Looks for changes to publish, by what came of them.", (rate("thresher_publisher_publications_total", "result") + " or vector(0)", "{{result}}"), unit="ops", runbook="ThresherPublicationFails"),
        graph("Requests of OAI-PMH", "Requests of harvesters by what came of them.", (rate("thresher_publisher_oai_requests_total", "result") + " or vector(0)", "{{result}}"), unit="reqps"),
        row("What is wrong"),
        table("Failing Sources", "Sources whose last run could not go on. A click on one opens its page in the console.", "max by (source) (thresher_source_failing) > 0", runbook="ThresherSourceFails", to_console=True),
        table("Problems by reason", "Open problems of all Sources.", "sort_desc(sum by (reason) (thresher_scheduler_problems))", runbook="ThresherProblemsGrow"),
        table("Quirks", "What had to be tolerated within a day.", "sort_desc(sum by (quirk) (increase(thresher_scheduler_quirks_total[1d])))"),
        graph("Leases", "Leases of Sources taken, given back and lost. Many lost ones: schedulers do not get to renew them.", (rate("thresher_scheduler_lease_changes_total", "change"), "{{change}}"), unit="ops"),
        graph("Gaps and guards", "Change documents that did not join on, and runs that the guard kept from deleting.", ("sum(increase(thresher_scheduler_gaps_total[$__rate_interval]))", "gaps"), ("sum(increase(thresher_scheduler_deletion_guard_trips_total[$__rate_interval]))", "guard"), runbook="ThresherDeletionsAwaitApproval"),
        graph("Store", "Failures of the store, by what was asked for and how it ended.", (rate("thresher_store_operations_total", "operation, result", '{result!~"done|answered"}'), "{{operation}}: {{result}}"), unit="ops", runbook="ThresherStoreFails"),
    ],
)

SOURCE = dashboard(
    "thresher-source",
    "Thresher: one Source",
    "How a Source stands. Those that are late the most have series of their own; all others are one, `other`.",
    [choice("source", "Source", "label_values(thresher_source_pending_resources, source)")],
    [
        row("How it stands"),
        stat("Since it was in step", "Time since the last run began that went to its end.", 'max(thresher_source_success_age_seconds{source=~"$source"})', unit="s", runbook="ThresherSourcesStale"),
        stat("Overdue", "How long ago it should have been in step again, by its schedule.", 'max(thresher_source_overdue_seconds{source=~"$source"})', unit="s", runbook="ThresherSourcesStale"),
        stat("Lag", "How far what is synchronized lies behind the latest change that its documents told of.", 'max(thresher_source_lag_seconds{source=~"$source"})', unit="s", runbook="ThresherSourcesStale"),
        stat("Work waits", "How long its run waits to be over.", 'max(thresher_source_run_age_seconds{source=~"$source"})', unit="s", runbook="ThresherBacklogNotShrinking"),
        stat("Pending", "Resources that are still to be fetched or deleted.", 'sum(thresher_source_pending_resources{source=~"$source"})', runbook="ThresherBacklogNotShrinking"),
        stat("Problems", "Problems that its last run left open.", 'sum(thresher_source_problems{source=~"$source"})', runbook="ThresherProblemsGrow"),
        row("Over time"),
        graph("Freshness", "Time since it was in step, and how long it is overdue.", ('max by (source) (thresher_source_success_age_seconds{source=~"$source"})', "{{source}}: in step"), ('max by (source) (thresher_source_overdue_seconds{source=~"$source"})', "{{source}}: overdue"), unit="s", width=12, runbook="ThresherSourcesStale"),
        graph("Lag", "How far what is synchronized lies behind what its documents tell.", ('max by (source) (thresher_source_lag_seconds{source=~"$source"})', "{{source}}"), unit="s", width=12),
        graph("Pending", "Resources that are still to be fetched or deleted.", ('sum by (source) (thresher_source_pending_resources{source=~"$source"})', "{{source}}"), width=12, runbook="ThresherBacklogNotShrinking"),
        graph("Problems", "Problems that its last run left open.", ('sum by (source) (thresher_source_problems{source=~"$source"})', "{{source}}"), width=12, runbook="ThresherProblemsGrow"),
    ],
)

HERE = '{job=~"$job", instance=~"$instance"}'

SERVICE = dashboard(
    "thresher-service",
    "Thresher: one service",
    "What a process takes and does.",
    [
        choice("job", "Service", "label_values(thresher_service_ready, job)"),
        choice("instance", "Process", 'label_values(thresher_service_ready{job=~"$job"}, instance)'),
    ],
    [
        row("Is it well?"),
        stat("Ready", "Processes that can work.", f"sum(thresher_service_ready{HERE})", runbook="ThresherNotReady"),
        stat("Wait for", "Parts that keep processes from being ready.", f"count(thresher_service_unready{HERE}) or vector(0)", bad=1, runbook="ThresherDependencyDown"),
        stat("Memory", "The most that one process takes.", f"max(process_resident_memory_bytes{HERE})", unit="bytes", runbook="ThresherMemoryBeyondBound"),
        stat("Spool", "What lies in the spool directory.", f"max(thresher_spool_bytes{HERE})", unit="bytes", runbook="ThresherStoreFails"),
        table("Versions", "What runs.", f"count by (job, service, version) (thresher_build_info{HERE})", runbook="ThresherServiceGone"),
        row("What it takes"),
        graph("Memory", "What processes take, and the most that they may: the sum of their parts.", (f"process_resident_memory_bytes{HERE}", "{{instance}}"), (f"thresher:memory_budget_bytes{HERE}", "{{instance}}: bound"), unit="bytes", runbook="ThresherMemoryBeyondBound"),
        graph("Spool", "What lies in the spool directory: bodies that are being received.", (f"thresher_spool_bytes{HERE}", "{{instance}}"), unit="bytes", runbook="ThresherStoreFails"),
        graph("Jobs in hand", "Fetch jobs that are worked on.", (f"thresher_fetch_jobs_active{HERE}", "{{instance}}"), runbook="ThresherFetchStalls"),
        row("What it does"),
        graph("Messages", "Messages handed out, for the first time or again.", (rate("thresher_bus_deliveries_total", "queue, delivery", HERE), "{{queue}}: {{delivery}}"), unit="ops", runbook="ThresherDeadLetters"),
        graph("Store", "Operations of the store, by what was asked for.", (rate("thresher_store_operations_total", "operation", HERE), "{{operation}}"), unit="ops"),
        graph("Store: how it ended", "Operations by how they ended.", (rate("thresher_store_operations_total", "result", HERE), "{{result}}"), unit="ops", runbook="ThresherStoreFails"),
        graph("Requests to Sources", "By class of status.", (rate("thresher_http_requests_total", "status", HERE), "{{status}}"), unit="reqps", runbook="ThresherSourcesUnanswered"),
        graph("Requests of operators", "What a gateway answered, by class of status.", (rate("thresher_gateway_requests_total", "status", HERE), "{{status}}"), unit="reqps"),
        graph("Time to an answer to operators", "95 of 100 answers of a gateway began within this time.", (f"histogram_quantile(0.95, sum by (le, route) (rate(thresher_gateway_request_seconds_bucket{HERE}[$__rate_interval])))", "{{route}}"), unit="s"),
        graph("Packages", "Packages looked at, and slices finished.", (rate("thresher_unpack_packages_total", "result", HERE), "{{result}}"), (f"sum(rate(thresher_unpack_slices_total{HERE}[$__rate_interval]))", "slices"), unit="ops"),
    ],
)

DASHBOARDS = {"fleet.json": FLEET, "source.json": SOURCE, "service.json": SERVICE}


def text(made):
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name, made in DASHBOARDS.items():
        (FOLDER / name).write_text(text(made))
