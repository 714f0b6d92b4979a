//! Small documents, and the complete result of reading one.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::io::Read;

use resourcesync::{BadEntry, Entry, Header, Item, Mode, Options, Quirk, ReadError, Reader, Summary};

pub(crate) const NAMESPACES: &str =
    r#"xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/""#;

/// A `urlset` with this content.
pub(crate) fn urlset(content: &str) -> String {
    format!("<urlset {NAMESPACES}>{content}</urlset>")
}

/// A Resource List with these entries.
pub(crate) fn resource_list(entries: &str) -> String {
    urlset(&format!(r#"<rs:md capability="resourcelist" at="2013-01-03T09:00:00Z"/>{entries}"#))
}

/// A Change List with these entries.
pub(crate) fn change_list(entries: &str) -> String {
    urlset(&format!(r#"<rs:md capability="changelist" from="2013-01-01T00:00:00Z"/>{entries}"#))
}

/// A change of `http://e.org/<name>`, with more attributes.
pub(crate) fn change(name: &str, attributes: &str) -> String {
    format!("<url><loc>http://e.org/{name}</loc><rs:md {attributes}/></url>")
}

/// The result of a reading.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) header: Option<Header>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) bad: Vec<BadEntry>,
    pub(crate) error: Option<ReadError>,
    pub(crate) summary: Summary,
}

impl Reading {
    pub(crate) fn count(&self, quirk: Quirk) -> u64 {
        self.summary.quirks.count(quirk)
    }

    pub(crate) fn locs(&self) -> Vec<&str> {
        self.entries.iter().map(|entry| entry.loc.as_str()).collect()
    }
}

/// For a reader in the year 2100.
pub(crate) fn in_2100(mode: Mode) -> Options {
    Options { mode, latest: "2100-01-01T00:00:00Z".parse().ok(), ..Options::default() }
}

pub(crate) fn read(document: &str) -> Reading {
    read_with(document.as_bytes(), in_2100(Mode::Tolerant))
}

pub(crate) fn read_with(bytes: impl Read, options: Options) -> Reading {
    let mut reader = Reader::new(bytes, options).unwrap();
    let header = reader.header().ok().cloned();
    let mut entries = Vec::new();
    let mut bad = Vec::new();
    let error = loop {
        match reader.next() {
            Ok(Some(Item::Entry(entry))) => entries.push(*entry),
            Ok(Some(Item::Bad(entry))) => bad.push(entry),
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    let summary = reader.summary();
    assert_eq!((entries.len() as u64, bad.len() as u64), (summary.entries, summary.bad));
    Reading { header, entries, bad, error, summary }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
