use std::fmt;

use crate::record::MetadataFormat;

/// A metadata format whose records are understood: where its links to content stand.
///
/// A prefix is a name local to its repository, so formats are told by namespace and root element; the prefix decides
/// only where those do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KnownFormat {
    /// Dublin Core, which every repository has.
    OaiDc,
    /// Qualified Dublin Core.
    Qdc,
    /// Theses: ETD-MS.
    Etdms,
    /// MODS.
    Mods,
    /// METS.
    Mets,
    /// MARC 21 in XML.
    Marcxml,
    /// MPEG-21 DIDL.
    Didl,
    /// OAI-ORE in Atom.
    Ore,
    /// OpenAIRE Literature.
    OaiOpenaire,
    /// RIOXX.
    Rioxx,
    /// JPCOAR.
    Jpcoar,
    /// DataCite.
    Datacite,
    /// DataCite in the envelope of its own repository.
    OaiDatacite,
    /// Europeana Data Model.
    Edm,
    /// Learning Object Metadata.
    Lom,
    /// DSpace's own.
    Xoai,
}

/// A row of the table of formats.
struct Row {
    format: KnownFormat,
    name: &'static str,
    /// Prefixes that repositories use for it.
    prefixes: &'static [&'static str],
    /// The namespaces of its root element, of all versions.
    namespaces: &'static [&'static str],
    root: &'static str,
    schema: &'static str,
    /// Higher is richer: files with fixity, then files by role, then pages and description.
    richness: u8,
    names_files: bool,
    declares_fixity: bool,
}

const TABLE: [Row; 16] = [
    Row {
        format: KnownFormat::OaiDc,
        name: "oai_dc",
        prefixes: &["oai_dc", "dc"],
        namespaces: &["http://www.openarchives.org/OAI/2.0/oai_dc/"],
        root: "dc",
        schema: "http://www.openarchives.org/OAI/2.0/oai_dc.xsd",
        richness: 1,
        names_files: false,
        declares_fixity: false,
    },
    Row {
        format: KnownFormat::Qdc,
        name: "qdc",
        prefixes: &["qdc", "oai_qdc"],
        namespaces: &["http://purl.org/dc/terms/"],
        root: "record",
        schema: "http://dublincore.org/schemas/xmls/qdc/2006/01/06/dcterms.xsd",
        richness: 3,
        names_files: false,
        declares_fixity: false,
    },
    Row {
        format: KnownFormat::Etdms,
        name: "etdms",
        prefixes: &["etdms", "oai_etdms"],
        namespaces: &[
            "http://www.ndltd.org/standards/metadata/etdms/1.0/",
            "http://www.ndltd.org/standards/metadata/etdms/1.1/",
        ],
        root: "thesis",
        schema: "http://www.ndltd.org/standards/metadata/etdms/1.0/etdms.xsd",
        richness: 2,
        names_files: false,
        declares_fixity: false,
    },
    Row {
        format: KnownFormat::Mods,
        name: "mods",
        prefixes: &["mods", "oai_mods"],
        namespaces: &["http://www.loc.gov/mods/v3"],
        root: "mods",
        schema: "http://www.loc.gov/standards/mods/v3/mods-3-7.xsd",
        richness: 8,
        names_files: true,
        declares_fixity: false,
    },
    Row {
        format: KnownFormat::Mets,
        name: "mets",
        prefixes: &["mets", "oai_mets"],
        namespaces: &["http://www.loc.gov/METS/"],
        root: "mets",
        schema: "http://www.loc.gov/standards/mets/mets.xsd",
        richness: 15,
        names_files: true,
        declares_fixity: true,
    },
    Row {
        format: KnownFormat::Marcxml,
        name: "marcxml",
        prefixes: &["marcxml", "marc21", "marc", "oai_marc"],
        namespaces: &["http://www.loc.gov/MARC21/slim"],
        root: "record",
        schema: "http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd",
        richness: 7,
        names_files: true,
        declares_fixity: false,
    },
    Row {
        format: KnownFormat::Didl,
        name: "didl",
        prefixes: &["didl", "nl_didl", "oai_didl"],
        namespaces: &["urn:mpeg:mpeg21:2002:02-DIDL-NS", "urn:mpeg:mpeg21:2002:01-DIDL-NS"],
        root: "DIDL",
        schema: "http://standards.iso.org/ittf/PubliclyAvailableStandards/MPEG-21_schema_files/did/didl.xsd",
        richness: 11,
        names_files: true,
        declares_fixity: false,
    },
    Row {
        format: KnownFormat::Ore,
        name: "ore",
        prefixes: &["ore", "oai_ore"],
        namespaces: &["http://www.w3.org/2005/Atom"],
        root: "entry",
        schema: "http://www.kbcafe.com/rss/atom.xsd.xml",
        richness: 10,
        names_files: true,
        declares_fixity: false,
    },
    Row {
        format: KnownFormat::OaiOpenaire,
        name: "oai_openaire",
        prefixes: &["oai_openaire"],
        namespaces: &["http://namespace.openaire.eu/schema/oaire/"],
        root: "resource",
        schema: "https://www.openaire.eu/schema/repo-lit/4.0/openaire.xsd",
        richness: 14,
        names_files: true,
        declares_fixity: false,
    },
    Row {
        format: KnownFormat::Rioxx,
        name: "rioxx",
        prefixes: &["rioxx"],
        namespaces: &[
            "http://www.rioxx.net/schema/v3.0/rioxx/",
            "http://www.rioxx.net/schema/v2.0/rioxx/",
            "",
        ],
        root: "rioxx",
        schema: "http://www.rioxx.net/schema/v3.0/rioxx/rioxx.xsd",
        richness: 13,
        names_files: true,
        declares_fixity: false,
    },
    Row {
        format: KnownFormat::Jpcoar,
        name: "jpcoar",
        prefixes: &["jpcoar", "jpcoar_2.0", "jpcoar_1.0"],
        namespaces: &[
            "https://github.com/JPCOAR/schema/blob/master/2.0/",
            "https://github.com/JPCOAR/schema/blob/master/1.0/",
            "https://irdb.nii.ac.jp/schema/jpcoar/1.0/",
        ],
        root: "jpcoar",
        schema: "https://raw.githubusercontent.com/JPCOAR/schema/master/2.0/jpcoar_scm.xsd",
        richness: 12,
        names_files: true,
        declares_fixity: false,
    },
    Row {
        format: KnownFormat::Datacite,
        name: "datacite",
        prefixes: &["datacite", "datacite4", "datacite3"],
        namespaces: &[
            "http://datacite.org/schema/kernel-4",
            "http://datacite.org/schema/kernel-3",
            "http://datacite.org/schema/kernel-2.2",
        ],
        root: "resource",
        schema: "http://schema.datacite.org/meta/kernel-4/metadata.xsd",
        richness: 5,
        names_files: false,
        declares_fixity: false,
    },
    Row {
        format: KnownFormat::OaiDatacite,
        name: "oai_datacite",
        prefixes: &["oai_datacite", "oai_datacite4", "oai_datacite3"],
        namespaces: &["http://schema.datacite.org/oai/oai-1.1/", "http://schema.datacite.org/oai/oai-1.0/"],
        root: "oai_datacite",
        schema: "http://schema.datacite.org/oai/oai-1.1/oai.xsd",
        richness: 4,
        names_files: false,
        declares_fixity: false,
    },
    Row {
        format: KnownFormat::Edm,
        name: "edm",
        prefixes: &["edm", "ese", "oai_edm"],
        namespaces: &["http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.europeana.eu/schemas/edm/"],
        root: "RDF",
        schema: "http://www.europeana.eu/schemas/edm/EDM.xsd",
        richness: 9,
        names_files: true,
        declares_fixity: false,
    },
    Row {
        format: KnownFormat::Lom,
        name: "lom",
        prefixes: &["lom", "oai_lom"],
        namespaces: &["http://ltsc.ieee.org/xsd/LOM"],
        root: "lom",
        schema: "http://ltsc.ieee.org/xsd/lomv1.0/lom.xsd",
        richness: 6,
        names_files: true,
        declares_fixity: false,
    },
    Row {
        format: KnownFormat::Xoai,
        name: "xoai",
        prefixes: &["xoai"],
        namespaces: &["http://www.lyncode.com/xoai"],
        root: "metadata",
        schema: "http://www.lyncode.com/xsd/xoai.xsd",
        richness: 16,
        names_files: true,
        declares_fixity: true,
    },
];

impl KnownFormat {
    fn row(self) -> &'static Row {
        // The table has a row for each, as a test says.
        TABLE.iter().find(|row| row.format == self).unwrap_or(&TABLE[0])
    }

    /// All formats.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.format)
    }

    /// The stable name, which is also its most common prefix.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    /// The format of a record whose root element has this namespace and local name.
    pub fn of_root(namespace: &str, root: &str) -> Option<Self> {
        let namespace = namespace.trim();
        let is_it = |row: &&Row| row.root == root && row.namespaces.contains(&namespace);
        TABLE.iter().find(is_it).map(|row| row.format)
    }

    /// The format of a row of ListMetadataFormats: by namespace, and by prefix where the namespace is unknown or
    /// shared.
    pub fn of_format(format: &MetadataFormat) -> Option<Self> {
        let namespace = format.namespace.trim();
        let has_prefix = |row: &&Row| row.prefixes.contains(&format.prefix.as_str());
        let by_namespace = |row: &&Row| !namespace.is_empty() && row.namespaces.contains(&namespace);
        let both = TABLE.iter().find(|row| has_prefix(row) && by_namespace(row));
        both.or_else(|| TABLE.iter().find(by_namespace))
            .or_else(|| TABLE.iter().find(|row| has_prefix(row) && !is_elsewhere(row, namespace)))
            .map(|row| row.format)
    }

    /// How rich its records are; higher is richer. Files with fixity come first, then files by their role, then
    /// landing pages and description.
    pub fn richness(self) -> u8 {
        self.row().richness
    }

    /// Whether its records name files as files. Of others, only landing pages are known.
    pub fn names_files(self) -> bool {
        self.row().names_files
    }

    /// Whether its records declare lengths and digests of files.
    pub fn declares_fixity(self) -> bool {
        self.row().declares_fixity
    }

    /// The row of ListMetadataFormats for it, with its common prefix.
    pub fn metadata_format(self) -> MetadataFormat {
        let row = self.row();
        MetadataFormat {
            prefix: row.name.to_owned(),
            schema: row.schema.to_owned(),
            namespace: row.namespaces.first().copied().unwrap_or_default().to_owned(),
        }
    }
}

/// Whether a namespace is that of something else than this format, so that a prefix of it does not count.
fn is_elsewhere(row: &Row, namespace: &str) -> bool {
    // A prefix with a namespace of its own may be anything; only oai_dc is fixed by the protocol.
    !namespace.is_empty() && row.format != KnownFormat::OaiDc
}

impl fmt::Display for KnownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The format to harvest if the operator names none: the richest known one, else `oai_dc`, else the first.
pub fn richest(formats: &[MetadataFormat]) -> Option<&MetadataFormat> {
    let known =
        formats.iter().filter_map(|format| Some((KnownFormat::of_format(format)?.richness(), format)));
    // Of equals the first, since repositories list the preferred version first.
    let richest = known.rev().max_by_key(|(richness, _)| *richness).map(|(_, format)| format);
    richest.or_else(|| formats.iter().find(|format| format.prefix == "oai_dc")).or_else(|| formats.first())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn format(prefix: &str, namespace: &str) -> MetadataFormat {
        MetadataFormat { prefix: prefix.to_owned(), schema: String::new(), namespace: namespace.to_owned() }
    }

    #[test]
    fn each_format_has_one_row_and_a_rank_of_its_own() {
        let rows: BTreeSet<_> = TABLE.iter().map(|row| row.format).collect();
        let ranks: BTreeSet<_> = TABLE.iter().map(|row| row.richness).collect();
        assert_eq!((rows.len(), ranks.len()), (TABLE.len(), TABLE.len()));
        for known in KnownFormat::all() {
            assert_eq!(KnownFormat::of_format(&known.metadata_format()), Some(known), "{known}");
        }
    }

    #[test]
    fn a_format_is_told_by_its_namespace_and_not_by_its_prefix() {
        assert_eq!(KnownFormat::of_format(&format("x", "http://www.loc.gov/METS/")), Some(KnownFormat::Mets));
        assert_eq!(KnownFormat::of_format(&format("mets", "urn:something-else")), None);
        assert_eq!(KnownFormat::of_format(&format("rioxx", "")), Some(KnownFormat::Rioxx));
        assert_eq!(
            KnownFormat::of_root("http://www.loc.gov/MARC21/slim", "record"),
            Some(KnownFormat::Marcxml)
        );
        assert_eq!(KnownFormat::of_root("http://www.loc.gov/MARC21/slim", "collection"), None);
    }

    #[test]
    fn the_richest_known_format_is_taken_and_oai_dc_where_none_is_known() {
        let dc = format("oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc/");
        let mets = format("mets", "http://www.loc.gov/METS/");
        let own = format("own", "urn:own");
        assert_eq!(richest(&[dc.clone(), own.clone(), mets.clone()]), Some(&mets));
        assert_eq!(richest(&[own.clone(), dc.clone()]), Some(&dc));
        assert_eq!(richest(std::slice::from_ref(&own)), Some(&own));
        assert_eq!(richest(&[]), None);
    }
}
