"""Finds the inbox of a target, leaves a notification there and reads it back, all with py-ldnlib."""

import json
import sys

from ldnlib import Consumer, Sender

target, token = sys.argv[1:]
headers = {"Authorization": f"Bearer {token}"}
notification = json.load(sys.stdin)

inbox = Sender(allow_localhost=True).discover(target)
Sender(allow_localhost=True).send(inbox, notification, headers=dict(headers))
try:
    Sender().send(inbox, notification, headers=dict(headers))
    sys.exit("it sends to loopback addresses though it was not told to")
except ValueError:
    pass
consumer = Consumer()
assert consumer.discover(target) == inbox
listed = consumer.notifications(inbox, headers=dict(headers))
read = [consumer.notification(iri, headers=dict(headers)) for iri in listed]
print(json.dumps({"inbox": inbox, "listed": listed, "read": read}))
