//! One element as a series of events, with namespaces and references resolved and within limits: the second pass.

use std::borrow::Cow;

use memchr::memmem;
use quick_xml::errors::{Error as XmlError, IllFormedError};
use quick_xml::events::Event;
use quick_xml::events::attributes::Attributes;
use quick_xml::reader::Reader as XmlReader;
use resourcesync::Position;

use crate::error::BadReason;
use crate::limits::Limits;
use crate::position::advance;
use crate::quirk::{Quirk, QuirkSet};
use crate::scope::{MAX_DECLARATIONS, MAX_NAMESPACE_BYTES, Scope, is_oai, split, well_known};
use crate::text::{Reference, attribute_value, reference, shorten};

/// The events of one element, which is completely in memory.
pub(crate) struct Events<'x> {
    text: &'x str,
    origin: Position,
    xml: XmlReader<&'x [u8]>,
    limits: &'x Limits,
    /// The declarations in force.
    pub(crate) scope: Scope<'x>,
    /// How many elements are open.
    pub(crate) depth: usize,
    /// What was tolerated.
    pub(crate) quirks: QuirkSet,
}

/// One piece of an element.
pub(crate) enum Token<'x> {
    Open(Tag<'x>),
    /// An end tag, with the name as written.
    Close(&'x str),
    /// Text without references; line ends are those of the file.
    Text(Cow<'x, str>),
    Char(char),
    Comment(Cow<'x, str>),
    Instruction(Cow<'x, str>),
    /// An XML declaration.
    Declaration,
    End,
}

/// A start tag.
#[derive(Clone, Copy)]
pub(crate) struct Tag<'x> {
    raw: &'x str,
    name_length: usize,
    /// Whether it is its own end (`<a/>`); if not, a [`Token::Close`] follows.
    pub(crate) empty: bool,
}

impl<'x> Events<'x> {
    /// The events of `text`, which begins at `origin`, within the declarations of the elements around it.
    pub(crate) fn new(text: &'x str, origin: Position, scope: Scope<'x>, limits: &'x Limits) -> Self {
        let mut xml = XmlReader::from_str(text);
        let config = xml.config_mut();
        config.allow_dangling_amp = true;
        config.check_comments = true;
        Self { text, origin, xml, limits, scope, depth: 0, quirks: QuirkSet::default() }
    }

    pub(crate) fn limits(&self) -> &'x Limits {
        self.limits
    }

    /// The next event.
    pub(crate) fn next(&mut self) -> Result<Token<'x>, BadReason> {
        self.scope.leave(self.depth);
        let from = self.at();
        let event = match self.xml.read_event() {
            Ok(event) => event,
            Err(error) => return Err(self.malformed(&error)),
        };
        let limit = self.limits.max_text_bytes;
        if self.at() - from > limit {
            return Err(BadReason::TextBytes(limit));
        }
        Ok(match event {
            Event::Start(start) => {
                let name_length = start.name().into_inner().len();
                self.depth += 1;
                if self.depth > self.limits.max_depth {
                    return Err(BadReason::Depth(self.limits.max_depth));
                }
                let raw = self.text.get(from + 1..self.at().saturating_sub(1)).unwrap_or_default();
                Token::Open(self.enter(Tag { raw, name_length, empty: false }, self.depth)?)
            }
            Event::Empty(start) => {
                let name_length = start.name().into_inner().len();
                let raw = self.text.get(from + 1..self.at().saturating_sub(2)).unwrap_or_default();
                Token::Open(self.enter(Tag { raw, name_length, empty: true }, self.depth + 1)?)
            }
            Event::End(_) => {
                self.depth = self.depth.saturating_sub(1);
                let name = self.text.get(from + 2..self.at().saturating_sub(1)).unwrap_or_default();
                Token::Close(name.trim_ascii_end())
            }
            Event::Text(text) => {
                let text = text.into_inner();
                // The parser splits the text at every reference, so a lone ampersand comes first.
                if text.starts_with('&') {
                    self.quirks.insert(Quirk::BareAmpersand);
                }
                Token::Text(text)
            }
            Event::CData(text) => Token::Text(text.into_inner()),
            Event::GeneralRef(name) => match reference(&name) {
                Reference::Char(character) => Token::Char(character),
                Reference::Illegal => {
                    self.quirks.insert(Quirk::IllegalCharacter);
                    Token::Char(char::REPLACEMENT_CHARACTER)
                }
                Reference::Bare => {
                    self.quirks.insert(Quirk::BareAmpersand);
                    Token::Text(Cow::Owned(format!("&{};", &*name)))
                }
                Reference::Entity => {
                    return Err(BadReason::Entity { at: self.position(from), name: shorten(&name) });
                }
            },
            Event::DocType(_) => return Err(BadReason::Doctype { at: self.position(from) }),
            Event::Decl(_) => Token::Declaration,
            Event::Comment(text) => Token::Comment(text.into_inner()),
            Event::PI(text) => Token::Instruction(text.into_inner()),
            Event::Eof => Token::End,
        })
    }

    /// Records a start tag's declarations.
    fn enter(&mut self, tag: Tag<'x>, depth: usize) -> Result<Tag<'x>, BadReason> {
        let attributes = &tag.raw[tag.name_length.min(tag.raw.len())..];
        if attributes.is_empty() || memmem::find(attributes.as_bytes(), b"xmlns").is_none() {
            return Ok(tag);
        }
        for (count, attribute) in tag.attributes().enumerate() {
            let (name, value) = self.attribute(attribute, count)?;
            let prefix = match name.strip_prefix("xmlns") {
                Some("") => "",
                Some(rest) => match rest.strip_prefix(':') {
                    Some(prefix) => prefix,
                    None => continue,
                },
                None => continue,
            };
            let uri = self.value(value)?;
            if uri.len() > MAX_NAMESPACE_BYTES {
                return Err(BadReason::FieldBytes { field: "namespace", limit: MAX_NAMESPACE_BYTES });
            }
            if self.scope.len() >= MAX_DECLARATIONS {
                return Err(BadReason::Declarations(MAX_DECLARATIONS));
            }
            self.scope.declare(depth, Cow::Borrowed(prefix), uri);
        }
        Ok(tag)
    }

    /// Checks an attribute, the `count`th of its element.
    fn attribute(
        &self,
        attribute: Result<(&'x str, Cow<'x, str>), String>,
        count: usize,
    ) -> Result<(&'x str, Cow<'x, str>), BadReason> {
        if count >= self.limits.max_attributes {
            return Err(BadReason::Attributes(self.limits.max_attributes));
        }
        attribute.map_err(|message| self.flawed(&message))
    }

    /// The attributes of a tag, without declarations, with their values resolved.
    pub(crate) fn attributes(
        &mut self,
        tag: &Tag<'x>,
        mut each: impl FnMut(&mut Self, &'x str, Cow<'x, str>) -> Result<(), BadReason>,
    ) -> Result<(), BadReason> {
        for (count, attribute) in tag.attributes().enumerate() {
            let (name, value) = self.attribute(attribute, count)?;
            if name.strip_prefix("xmlns").is_some_and(|rest| rest.is_empty() || rest.starts_with(':')) {
                continue;
            }
            let value = self.value(value)?;
            each(self, name, value)?;
        }
        Ok(())
    }

    fn value(&mut self, raw: Cow<'x, str>) -> Result<Cow<'x, str>, BadReason> {
        let resolved = match raw {
            Cow::Borrowed(raw) => attribute_value(raw, &mut self.quirks),
            Cow::Owned(raw) => {
                attribute_value(&raw, &mut self.quirks).map(|value| Cow::Owned(value.into_owned()))
            }
        };
        resolved.map_err(|name| BadReason::Entity { at: self.position(self.at()), name })
    }

    /// The namespace of a prefix, counting a well-known one that is not declared.
    pub(crate) fn namespace(&mut self, prefix: &str) -> Result<Cow<'x, str>, BadReason> {
        if let Some(uri) = self.scope.resolve(prefix) {
            return Ok(uri);
        }
        match well_known(prefix) {
            Some(uri) => {
                self.quirks.insert(Quirk::UndeclaredPrefix);
                Ok(Cow::Borrowed(uri))
            }
            None => {
                Err(BadReason::UndeclaredPrefix { at: self.position(self.at()), prefix: shorten(prefix) })
            }
        }
    }

    /// The local name of an element of OAI-PMH; `None` for those of other vocabularies.
    pub(crate) fn oai_name(&self, tag: &Tag<'x>) -> Option<&'x str> {
        let (prefix, local) = split(tag.name());
        let uri = self.scope.resolve(prefix)?;
        is_oai(&uri).map(|_| local)
    }

    /// The text up to the end of the element whose start tag was read, blanks around it removed. Text of elements
    /// within it is left out.
    pub(crate) fn text(&mut self, tag: &Tag<'x>, field: &'static str) -> Result<Cow<'x, str>, BadReason> {
        if tag.empty {
            return Ok(Cow::Borrowed(""));
        }
        let inside = self.depth;
        let limit = self.limits.max_field_bytes;
        let mut whole: Cow<'x, str> = Cow::Borrowed("");
        while self.depth >= inside {
            let token = self.next()?;
            if self.depth > inside {
                continue;
            }
            match token {
                Token::Text(text) if whole.is_empty() => whole = text,
                Token::Text(text) => whole.to_mut().push_str(&text),
                Token::Char(character) => whole.to_mut().push(character),
                Token::End => return Err(self.cut()),
                _ => {}
            }
            // Blanks around it do not count, as long as they are few.
            if whole.len() > limit.saturating_mul(2) {
                return Err(BadReason::FieldBytes { field, limit });
            }
        }
        if whole.trim().len() > limit {
            return Err(BadReason::FieldBytes { field, limit });
        }
        Ok(match whole {
            Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
            Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
        })
    }

    /// Passes over the content of the element whose start tag was read.
    pub(crate) fn skip(&mut self, tag: &Tag<'x>) -> Result<(), BadReason> {
        if tag.empty {
            return Ok(());
        }
        let inside = self.depth;
        while self.depth >= inside {
            if let Token::End = self.next()? {
                return Err(self.cut());
            }
        }
        Ok(())
    }

    fn at(&self) -> usize {
        usize::try_from(self.xml.buffer_position()).unwrap_or(usize::MAX)
    }

    /// The position behind the last event.
    pub(crate) fn here(&self) -> Position {
        self.position(self.at())
    }

    fn position(&self, at: usize) -> Position {
        advance(self.origin, &self.text.as_bytes()[..at.min(self.text.len())])
    }

    pub(crate) fn cut(&self) -> BadReason {
        self.flawed("it ends before its elements do")
    }

    /// It is not well-formed here.
    pub(crate) fn flawed(&self, message: &str) -> BadReason {
        BadReason::Malformed { at: self.here(), message: shorten(message) }
    }

    fn malformed(&self, error: &XmlError) -> BadReason {
        let at = usize::try_from(self.xml.error_position()).unwrap_or(usize::MAX);
        let message = match error {
            XmlError::IllFormed(IllFormedError::MismatchedEndTag { expected, found }) => {
                format!("found </{}> where </{}> was expected", shorten(found), shorten(expected))
            }
            other => shorten(&other.to_string()),
        };
        BadReason::Malformed { at: self.position(at), message }
    }
}

impl<'x> Tag<'x> {
    /// The name as written.
    pub(crate) fn name(&self) -> &'x str {
        &self.raw[..self.name_length.min(self.raw.len())]
    }

    pub(crate) fn has_attributes(&self) -> bool {
        self.name_length < self.raw.len()
    }

    /// Names and values as written, declarations too.
    fn attributes(&self) -> impl Iterator<Item = Result<(&'x str, Cow<'x, str>), String>> + use<'x> {
        let mut attributes = Attributes::new(self.raw, self.name_length.min(self.raw.len()));
        // Repeated names are found where attributes are sorted; the parser's own check allocates.
        attributes.with_checks(false);
        attributes.map(|attribute| match attribute {
            Ok(attribute) => Ok((attribute.key.into_inner(), attribute.value)),
            Err(error) => Err(error.to_string()),
        })
    }
}
