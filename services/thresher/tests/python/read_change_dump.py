"""Reads a Change Dump with PyPI's resync, and checks the digest of each member. Prints a JSON list of packages."""

import hashlib
import io
import json
import sys
import urllib.request
import zipfile
from collections import Counter

from resync.change_dump import ChangeDump
from resync.change_dump_manifest import ChangeDumpManifest


def get(url):
    with urllib.request.urlopen(url) as response:
        return response.read()


dump = ChangeDump()
dump.parse(str_data=get(sys.argv[1]).decode())
told = []
for package in dump:
    body = get(package.uri)
    if package.length is not None:
        assert len(body) == package.length, package.uri
    archive = zipfile.ZipFile(io.BytesIO(body))
    assert archive.testzip() is None
    manifest = ChangeDumpManifest()
    manifest.parse(str_data=archive.read("manifest.xml").decode())
    bodies = 0
    for change in manifest:
        if change.change == "deleted":
            assert change.path is None, change.uri
            continue
        found = hashlib.sha256(archive.read(change.path.lstrip("/"))).hexdigest()
        assert found == change.sha256, change.uri
        bodies += 1
    told.append({"changes": Counter(change.change for change in manifest), "bodies": bodies})
print(json.dumps(told))
