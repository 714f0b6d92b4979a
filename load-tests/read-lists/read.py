"""Reads a Change List with the reference implementation, and prints what was in it."""

import json
import sys

from resync.change_list import ChangeList

changes = ChangeList()
changes.read(sys.argv[1])
print(json.dumps({
    "entries": len(changes),
    "declared_bytes": sum(resource.length for resource in changes),
    "hashes": sum(resource.sha256 is not None for resource in changes),
    "links": sum(len(resource.ln) for resource in changes),
    "is_whole": True,
}))
