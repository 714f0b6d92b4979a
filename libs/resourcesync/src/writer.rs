use std::fmt::{self, Display, Write as _};
use std::io::{self, Write};

use crate::capability::Root;
use crate::entry::Entry;
use crate::header::Header;
use crate::link::Link;
use crate::metadata::Metadata;
use crate::{RESOURCESYNC_NAMESPACE, SITEMAP_NAMESPACE};

/// Writes one document, entry by entry.
///
/// The output is always well-formed. The caller decides which attributes a kind of document needs. Each entry
/// goes to the stream in one `write`, so pass a buffered one.
pub struct Writer<W> {
    out: W,
    root: Root,
    buf: String,
}

/// Why a document cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The stream failed.
    #[error("the document could not be written: {0}")]
    Io(#[from] io::Error),
    /// A value holds a character that XML cannot express.
    #[error("{field} holds the character U+{code:04X}, which XML cannot hold", code = u32::from(*.character))]
    NotText {
        /// The attribute or element.
        field: &'static str,
        /// The character.
        character: char,
    },
}

impl<W: Write> Writer<W> {
    /// Writes the beginning of a document: the root element, its `rs:md` and its `rs:ln`.
    ///
    /// # Errors
    /// [`WriteError::NotText`] for a value that XML cannot hold, [`WriteError::Io`] when the stream fails.
    pub fn new(out: W, header: &Header) -> Result<Self, WriteError> {
        let mut writer = Self { out, root: header.root, buf: String::new() };
        writer.push(format_args!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{} xmlns=\"{SITEMAP_NAMESPACE}\"\n  xmlns:rs=\"{RESOURCESYNC_NAMESPACE}\">\n",
            header.root
        ));
        for link in &header.links {
            writer.link("  ", link)?;
        }
        let said = Metadata {
            capability: header.capability.clone(),
            at: header.at,
            completed: header.completed,
            from: header.from,
            until: header.until,
            ..Metadata::default()
        };
        writer.metadata("  ", &said)?;
        writer.flush_buf()?;
        Ok(writer)
    }

    /// Writes an entry: a `url`, or a `sitemap` in an index.
    ///
    /// # Errors
    /// As [`Writer::new`]; an entry that fails is not written at all.
    pub fn write(&mut self, entry: &Entry) -> Result<(), WriteError> {
        let result = self.entry(entry);
        if result.is_err() {
            self.buf.clear();
        }
        result
    }

    /// Writes the end of the document and returns the stream, flushed.
    ///
    /// # Errors
    /// [`WriteError::Io`] when the stream fails.
    pub fn finish(mut self) -> Result<W, WriteError> {
        let root = self.root;
        self.push(format_args!("</{root}>\n"));
        self.flush_buf()?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn entry(&mut self, entry: &Entry) -> Result<(), WriteError> {
        let element = self.root.entry_element();
        self.push(format_args!("  <{element}>\n"));
        self.text("loc", &entry.loc)?;
        if let Some(lastmod) = &entry.lastmod {
            self.push(format_args!("    <lastmod>{lastmod}</lastmod>\n"));
        }
        if let Some(frequency) = &entry.change_frequency {
            self.text("changefreq", frequency)?;
        }
        if let Some(priority) = &entry.priority {
            self.text("priority", priority)?;
        }
        self.metadata("    ", &entry.metadata)?;
        for link in &entry.links {
            self.link("    ", link)?;
        }
        self.push(format_args!("  </{element}>\n"));
        self.flush_buf()
    }

    fn metadata(&mut self, indent: &str, metadata: &Metadata) -> Result<(), WriteError> {
        if metadata.is_empty() {
            return Ok(());
        }
        self.push(format_args!("{indent}<rs:md"));
        self.attribute("capability", &metadata.capability)?;
        self.attribute("at", &metadata.at)?;
        self.attribute("completed", &metadata.completed)?;
        self.attribute("from", &metadata.from)?;
        self.attribute("until", &metadata.until)?;
        self.attribute("change", &metadata.change)?;
        self.attribute("datetime", &metadata.datetime)?;
        self.attribute("hash", &metadata.hash)?;
        self.attribute("length", &metadata.length)?;
        self.attribute("type", &metadata.media_type)?;
        self.attribute("encoding", &metadata.encoding)?;
        self.attribute("path", &metadata.path)?;
        self.buf.push_str("/>\n");
        Ok(())
    }

    fn link(&mut self, indent: &str, link: &Link) -> Result<(), WriteError> {
        self.push(format_args!("{indent}<rs:ln"));
        self.attribute("rel", &Some(&link.rel))?;
        self.attribute("href", &Some(&link.href))?;
        self.attribute("pri", &link.pri)?;
        self.attribute("modified", &link.modified)?;
        self.attribute("hash", &link.hash)?;
        self.attribute("length", &link.length)?;
        self.attribute("type", &link.media_type)?;
        self.attribute("encoding", &link.encoding)?;
        self.attribute("path", &link.path)?;
        // A prefix would need the declaration of its namespace.
        for (name, value) in link.other.iter().filter(|(name, _)| is_plain_name(name)) {
            self.push(format_args!(" {name}=\""));
            self.escaped("attribute", value)?;
            self.buf.push('"');
        }
        self.buf.push_str("/>\n");
        Ok(())
    }

    fn attribute(&mut self, name: &'static str, value: &Option<impl Display>) -> Result<(), WriteError> {
        let Some(value) = value else { return Ok(()) };
        self.push(format_args!(" {name}=\""));
        self.escaped(name, value)?;
        self.buf.push('"');
        Ok(())
    }

    fn text(&mut self, element: &'static str, text: &str) -> Result<(), WriteError> {
        self.push(format_args!("    <{element}>"));
        self.escaped(element, text)?;
        self.push(format_args!("</{element}>\n"));
        Ok(())
    }

    fn escaped(&mut self, field: &'static str, value: impl Display) -> Result<(), WriteError> {
        let mut escape = Escape { out: &mut self.buf, refused: None };
        // Writing to a string fails only when Escape refuses a character, which it then reports.
        let _ = write!(escape, "{value}");
        match escape.refused {
            Some(character) => Err(WriteError::NotText { field, character }),
            None => Ok(()),
        }
    }

    fn push(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.buf.write_fmt(text);
    }

    fn flush_buf(&mut self) -> Result<(), WriteError> {
        self.out.write_all(self.buf.as_bytes())?;
        self.buf.clear();
        Ok(())
    }
}

/// Escapes for attributes and text alike. Line ends and tabs become references, as parsers would turn them
/// into blanks.
struct Escape<'o> {
    out: &'o mut String,
    refused: Option<char>,
}

impl fmt::Write for Escape<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.bytes().position(begins_special) {
            let (plain, special) = rest.split_at(at);
            self.out.push_str(plain);
            let mut characters = special.chars();
            match characters.next() {
                Some('&') => self.out.push_str("&amp;"),
                Some('<') => self.out.push_str("&lt;"),
                Some('>') => self.out.push_str("&gt;"),
                Some('"') => self.out.push_str("&quot;"),
                Some('\t') => self.out.push_str("&#9;"),
                Some('\n') => self.out.push_str("&#10;"),
                Some('\r') => self.out.push_str("&#13;"),
                Some(character) if !is_xml_character(character) => {
                    self.refused = Some(character);
                    return Err(fmt::Error);
                }
                other => self.out.extend(other),
            }
            rest = characters.as_str();
        }
        self.out.push_str(rest);
        Ok(())
    }
}

/// Whether a character that begins with this byte may need escaping, or be refused. Few do, and the text
/// between them is copied at once.
fn begins_special(byte: u8) -> bool {
    matches!(byte, b'&' | b'<' | b'>' | b'"') || may_begin_refused(byte)
}

/// Whether a character that XML forbids begins with this byte: a control character, or one from U+F000 on.
fn may_begin_refused(byte: u8) -> bool {
    matches!(byte, 0..0x20 | 0xef)
}

/// Whether XML can hold a character. It can hold all but control characters, U+FFFE and U+FFFF.
pub(crate) fn is_xml_character(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r') || !matches!(character, '\0'..' ' | '\u{fffe}' | '\u{ffff}')
}

/// Whether XML can hold a text, so that a [`Writer`] takes it as a value.
pub fn is_xml_text(text: &str) -> bool {
    !text.bytes().any(may_begin_refused) || text.chars().all(is_xml_character)
}

/// Whether a name of an attribute needs no declaration and no quoting.
fn is_plain_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::{Capability, Change};

    fn written(header: &Header, entries: &[Entry]) -> String {
        let mut writer = Writer::new(Vec::new(), header).unwrap();
        entries.iter().for_each(|entry| writer.write(entry).unwrap());
        String::from_utf8(writer.finish().unwrap()).unwrap()
    }

    #[test]
    fn change_list_is_written_as_the_specification_shows_it() {
        let mut header = Header::new(Root::UrlSet, Some(Capability::ChangeList));
        header.from = Some("2013-01-02T00:00:00Z".parse().unwrap());
        header.links.push(Link::new("up", "http://example.com/caps.xml?a=1&b=2"));
        let mut entry = Entry::new("http://example.com/res1");
        entry.metadata.change = Some(Change::Deleted);
        assert_eq!(
            written(&header, &[entry]),
            r#"<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
  xmlns:rs="http://www.openarchives.org/rs/terms/">
  <rs:ln rel="up" href="http://example.com/caps.xml?a=1&amp;b=2"/>
  <rs:md capability="changelist" from="2013-01-02T00:00:00Z"/>
  <url>
    <loc>http://example.com/res1</loc>
    <rs:md change="deleted"/>
  </url>
</urlset>
"#
        );
    }

    #[test]
    fn entries_of_an_index_are_sitemaps() {
        let header = Header::new(Root::SitemapIndex, None);
        let text = written(&header, &[Entry::new("http://example.com/part1.xml")]);
        assert!(text.contains(
            "  <sitemap>\n    <loc>http://example.com/part1.xml</loc>\n  </sitemap>\n</sitemapindex>"
        ));
    }

    #[test]
    fn special_characters_are_escaped_and_all_others_kept_wherever_they_stand() {
        // Also characters that share their first byte with forbidden ones.
        let entry = Entry::new("http://e/<\u{fb01}&\u{ff21}\"\u{fffd}>\té\n\r\u{1f4da}");
        let text = written(&Header::new(Root::UrlSet, None), &[entry]);
        let loc = "<loc>http://e/&lt;\u{fb01}&amp;\u{ff21}&quot;\u{fffd}&gt;&#9;é&#10;&#13;\u{1f4da}</loc>";
        assert!(text.contains(loc), "{text}");
    }

    #[test]
    fn what_is_no_character_is_refused() {
        for refused in ['\0', '\u{1f}', '\u{fffe}', '\u{ffff}'] {
            let mut writer = Writer::new(Vec::new(), &Header::new(Root::UrlSet, None)).unwrap();
            let error = writer.write(&Entry::new(format!("http://e/a{refused}b"))).unwrap_err();
            assert!(matches!(error, WriteError::NotText { field: "loc", character } if character == refused));
            assert!(!is_xml_text(&format!("a{refused}b")));
        }
        assert!(is_xml_text("a\t\r\n\u{7f}\u{fffd}\u{fb01}\u{1f4da}"));
    }

    #[test]
    fn character_that_xml_cannot_hold_is_refused_and_leaves_the_document_whole() {
        let mut writer = Writer::new(Vec::new(), &Header::new(Root::UrlSet, None)).unwrap();
        let error = writer.write(&Entry::new("http://example.com/\u{1}")).unwrap_err();
        assert_eq!(error.to_string(), "loc holds the character U+0001, which XML cannot hold");
        writer.write(&Entry::new("http://example.com/ok")).unwrap();
        let text = String::from_utf8(writer.finish().unwrap()).unwrap();
        assert_eq!(text.matches("<url>").count(), 1);
    }
}
