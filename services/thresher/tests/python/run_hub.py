"""Runs a WebSub hub of flask-websub under a test's command, by lines on standard input. Each is answered by a line.

    lease N          from now on grants leases of N seconds, whatever is asked for; "granted"
    subscriptions    one JSON object: {"now": Unix seconds, "subscriptions": [{"topic", "callback", "expires"}]}

It takes requests for subscriptions at /hub, and at /publish what a Source has to tell: the body and its headers go to those who have
subscribed to the topic that the Link header names. XML at /hub is taken for the same: a Source posts to the very hub that it names. It listens on loopback, at a port that is free, and prints "listening <base URI>" when it
does. What it keeps lies in the folder that the first argument names; the second one is the hash that it signs with.
"""

import base64
import json
import logging
import os
import re
import sqlite3
import sys
import threading
import time

from celery import Celery
from flask import Flask, request
from flask_websub.hub import Hub, SQLite3HubStorage
from werkzeug.serving import make_server

folder, algorithm = sys.argv[1:]
database = os.path.join(folder, "hub.db")
logging.getLogger("werkzeug").setLevel(logging.ERROR)

celery = Celery("hub", broker="memory://")
celery.conf.update(
    # Nothing of other versions is to come by: what is queued lives in this process alone.
    accept_content=["json"],
    broker_transport_options={"polling_interval": 0.01},
    task_ignore_result=True,
    worker_enable_remote_control=False,
    worker_send_task_events=False,
)
# The threads of the worker are to find it too.
celery.set_default()
app = Flask("hub")
hub = Hub(
    SQLite3HubStorage(database),
    celery,
    # The first pauses before a delivery is tried again are of milliseconds, and doubled each time.
    BACKOFF_BASE=0.05,
    REQUEST_TIMEOUT=10,
    SIGNATURE_ALGORITHM=algorithm,
)
app.register_blueprint(hub.build_blueprint(url_prefix="/hub"))


def grant(seconds):
    names = ("HUB_MIN_LEASE_SECONDS", "HUB_DEFAULT_LEASE_SECONDS", "HUB_MAX_LEASE_SECONDS")
    app.config.update(dict.fromkeys(names, seconds))


@app.post("/publish")
def publish():
    topic = re.search(r'<([^>]*)>; *rel="self"', request.headers.get("Link", ""))
    if not topic:
        return "The Link header names no topic\n", 400
    told = {
        "content": base64.b64encode(request.get_data()).decode("ascii"),
        "headers": {name: request.headers[name] for name in ("Link", "Content-Type")},
    }
    hub.send_change_notification.delay(topic[1], told)
    return "Told\n", 202


@app.before_request
def take_xml_at_the_hub():
    if request.method == "POST" and request.path.startswith("/hub") and request.mimetype == "application/xml":
        return publish()
    return None


def subscriptions():
    with sqlite3.connect(database) as connection:
        rows = connection.execute("select topic_url, callback_url, expiration_time from hub order by 1, 2").fetchall()
    kept = [dict(zip(("topic", "callback", "expires"), row)) for row in rows]
    return json.dumps({"now": int(time.time()), "subscriptions": kept})


grant(600)
worker = celery.WorkController(pool_cls="threads", concurrency=4, without_mingle=True, without_gossip=True)
threading.Thread(target=worker.start, daemon=True).start()
server = make_server("127.0.0.1", 0, app, threaded=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"listening http://127.0.0.1:{server.server_port}", flush=True)

for line in sys.stdin:
    words = line.split()
    if words[:1] == ["lease"]:
        grant(int(words[1]))
        print("granted", flush=True)
    elif words == ["subscriptions"]:
        print(subscriptions(), flush=True)
# The threads do not end by themselves, and what they have in hand is of no interest any more.
os._exit(0)
