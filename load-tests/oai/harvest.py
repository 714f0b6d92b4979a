"""Harvests a repository with a library, and writes the metadata of each record to a file of its own.

The arguments are the library, the base URL, and the directory.
"""

import os
import sys

from lxml import etree

METADATA = "{http://www.openarchives.org/OAI/2.0/}metadata"


def records(library, base):
    if library == "sickle":
        from sickle import Sickle

        yield from Sickle(base).ListRecords(metadataPrefix="oai_dc", ignore_deleted=True)
    else:
        from oaipmh_scythe import Scythe

        with Scythe(base) as scythe:
            yield from scythe.list_records(metadata_prefix="oai_dc", ignore_deleted=True)


library, base, into = sys.argv[1:]
os.makedirs(into)
for record in records(library, base):
    (element,) = record.xml.find(METADATA)
    name = record.header.identifier.rpartition(":")[2]
    with open(f"{into}/{name}.xml", "w", encoding="utf-8") as file:
        file.write(etree.tostring(element, encoding="unicode", with_tail=False))
