use std::borrow::Cow;
use std::io::Read;
use std::sync::Arc;

use quick_xml::errors::{Error as XmlError, IllFormedError};
use quick_xml::events::attributes::Attributes;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader as XmlReader;

use super::input::InputError;
use super::notes::Notes;
use super::reference::{Reference, resolve, shorten};
use super::scope::{Name, Scope};
use super::source::{Fault, Source};
use super::values::Pairs;
use crate::error::{LimitKind, ReadError};
use crate::limits::Limits;
use crate::position::Position;
use crate::quirk::Quirk;

/// The document as elements and text, with namespaces and references resolved and with limited depth.
pub(super) struct Tokens<R> {
    xml: XmlReader<Source<R>>,
    buf: Vec<u8>,
    scope: Scope,
    depth: usize,
    max_depth: usize,
    max_attributes: usize,
}

/// One piece of the document.
pub(super) enum Token<'t> {
    Open(Tag<'t>),
    Close,
    Text(Cow<'t, str>),
    Char(char),
    /// The XML declaration.
    Declaration,
    /// A comment or a processing instruction.
    Other,
    Doctype {
        html: bool,
    },
    End,
}

/// A start tag.
pub(super) struct Tag<'t> {
    pub(super) name: Name,
    /// Whether it is its own end (`<loc/>`); if not, a [`Token::Close`] follows.
    pub(super) empty: bool,
    start: BytesStart<'t>,
}

impl<R: Read> Tokens<R> {
    pub(super) fn new(source: Source<R>, limits: &Limits) -> Self {
        let mut xml = XmlReader::from_reader(source);
        xml.config_mut().allow_dangling_amp = true;
        Self {
            xml,
            buf: Vec::new(),
            scope: Scope::new(),
            depth: 0,
            max_depth: limits.max_depth,
            max_attributes: limits.max_attributes,
        }
    }

    pub(super) fn source(&mut self) -> &mut Source<R> {
        self.xml.get_mut()
    }

    /// Bytes read so far, after decompression.
    pub(super) fn bytes_read(&self) -> u64 {
        self.xml.get_ref().bytes_read()
    }

    /// The position of the last token.
    pub(super) fn position(&mut self) -> Position {
        self.source().marked()
    }

    /// The byte behind the last token.
    pub(super) fn offset(&self) -> u64 {
        self.xml.get_ref().offset()
    }

    pub(super) fn next(&mut self, notes: &mut Notes) -> Result<Token<'_>, ReadError> {
        self.scope.leave(self.depth);
        self.buf.clear();
        self.xml.get_mut().mark();
        let event = match self.xml.read_event_into(&mut self.buf) {
            Ok(event) => event,
            Err(error) => return Err(translate(self.xml.get_mut(), error)),
        };
        let token = match event {
            Event::Start(start) => {
                self.depth += 1;
                if self.depth > self.max_depth {
                    let position = self.xml.get_mut().marked();
                    return Err(ReadError::Limit { position, limit: LimitKind::Depth(self.max_depth) });
                }
                let name = self.scope.enter(&start, self.depth, self.max_attributes, notes);
                Token::Open(Tag { name, empty: false, start })
            }
            Event::Empty(start) => {
                let name = self.scope.enter(&start, self.depth + 1, self.max_attributes, notes);
                Token::Open(Tag { name, empty: true, start })
            }
            Event::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                Token::Close
            }
            Event::Text(text) => {
                let text = text.into_inner();
                // The parser splits the text at every reference, so a lone ampersand comes first.
                if text.starts_with('&') {
                    notes.add(Quirk::BareAmpersand);
                }
                Token::Text(text)
            }
            Event::CData(text) => Token::Text(text.into_inner()),
            Event::GeneralRef(name) => match resolve(&name) {
                Reference::Char(character) => Token::Char(character),
                Reference::Bare => {
                    notes.add(Quirk::BareAmpersand);
                    Token::Text(Cow::Owned(format!("&{};", &*name)))
                }
                Reference::Entity => {
                    let position = self.xml.get_mut().marked();
                    return Err(ReadError::EntityRefused { position, name: shorten(&name) });
                }
            },
            Event::DocType(text) => {
                let html = text.get(..4).is_some_and(|name| name.eq_ignore_ascii_case("html"));
                Token::Doctype { html }
            }
            Event::Decl(declaration) => {
                let encoding = declaration.encoding().and_then(Result::ok);
                if encoding.is_some_and(|name| !is_utf8(&name)) {
                    notes.add(Quirk::OtherEncoding);
                }
                Token::Declaration
            }
            Event::Comment(_) | Event::PI(_) => Token::Other,
            Event::Eof => Token::End,
        };
        Ok(token)
    }

    /// Skips an element's content, up to and including its end.
    pub(super) fn skip(&mut self, empty: bool, notes: &mut Notes) -> Result<(), ReadError> {
        if empty {
            return Ok(());
        }
        let outside = self.depth - 1;
        while self.depth > outside {
            match self.next(notes)? {
                Token::Open(tag) if tag.local_name() == "loc" => notes.add(Quirk::ForeignLoc),
                Token::End => return Err(self.truncated()),
                Token::Doctype { .. } => return Err(self.doctype()),
                _ => {}
            }
        }
        Ok(())
    }

    /// The namespace declarations in force.
    pub(super) fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(super) fn truncated(&mut self) -> ReadError {
        ReadError::Truncated { position: self.source().here() }
    }

    pub(super) fn doctype(&mut self) -> ReadError {
        ReadError::DoctypeRefused { position: self.position() }
    }
}

impl Tag<'_> {
    /// The name as written.
    pub(super) fn qualified_name(&self) -> &str {
        self.start.name().into_inner()
    }

    pub(super) fn prefix(&self) -> &str {
        self.qualified_name().split_once(':').map_or("", |(prefix, _)| prefix)
    }

    pub(super) fn local_name(&self) -> &str {
        local_name(self.qualified_name())
    }

    pub(super) fn attributes(&self) -> Attributes<'_> {
        self.start.attributes()
    }

    /// The attributes, for their values.
    pub(super) fn pairs(&self) -> Pairs<'_> {
        let mut attributes = self.attributes();
        // Repeated names are found by slots that are already filled; the parser's own check allocates.
        attributes.with_checks(false);
        Pairs::Parsed(attributes)
    }

    /// Bytes between the angle brackets.
    pub(super) fn len(&self) -> usize {
        self.start.len()
    }
}

pub(super) fn local_name(qualified: &str) -> &str {
    qualified.split_once(':').map_or(qualified, |(_, local)| local)
}

/// Translates the parser's error, or the fault behind it, into the reader's error.
fn translate<R: Read>(source: &mut Source<R>, error: XmlError) -> ReadError {
    match error {
        XmlError::Io(error) => match source.take_fault() {
            Some(fault) => fault_error(source, fault),
            None => ReadError::Io { position: source.here(), source: error },
        },
        XmlError::Syntax(_) if source.is_at_end() => ReadError::Truncated { position: source.here() },
        XmlError::IllFormed(IllFormedError::MismatchedEndTag { expected, found }) => ReadError::Malformed {
            position: source.marked(),
            message: format!("found </{}> where </{}> was expected", shorten(&found), shorten(&expected)),
        },
        other => ReadError::Malformed { position: source.marked(), message: shorten(&other.to_string()) },
    }
}

/// Translates a fault of the byte source into the reader's error.
pub(super) fn fault_error<R: Read>(source: &mut Source<R>, fault: Fault) -> ReadError {
    match fault {
        Fault::Limit(limit) => ReadError::Limit { position: source.marked(), limit },
        Fault::Input(InputError::Stream(error)) => {
            ReadError::Io { position: source.here(), source: Arc::new(error) }
        }
        Fault::Input(InputError::GzipTruncated) => ReadError::Truncated { position: source.here() },
        Fault::Input(InputError::GzipDamaged(message)) => {
            ReadError::Gzip { position: source.here(), message }
        }
    }
}

fn is_utf8(encoding: &str) -> bool {
    ["utf-8", "utf8", "us-ascii", "ascii"].iter().any(|name| name.eq_ignore_ascii_case(encoding))
}
