"""Makes dumps with the classes of PyPI's resync and Python's own zipfile.

    make_dumps.py ROOT BASE COUNT PACKAGES

Below ROOT, which is served at BASE, it writes COUNT resources (res/N), a Resource List of them, a Resource Dump of PACKAGES packages,
and the Capability List dumps.xml that offers the dump; then it changes some resources, and writes a Change Dump on it, a Resource List of
what is there now, and the Capability List changes.xml that offers both dumps. The first word on standard input lets it go on to the changes.
"""

import hashlib
import os
import sys
import zipfile

from resync import CapabilityList, ChangeDump, Resource, ResourceDump, ResourceDumpManifest, ResourceList
from resync.change_dump_manifest import ChangeDumpManifest

root, base, count, packages = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
FIRST, SECOND, THIRD = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"
bodies = {}


def body_of(number, version):
    return (f"{number} in version {version}\n" * (number % 50 + version - 1)).encode()


def described(number, **more):
    body = bodies[number]
    return Resource(
        uri=f"{base}/res/{number}", length=len(body), sha256=hashlib.sha256(body).hexdigest(), md5=hashlib.md5(body).hexdigest(), **more
    )


def write(name, document):
    with open(os.path.join(root, name), "w", encoding="utf-8") as out:
        out.write(document.as_xml())


def put(number, version):
    bodies[number] = body_of(number, version)
    with open(os.path.join(root, "res", str(number)), "wb") as out:
        out.write(bodies[number])


def package(name, manifest, members):
    path = os.path.join(root, name)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.xml", manifest.as_xml())
        for member, body in members:
            archive.writestr(member, body)
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    return Resource(uri=f"{base}/{name}", mime_type="application/zip", length=os.path.getsize(path), sha256=digest)


def offers(name, **documents):
    capabilities = CapabilityList()
    for capability, uri in documents.items():
        capabilities.add_capability(uri=f"{base}/{uri}", name=capability)
    write(name, capabilities)


def resource_list(name, at):
    listed = ResourceList()
    listed.md_at = at
    for number in sorted(bodies):
        listed.add(described(number))
    write(name, listed)


os.makedirs(os.path.join(root, "res"))
for number in range(count):
    put(number, 1)
resource_list("list1.xml", FIRST)
dump = ResourceDump()
dump.md_at = FIRST
for part in range(packages):
    manifest = ResourceDumpManifest()
    manifest.md_at = FIRST
    members = []
    for number in range(part, count, packages):
        path = f"/resources/{number}.txt"
        manifest.add(described(number, path=path))
        members.append((path[1:], bodies[number]))
    dump.add(package(f"part{part}.zip", manifest, members))
write("dump.xml", dump)
offers("dumps.xml", resourcedump="dump.xml")
print("made", flush=True)

sys.stdin.readline()
manifest = ChangeDumpManifest()
manifest.md_from = FIRST
members = []


def changed(number, change, hour):
    when = f"2026-01-01T{hour:02}:00:00Z"
    if change == "deleted":
        manifest.add(Resource(uri=f"{base}/res/{number}", change=change, datetime=when))
        return
    path = f"/changes/{hour}/{number}"
    manifest.add(described(number, change=change, datetime=when, path=path))
    members.append((path[1:], bodies[number]))


for hour, version in ((1, 2), (2, 3)):
    for number in range(0, count, 10):
        put(number, version)
        changed(number, "updated", hour)
for number in range(5, count, 10):
    del bodies[number]
    os.remove(os.path.join(root, "res", str(number)))
    changed(number, "deleted", 3)
for number in range(count, count + count // 10):
    put(number, 1)
    changed(number, "created", 4)
changes = ChangeDump()
changes.md_from = FIRST
entry = package("changes.zip", manifest, members)
entry.md_from, entry.md_until = FIRST, SECOND
changes.add(entry)
write("changedump.xml", changes)
resource_list("list2.xml", THIRD)
offers("dumps.xml", resourcedump="dump.xml", changedump="changedump.xml")
print("changed", flush=True)
sys.stdin.readline()
