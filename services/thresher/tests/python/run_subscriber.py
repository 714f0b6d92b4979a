"""Runs a WebSub subscriber of flask-websub under a test's command, by lines on standard input. Each has one answer.

    subscribe URL    finds topic and hub of the URL, and subscribes; the callback's ID
    unsubscribe ID   asks the hub to end it; "asked"
    told             one JSON object: {"events": ["subscribe", …], "bodies": [text, …]}

It listens on loopback, at a port that is free, and prints "listening <base URI>" when it does. What it keeps is in the
folder that the argument names.
"""

import json
import logging
import os
import sys
import threading

from flask import Flask
from flask_websub.subscriber import (
    SQLite3SubscriberStorage,
    SQLite3TempSubscriberStorage,
    Subscriber,
    discover,
)
from werkzeug.serving import make_server

database = os.path.join(sys.argv[1], "subscriber.db")
logging.getLogger("werkzeug").setLevel(logging.ERROR)

app = Flask("subscriber")
subscriber = Subscriber(SQLite3SubscriberStorage(database), SQLite3TempSubscriberStorage(database))
app.register_blueprint(subscriber.build_blueprint(url_prefix="/callbacks"))
events, bodies = [], []
subscriber.add_success_handler(lambda topic, callback, mode: events.append(mode))
subscriber.add_error_handler(lambda topic, callback, reason: events.append(f"denied: {reason}"))
subscriber.add_listener(lambda topic, callback, body: bodies.append(body.decode()))

server = make_server("127.0.0.1", 0, app, threaded=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
base = f"http://127.0.0.1:{server.server_port}"
print(f"listening {base}", flush=True)

for line in sys.stdin:
    words = line.split()
    with app.test_request_context(base_url=base):
        if words[:1] == ["subscribe"]:
            print(subscriber.subscribe(lease_seconds=600, **discover(words[1])), flush=True)
        elif words[:1] == ["unsubscribe"]:
            subscriber.unsubscribe(words[1])
            print("asked", flush=True)
        elif words == ["told"]:
            print(json.dumps({"events": events, "bodies": bodies}), flush=True)
os._exit(0)
