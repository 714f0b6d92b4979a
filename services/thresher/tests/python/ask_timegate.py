"""Finds versions with PyPI's memento-client: python ask_timegate.py TIMEGATE TOKEN URI TIME...

Prints one line for each time: what the client finds, and the text of the version that it names as the closest.
"""

import json
import sys
from datetime import datetime

import requests
from memento_client import MementoClient

timegate, token, uri, *times = sys.argv[1:]
session = requests.Session()
session.headers["Authorization"] = f"Bearer {token}"
client = MementoClient(timegate_uri=timegate, check_native_timegate=False, session=session)
for time in times:
    found = client.get_memento_info(uri, datetime.fromisoformat(time))
    (closest,) = found["mementos"]["closest"]["uri"]
    found["text"] = session.get(closest).text
    print(json.dumps(found, default=str))
