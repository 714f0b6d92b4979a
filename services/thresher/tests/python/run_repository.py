"""Runs an OAI-PMH repository of a third-party library under a test's command, by lines on standard input.

    change C U D    creates C records, updates U, deletes D; prints "changed"
    advance N       sets its clock, which is five days late, N days forward; prints "advanced"

The first argument names the library:

    pyoai           all deletions are shown, for ever
    oai-repo        deletions are not shown: deleted records are in no list
    oai-repo-all    deleted records are in all lists, with their status, as the library's documents say. It leaves them
                    out of ListRecords, counts them in completeListSize, and writes no status

The repository has 1,000 records, of which 100 are deleted, and 100 a page. It listens on loopback, at a port that is
free, and prints "listening <base URL>" when it does.
"""

import sys
import threading
import types
import urllib.parse
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Python 3.13 has no module cgi, and earlier ones no parse_qs in it; pyoai wants both.
cgi = types.ModuleType("cgi")
cgi.parse_qs = urllib.parse.parse_qs
sys.modules["cgi"] = cgi

import oai_repo
import oai_repo.response
import oaipmh.server
from lxml import etree
from oaipmh import common, error, metadata, server

RECORDS, DELETED_EVERY, PAGE = 1_000, 10, 100
START = datetime(2024, 1, 1)
OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
DC = "http://purl.org/dc/elements/1.1/"
FORMAT = ("oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc.xsd", OAI_DC)
SETS = [("even", "Even numbers"), ("odd", "Odd numbers"), ("odd:three", "Odd multiples of three")]

guard = threading.RLock()
# No list of identifiers is due in the time of a test.
late = timedelta(days=5)


class Clock(datetime):
    """What the libraries take the time of an answer from."""

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) - late

    @classmethod
    def utcnow(cls):
        return cls.now(timezone.utc).replace(tzinfo=None)


oai_repo.response.datetime = oaipmh.server.datetime = Clock


class Kept:
    """A record of the repository."""

    def __init__(self, number, stamp):
        self.number, self.stamp, self.version, self.deleted = number, stamp, 1, False

    @property
    def identifier(self):
        return f"oai:peer.example:{self.number}/ä+b"

    @property
    def sets(self):
        if self.number % 2 == 0:
            return ["even"]
        return ["odd", "odd:three"] if self.number % 3 == 0 else ["odd"]

    @property
    def fields(self):
        return {
            "title": [f"Record {self.number}, version {self.version}"],
            "creator": ["Ångström & Söhne", "\U0001d538, <A> \"B\" 'C'"],
            "description": [f"  Two lines,\nand a tab\there: {'lorem ipsum ' * (self.number % 50)}"],
            "identifier": [f"https://peer.example/items/{self.number}?a=1&b=2"],
            "date": [self.stamp.strftime("%Y-%m-%d")],
        }


records = [Kept(number, START + timedelta(hours=number)) for number in range(RECORDS)]
for kept in records[::DELETED_EVERY]:
    kept.deleted = True


def now():
    return Clock.utcnow().replace(microsecond=0)


def change(creates, updates, deletes):
    live = [kept for kept in records if not kept.deleted]
    # Spread over the list, so that changes come from several of its pages.
    chosen = live[:: max(1, len(live) // (updates + deletes + 1))][: updates + deletes]
    for place, kept in enumerate(chosen):
        kept.stamp = now()
        if place < updates:
            kept.version += 1
        else:
            kept.deleted = True
    for _ in range(creates):
        records.append(Kept(len(records), now()))


def find(identifier):
    return next((kept for kept in records if kept.identifier == identifier), None)


def matching(from_=None, until=None, set_=None):
    """By datestamp, as the libraries' examples do it."""
    found = [kept for kept in records if not from_ or kept.stamp >= from_]
    found = [kept for kept in found if not until or kept.stamp <= until]
    found = [kept for kept in found if not set_ or set_ in kept.sets]
    return sorted(found, key=lambda kept: (kept.stamp, kept.number))


class OfPyoai:
    """What pyoai asks for."""

    def __init__(self, base):
        self.base = base

    def identify(self):
        return common.Identify(
            "pyoai", self.base, "2.0", ["a@peer.example"], START, "persistent", "YYYY-MM-DDThh:mm:ssZ", ["identity"]
        )

    def listSets(self):
        return [(spec, name, None) for spec, name in SETS]

    def listMetadataFormats(self, identifier=None):
        if identifier is not None and find(identifier) is None:
            raise error.IdDoesNotExistError(identifier)
        return [FORMAT]

    def getRecord(self, metadataPrefix, identifier):
        self.check(metadataPrefix)
        kept = find(identifier)
        if kept is None:
            raise error.IdDoesNotExistError(identifier)
        return self.record(kept)

    def listRecords(self, metadataPrefix, set=None, from_=None, until=None):
        self.check(metadataPrefix)
        return [self.record(kept) for kept in matching(from_, until, set)]

    def listIdentifiers(self, metadataPrefix, set=None, from_=None, until=None):
        self.check(metadataPrefix)
        return [self.record(kept)[0] for kept in matching(from_, until, set)]

    def check(self, prefix):
        if prefix != FORMAT[0]:
            raise error.CannotDisseminateFormatError(prefix)

    def record(self, kept):
        header = common.Header(None, kept.identifier, kept.stamp, kept.sets, kept.deleted)
        return header, None if kept.deleted else common.Metadata(None, kept.fields), None


class OfOaiRepo(oai_repo.DataInterface):
    """What oai-repo asks for."""

    limit = PAGE

    def __init__(self, base, lists_deleted):
        self.base, self.lists_deleted = base, lists_deleted

    def get_identify(self):
        return oai_repo.Identify(
            repository_name="oai-repo",
            base_url=self.base,
            admin_email=["a@peer-example.org"],
            earliest_datestamp=START.strftime("%Y-%m-%dT%H:%M:%SZ"),
            deleted_record="persistent" if self.lists_deleted else "no",
            granularity="YYYY-MM-DDThh:mm:ssZ",
        )

    def is_valid_identifier(self, identifier):
        kept = find(identifier)
        return kept is not None and (self.lists_deleted or not kept.deleted)

    def get_metadata_formats(self, identifier=None):
        return [oai_repo.MetadataFormat(*FORMAT)]

    def get_record_header(self, identifier):
        kept = find(identifier)
        status = "deleted" if kept.deleted else None
        return oai_repo.RecordHeader(identifier, kept.stamp, kept.sets, status)

    def get_record_metadata(self, identifier, metadataprefix):
        kept = find(identifier)
        if kept.deleted:
            return None
        root = etree.Element(f"{{{OAI_DC}}}dc", nsmap={"oai_dc": OAI_DC, "dc": DC})
        for name, values in kept.fields.items():
            for value in values:
                etree.SubElement(root, f"{{{DC}}}{name}").text = value
        return root

    def get_record_abouts(self, identifier):
        return []

    def list_set_specs(self, identifier=None, cursor=0):
        specs = [spec for spec, _ in SETS] if identifier is None else find(identifier).sets
        return specs, len(specs), None

    def get_set(self, setspec):
        name = dict(SETS).get(setspec)
        return name and oai_repo.Set(setspec, name, [])

    def list_identifiers(self, metadataprefix, filter_from=None, filter_until=None, filter_set=None, cursor=0):
        times = [time and time.replace(tzinfo=None) for time in (filter_from, filter_until)]
        found = [kept for kept in matching(*times, filter_set) if self.lists_deleted or not kept.deleted]
        return [kept.identifier for kept in found[cursor : cursor + PAGE]], len(found), None


def answer_of(library, base):
    if library == "pyoai":
        registry = metadata.MetadataRegistry()
        registry.registerWriter("oai_dc", server.oai_dc_writer)
        return server.Server(OfPyoai(base), registry, resumption_batch_size=PAGE).handleRequest
    repository = oai_repo.OAIRepository(OfOaiRepo(base, library == "oai-repo-all"))
    return lambda arguments: bytes(repository.process(arguments))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        if url.path != "/oai":
            return self.send(404, b"there is nothing here\n", "text/plain")
        arguments = urllib.parse.parse_qs(url.query, keep_blank_values=True)
        with guard:
            body = answer({name: values[0] for name, values in arguments.items()})
        self.send(200, body, "text/xml; charset=utf-8")

    def send(self, status, body, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
base = f"http://127.0.0.1:{httpd.server_port}/oai"
answer = answer_of(sys.argv[1], base)
threading.Thread(target=httpd.serve_forever, daemon=True).start()
print("listening", base, flush=True)

for line in sys.stdin:
    words = line.split()
    if words[:1] == ["change"]:
        with guard:
            change(*map(int, words[1:]))
        print("changed", flush=True)
    elif words[:1] == ["advance"]:
        late -= timedelta(days=int(words[1]))
        print("advanced", flush=True)
