#!/usr/bin/env python3
"""Prints permissions.conf: a NATS user for each service, which may do at the server what the service does and nothing else.

    deploy/nats/build.py > deploy/nats/permissions.conf

USERS is the one place where this is said. The fleet on Kubernetes, that of deploy/local/up and the tests read permissions.conf.
"""

# `nats.namespace` of all services: the names of their streams, subjects and buckets begin so.
NAMESPACE = "thresher"

STAGES = ["fetch", "verify", "open", "unpack", "outcomes", "notices", "dead"]
# Buckets of libs/control; `lanes` and `places` are those of libs/bus.
CONTROL = [
    "sources", "names", "runs", "tasks", "runs-past", "leases", "publications", "hub-leases", "hub-hints", "members", "rests",
    "sessions", "submissions", "words", "plans", "hints", "outbox", "readings", "subscriptions", "samples",
]
# Those of the publishers alone.
PUBLISHING = ["publications", "hub-leases", "hub-hints"]
BUS = ["lanes", "places"]

# What each user does. `makes`: streams and buckets that it makes and changes. `takes`: stages whose messages it receives.
# `sends`: stages that it sends messages to. `manages`: stages whose consumers it opens and closes without receiving from them.
# `purges`: stages that it may empty. `sees`: buckets that it finds, without a look at a value. `reads`, `writes`: buckets.
# A service opens all buckets of libs/control at its start, so it sees those that it does not read.
USERS = {
    "scheduler": {
        "makes": True,
        "takes": ["outcomes", "notices", "dead"],
        "sends": ["fetch", "verify", "open", "unpack", "outcomes", "notices", "dead"],
        "manages": ["fetch"],
        "purges": ["fetch"],
        # A move of a Source takes its name along.
        "reads": [name for name in CONTROL if name not in ("sessions", "samples", *PUBLISHING)] + BUS,
        "writes": [
            name for name in CONTROL if name not in ("sessions", "submissions", "samples", *PUBLISHING)
        ] + BUS,
    },
    "fetcher": {
        "takes": ["fetch"],
        "sends": ["verify", "outcomes", "dead"],
        "sees": CONTROL,
        "reads": ["members", "rests", *BUS],
        "writes": ["members", "rests", "places"],
    },
    "unpacker": {"takes": ["open", "unpack"], "sends": ["outcomes", "dead"], "reads": BUS},
    "verifier": {"takes": ["verify"], "sends": ["outcomes", "dead"], "reads": BUS},
    "gateway": {
        "sends": ["notices"],
        # Notifications that others have left: the gateway alone keeps them and shows them.
        "inbox": True,
        "sees": CONTROL,
        "reads": CONTROL + BUS,
        "writes": [
            "sources", "names", "runs", "tasks", "runs-past", "sessions", "submissions", "words", "plans", "hints",
            "subscriptions", "samples",
        ],
    },
    # It sends no messages, and receives none: it has no connection to the bus.
    "publisher": {
        "sees": CONTROL,
        "reads": ["sources", "runs", "members", *PUBLISHING],
        "writes": ["members", *PUBLISHING],
    },
}


def stream(name):
    return f"{NAMESPACE}-{name}"


def bucket(name):
    return f"KV_{stream(name)}"


def publishes(told):
    """The subjects that a user publishes to."""
    api, subjects = "$JS.API", []
    if told.get("makes"):
        subjects.append(f"{api}.INFO")
        for name in [*map(stream, STAGES), *map(bucket, CONTROL + BUS)]:
            subjects += [f"{api}.STREAM.CREATE.{name}", f"{api}.STREAM.UPDATE.{name}", f"{api}.STREAM.INFO.{name}"]
    for stage in told.get("sends", []):
        subjects.append(f"{NAMESPACE}.{stage}.>")
    for stage in told.get("takes", []) + told.get("manages", []):
        name = stream(stage)
        subjects += [f"{api}.STREAM.INFO.{name}", f"{api}.CONSUMER.CREATE.{name}.>", f"{api}.CONSUMER.INFO.{name}.>"]
        subjects += [f"{api}.CONSUMER.PAUSE.{name}.>"] if stage == "fetch" else []
    for stage in told.get("takes", []):
        subjects += [f"{api}.CONSUMER.MSG.NEXT.{stream(stage)}.>", f"$JS.ACK.{stream(stage)}.>"]
    if told.get("makes"):
        subjects += [f"{api}.CONSUMER.DELETE.{stream(stage)}.>" for stage in told["takes"] + told["manages"]]
    subjects += [f"{api}.STREAM.PURGE.{stream(stage)}" for stage in told.get("purges", [])]
    if told.get("inbox"):
        name = stream("inbox")
        subjects += [f"{name}.*.*"]
        subjects += [f"{api}.STREAM.{verb}.{name}" for verb in ("CREATE", "UPDATE", "INFO", "MSG.GET")]
        subjects += [f"{api}.DIRECT.GET.{name}", f"{api}.DIRECT.GET.{name}.>"]
        subjects += [f"{api}.CONSUMER.{verb}.{name}.>" for verb in ("CREATE", "INFO", "DELETE", "MSG.NEXT")]
        subjects += [f"{api}.CONSUMER.CREATE.{name}"]
    for name in map(bucket, [*told.get("sees", []), *told.get("reads", [])]):
        subjects.append(f"{api}.STREAM.INFO.{name}")
    for name in map(bucket, told.get("reads", [])):
        subjects += [f"{api}.STREAM.MSG.GET.{name}", f"{api}.DIRECT.GET.{name}", f"{api}.DIRECT.GET.{name}.>"]
        subjects += [f"{api}.CONSUMER.CREATE.{name}", f"{api}.CONSUMER.CREATE.{name}.>"]
        subjects += [f"{api}.CONSUMER.INFO.{name}.>", f"{api}.CONSUMER.DELETE.{name}.>", f"$JS.FC.{name}.>"]
    subjects += [f"$KV.{stream(name)}.>" for name in told.get("writes", [])]
    return list(dict.fromkeys(subjects))


def permissions():
    """The configuration, as text."""
    lines = [
        "# A NATS user for each service. Made by deploy/nats/build.py: change it there, then",
        "#   deploy/nats/build.py > deploy/nats/permissions.conf",
        "# Passwords come from the server's environment. Each begins with a letter: NATS takes digits for a number.",
        "authorization {",
        "  users = [",
    ]
    for user, told in USERS.items():
        lines += [
            "    {",
            f"      user: {user}",
            f"      password: $THRESHER_NATS_{user.upper()}",
            "      permissions: {",
            "        publish: [",
            *[f'          "{subject}"' for subject in publishes(told)],
            "        ]",
            # Answers come there, and nowhere else: no user hears what another is told.
            f'        subscribe: ["_INBOX.{user}.>"]',
            "      }",
            "    }",
        ]
    return "\n".join([*lines, "  ]", "}", ""])


if __name__ == "__main__":
    print(permissions(), end="")
