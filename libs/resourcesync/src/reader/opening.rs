use std::io::{BufRead, Read};

use super::Reader;
use super::reference::shorten;
use super::scope::Name;
use super::tokens::{Tag, Token, fault_error};
use crate::capability::Root;
use crate::error::{LimitKind, ReadError};
use crate::quirk::Quirk;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl<R: Read> Reader<R> {
    /// Reads up to and including the root element's start tag; returns whether it is empty (`<urlset/>`).
    pub(super) fn open(&mut self) -> Result<(Root, bool), ReadError> {
        let found = self.open_bytes()?;
        let mut blank = false;
        let mut anything = false;
        loop {
            match self.tokens.next(&mut self.notes)? {
                Token::Open(tag) => {
                    let root = read_root(&tag, self.options.limits.max_attributes);
                    return self.root(root);
                }
                Token::Declaration => {
                    if blank {
                        self.notes.add(Quirk::BlankBeforeProlog);
                    }
                    anything = true;
                }
                Token::Other => anything = true,
                Token::Text(text) if text.trim().is_empty() => blank = true,
                Token::Doctype { html: true } => {
                    return Err(ReadError::Html { position: self.tokens.position() });
                }
                Token::Doctype { html: false } => return Err(self.tokens.doctype()),
                Token::Text(_) | Token::Char(_) | Token::Close => return Err(self.not_xml(found)),
                Token::End if anything => return Err(self.tokens.truncated()),
                Token::End => return Err(self.not_xml("an empty document")),
            }
        }
    }

    fn root(&mut self, found: RootTag) -> Result<(Root, bool), ReadError> {
        let position = self.tokens.position();
        match found {
            RootTag::Known { root, prefixed, empty } => {
                if prefixed {
                    self.notes.add(Quirk::PrefixedSitemapNamespace);
                } else if self.tokens.scope().has_no_default() {
                    self.notes.add(Quirk::MissingSitemapNamespace);
                }
                Ok((root, empty))
            }
            RootTag::Html => Err(ReadError::Html { position }),
            RootTag::Unknown(name) => Err(ReadError::UnknownRoot { position, name }),
            RootTag::TooManyAttributes(max) => {
                Err(ReadError::Limit { position, limit: LimitKind::Attributes(max) })
            }
            RootTag::Malformed(message) => Err(ReadError::Malformed { position, message }),
        }
    }

    /// Skips a byte order mark; returns what the bytes look like if they are not XML.
    fn open_bytes(&mut self) -> Result<&'static str, ReadError> {
        let source = self.tokens.source();
        if source.is_gzip() {
            self.notes.add(Quirk::Gzip);
        }
        let first = match source.first_bytes() {
            Ok(first) => first,
            Err(fault) => return Err(fault_error(source, fault)),
        };
        if let [0xfe, 0xff, ..] | [0xff, 0xfe, ..] | [0, b'<', ..] | [b'<', 0, 1..=0xff, ..] = first {
            return Err(ReadError::Encoding { position: source.marked(), encoding: "UTF-16" });
        }
        if first.starts_with(BYTE_ORDER_MARK) {
            source.consume(BYTE_ORDER_MARK.len());
            self.notes.add(Quirk::ByteOrderMark);
        }
        Ok(match first {
            [b'P', b'K', 3 | 5, _] => "a ZIP package",
            [b'%', b'P', b'D', b'F'] => "a PDF file",
            [b'{' | b'[', ..] => "JSON or other text",
            _ => "other text or data",
        })
    }

    fn not_xml(&mut self, found: &str) -> ReadError {
        ReadError::NotXml { position: self.tokens.position(), found: found.to_owned() }
    }
}

/// The kind of a root element's start tag.
enum RootTag {
    Known { root: Root, prefixed: bool, empty: bool },
    Html,
    Unknown(String),
    TooManyAttributes(usize),
    Malformed(String),
}

fn read_root(tag: &Tag<'_>, max_attributes: usize) -> RootTag {
    let root = match tag.name {
        Name::UrlSet => Root::UrlSet,
        Name::SitemapIndex => Root::SitemapIndex,
        _ if tag.local_name().eq_ignore_ascii_case("html") => return RootTag::Html,
        _ => return RootTag::Unknown(shorten(tag.qualified_name())),
    };
    for (count, attribute) in tag.attributes().with_checks(false).enumerate() {
        match attribute {
            _ if count >= max_attributes => return RootTag::TooManyAttributes(max_attributes),
            Ok(_) => {}
            Err(error) => return RootTag::Malformed(error.to_string()),
        }
    }
    RootTag::Known { root, prefixed: !tag.prefix().is_empty(), empty: tag.empty }
}
