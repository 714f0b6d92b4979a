//! Documents, written entry by entry while they are being sent.
//!
//! The XML is written by hand, on purpose without the project's own writer: the reader is then tested against
//! an independent reading of the specification.

use std::fmt::Write as _;
use std::io::Write as _;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};

use super::clock::SimTime;

/// Documents are sent in pieces of about this many bytes.
const PIECE: usize = 32 * 1024;

const NAMESPACES: &str = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
    xmlns:rs=\"http://www.openarchives.org/rs/terms/\"";

/// A document, ready to be sent.
pub(crate) struct Document {
    pub(crate) modified: SimTime,
    pub(crate) etag: String,
    head: String,
    entries: Box<dyn Iterator<Item = String> + Send>,
    tail: &'static str,
}

/// How a document is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    Truncated,
    Malformed,
}

/// The bytes of a document, piece by piece.
pub(crate) struct DocumentPieces {
    parts: Box<dyn Iterator<Item = String> + Send>,
    gzip: Option<GzEncoder<Vec<u8>>>,
}

impl Document {
    pub(crate) fn of(
        modified: SimTime,
        etag: String,
        head: String,
        entries: impl Iterator<Item = String> + Send + 'static,
        root: &str,
    ) -> Document {
        let tail = if root == "urlset" { "</urlset>\n" } else { "</sitemapindex>\n" };
        Document { modified, etag, head, entries: Box::new(entries), tail }
    }

    /// The number of its entries; writes them all to count.
    pub(crate) fn count(self) -> usize {
        self.entries.count()
    }

    /// The bytes, plain or as a gzip file; damaged in the entry number `damage.1`.
    pub(crate) fn pieces(self, gzip: bool, damage: Option<(Damage, usize)>) -> DocumentPieces {
        let head = std::iter::once(self.head);
        let tail = std::iter::once(self.tail.to_owned());
        let parts: Box<dyn Iterator<Item = String> + Send> = match damage {
            None => Box::new(head.chain(self.entries).chain(tail)),
            Some((Damage::Truncated, place)) => {
                let entries = self.entries.take(place + 1).enumerate().map(move |(nth, mut entry)| {
                    if nth == place {
                        entry.truncate(entry.len() / 2);
                    }
                    entry
                });
                Box::new(head.chain(entries))
            }
            Some((Damage::Malformed, place)) => {
                let entries = self.entries.enumerate().map(move |(nth, entry)| {
                    if nth == place { entry.replace("</loc>", "</lco>") } else { entry }
                });
                Box::new(head.chain(entries).chain(tail))
            }
        };
        DocumentPieces { parts, gzip: gzip.then(|| GzEncoder::new(Vec::new(), Compression::fast())) }
    }
}

impl Iterator for DocumentPieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut plain = String::new();
        for part in self.parts.by_ref() {
            plain.push_str(&part);
            if plain.len() >= PIECE {
                break;
            }
        }
        let Some(mut encoder) = self.gzip.take() else {
            return (!plain.is_empty()).then(|| Bytes::from(plain));
        };
        // Writing into memory cannot fail.
        if plain.is_empty() {
            return Some(Bytes::from(encoder.finish().unwrap_or_default()));
        }
        let _ = encoder.write_all(plain.as_bytes()).and_then(|()| encoder.flush());
        let packed = std::mem::take(encoder.get_mut());
        self.gzip = Some(encoder);
        Some(Bytes::from(packed))
    }
}

pub(crate) fn head(root: &str, md: &str, links: &[(&str, String)]) -> String {
    let mut head = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root} {NAMESPACES}>\n");
    for (rel, href) in links {
        let _ = writeln!(head, "  <rs:ln rel=\"{rel}\" href=\"{}\"/>", escaped(href));
    }
    let _ = writeln!(head, "  {md}");
    head
}

pub(crate) fn url(loc: &str, lastmod: Option<SimTime>, md: &str) -> String {
    let lastmod = lastmod.map(|time| format!("<lastmod>{time}</lastmod>")).unwrap_or_default();
    format!("  <url><loc>{}</loc>{lastmod}{md}</url>\n", escaped(loc))
}

pub(crate) fn sitemap(loc: &str, md: &str) -> String {
    format!("  <sitemap><loc>{}</loc>{md}</sitemap>\n", escaped(loc))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_uri_is_escaped() {
        assert_eq!(escaped("a?b=1&c=<\">"), "a?b=1&amp;c=&lt;&quot;>");
    }
}
