"""Harvests all records of an OAI-PMH repository with sickle, and prints one JSON object a record:
{"identifier", "datestamp", "deleted", "sets", "metadata"}. The metadata is the element as it came, null of a deleted
record. The arguments are the base URL and the metadata prefix.
"""

import json
import sys

import sickle.response
from lxml import etree
from sickle import Sickle

# By default it removes the blank text between elements.
sickle.response.XMLParser = etree.XMLParser(remove_blank_text=False, resolve_entities=False)

base, prefix = sys.argv[1:]
for record in Sickle(base).ListRecords(metadataPrefix=prefix):
    header = record.header
    metadata = None
    if not record.deleted:
        (element,) = record.xml.find("{http://www.openarchives.org/OAI/2.0/}metadata")
        metadata = etree.tostring(element, encoding="unicode", with_tail=False)
    line = {
        "identifier": header.identifier,
        "datestamp": header.datestamp,
        "deleted": record.deleted,
        "sets": header.setSpecs,
        "metadata": metadata,
    }
    print(json.dumps(line))
