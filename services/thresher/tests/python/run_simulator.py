"""Runs resync-simulator under a test's command, by lines on standard input.

    change   makes the changes of its configuration, then prints "changed, first a" and the first one's kind
    serve    GETs every resource there ever was, and prints one JSON object: {uri: bytes in hex, or null when it is gone}

Beyond that it only listens on loopback, at a port that is free, and prints "listening <base URI>" when it does.
"""

import json
import random
import runpy
import socket
import sys
import urllib.error
import urllib.request

import tornado.httpserver
from simulator.source import Source

program, config, logging, seed = sys.argv[1:]
random.seed(int(seed))

# Since Python 3.11 only sequences can be sampled; the simulator samples the keys of a dictionary.
sample = random.sample
random.sample = lambda population, k: sample(list(population), k)

bound = socket.socket()
bound.bind(("127.0.0.1", 0))
port = bound.getsockname()[1]
base = f"http://127.0.0.1:{port}"


def listen(server, _port, *_args, **_kwargs):
    bound.listen(128)
    bound.setblocking(False)
    server.add_sockets([bound])
    print("listening", base, flush=True)


tornado.httpserver.HTTPServer.listen = listen

simulate_changes = Source.simulate_changes


def obey(source):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for line in sys.stdin:
        if line.strip() == "change":
            source.no_events = 0
            simulate_changes(source)
            print("changed, first a", source.changememory.changes[0].change, flush=True)
        elif line.strip() == "serve":
            served = {}
            for number in range(1, source.max_res_id):
                uri = f"{base}{Source.RESOURCE_PATH}/{number}"
                try:
                    with opener.open(uri) as answer:
                        served[uri] = answer.read().hex()
                except urllib.error.HTTPError as error:
                    if error.code != 404:
                        raise
                    served[uri] = None
            print(json.dumps(served), flush=True)


Source.simulate_changes = obey

sys.argv = [program, "-c", config, "-l", logging, "-p", str(port), "-b", base]
runpy.run_path(program, run_name="__main__")
