use std::io::Read;

use super::attributes::{self, Flaw};
use super::heading::header_error;
use super::notes::Notes;
use super::outline::Outline;
use super::reference::resolve_characters;
use super::scope::Name;
use super::tokens::{Token, Tokens};
use super::uri;
use super::values::{Pairs, check_loc, check_text, put, read_time, trim};
use crate::entry::{BadEntry, BadReason, Entry};
use crate::error::ReadError;
use crate::limits::Options;
use crate::link::Link;
use crate::position::Position;
use crate::quirk::Quirk;

/// An entry during parsing.
///
/// Its first error is kept as the reason; the rest of the element is still read, for its `loc` and to find
/// its end.
pub(super) struct Draft<'r> {
    entry: Box<Entry>,
    loc: Option<String>,
    tells_changes: bool,
    /// Bytes of its links.
    link_bytes: usize,
    reason: Option<BadReason>,
    options: &'r Options,
    scratch: &'r mut String,
}

impl<'r> Draft<'r> {
    pub(super) fn new(
        position: Position,
        tells_changes: bool,
        options: &'r Options,
        scratch: &'r mut String,
    ) -> Self {
        let entry = Box::new(Entry { position, ..Entry::default() });
        Self { entry, loc: None, tells_changes, link_bytes: 0, reason: None, options, scratch }
    }

    /// Reads the entry's content up to and including its end tag.
    pub(super) fn read<R: Read>(
        &mut self,
        tokens: &mut Tokens<R>,
        notes: &mut Notes,
    ) -> Result<(), ReadError> {
        let mut said_before_loc = false;
        loop {
            match tokens.next(notes)? {
                Token::Open(tag) => {
                    let name = tag.name;
                    let empty = tag.empty;
                    match name {
                        Name::Md | Name::Ln => {
                            said_before_loc |= self.loc.is_none();
                            let result = if name == Name::Md {
                                self.metadata(tag.pairs(), notes)
                            } else {
                                self.link(tag.pairs(), notes)
                            };
                            if let Err(flaw) = self.take(result) {
                                return Err(header_error(tokens.position(), flaw));
                            }
                            tokens.skip(empty, notes)?;
                        }
                        Name::Loc | Name::LastMod | Name::ChangeFreq | Name::Priority => {
                            if name == Name::Loc && said_before_loc {
                                notes.add(Quirk::MetadataBeforeLoc);
                                said_before_loc = false;
                            }
                            if let Err(reason) = self.field(name, empty, tokens, notes)? {
                                self.spoil(reason);
                            }
                        }
                        _ => {
                            if tag.local_name() == "loc" {
                                notes.add(Quirk::ForeignLoc);
                            }
                            tokens.skip(empty, notes)?;
                        }
                    }
                }
                Token::Close => return Ok(()),
                Token::End => return Err(tokens.truncated()),
                Token::Doctype { .. } => return Err(tokens.doctype()),
                Token::Text(_) | Token::Char(_) | Token::Declaration | Token::Other => {}
            }
            let limit = self.options.limits.max_entry_bytes;
            if tokens.offset() - self.entry.position.byte > limit {
                self.spoil(BadReason::EntryTooLong { limit });
            }
        }
    }

    /// Takes the parts that an outline has found in the entry's text.
    pub(super) fn fill(&mut self, entry: &str, outline: &Outline, notes: &mut Notes) -> Result<(), Flaw> {
        self.entry.links.reserve_exact(outline.links().min(self.options.limits.max_links_per_entry));
        for part in outline.parts() {
            let pairs = || Pairs::Outlined(outline.attributes(part), entry);
            let result = match part.name {
                Name::Md => self.metadata(pairs(), notes),
                Name::Ln => self.link(pairs(), notes),
                name => self.outlined_text(name, part.text(entry), notes).map_err(Flaw::from),
            };
            self.take(result)?;
        }
        Ok(())
    }

    fn outlined_text(
        &mut self,
        name: Name,
        (written, is_plain): (&str, bool),
        notes: &mut Notes,
    ) -> Result<(), BadReason> {
        if is_plain {
            return self.value(name, written, true, notes);
        }
        let mut text = std::mem::take(self.scratch);
        text.clear();
        resolve_characters(written, &mut text);
        let result = self.value(name, &text, false, notes);
        *self.scratch = text;
        result
    }

    /// The entry, or the reason why it is bad.
    pub(super) fn finish(mut self, notes: &mut Notes) -> Result<Box<Entry>, BadEntry> {
        let loc = self.loc.map(|loc| uri::absolute(loc, self.options.base.as_ref(), notes));
        match (loc, self.reason) {
            (Some(loc), None) => {
                self.entry.loc = loc;
                Ok(self.entry)
            }
            (loc, reason) => Err(BadEntry {
                position: self.entry.position,
                loc,
                reason: reason.unwrap_or(BadReason::NoLoc),
            }),
        }
    }

    /// Takes the result of a part. Returns a flaw that ends the reading.
    fn take(&mut self, result: Result<(), Flaw>) -> Result<(), Flaw> {
        match result {
            Err(Flaw::Bad(reason)) => {
                self.spoil(reason);
                Ok(())
            }
            result => result,
        }
    }

    /// Keeps the first reason, and drops all values but the `loc`.
    fn spoil(&mut self, reason: BadReason) {
        self.reason.get_or_insert(reason);
        self.entry.links = Vec::new();
    }

    fn metadata(&mut self, pairs: Pairs<'_>, notes: &mut Notes) -> Result<(), Flaw> {
        let limits = &self.options.limits;
        attributes::metadata(pairs, &mut self.entry.metadata, self.tells_changes, limits, notes)
    }

    fn link(&mut self, pairs: Pairs<'_>, notes: &mut Notes) -> Result<(), Flaw> {
        let limits = &self.options.limits;
        let Some(mut link) = attributes::link(pairs, limits, notes)? else { return Ok(()) };
        if self.reason.is_some() {
            return Ok(());
        }
        link.href = uri::absolute(link.href, self.options.base.as_ref(), notes);
        if !link.rel.bytes().any(|byte| byte.is_ascii_whitespace()) {
            self.keep_link(link, notes);
            return Ok(());
        }
        // Several relations to one target, with blanks between them.
        for rel in std::mem::take(&mut link.rel).split_ascii_whitespace() {
            self.keep_link(Link { rel: rel.to_owned(), ..link.clone() }, notes);
        }
        Ok(())
    }

    /// Keeps a link if the limits of its entry allow it.
    fn keep_link(&mut self, link: Link, notes: &mut Notes) {
        let limits = &self.options.limits;
        let link = attributes::known_case(link, notes);
        let bytes = self.link_bytes + link.size();
        let fits = link.href.len() <= limits.max_href_bytes
            && self.entry.links.len() < limits.max_links_per_entry
            && bytes <= limits.max_link_bytes;
        if fits {
            self.link_bytes = bytes;
            self.entry.links.push(link);
        } else {
            notes.add(Quirk::LinksTruncated);
        }
    }

    fn field<R: Read>(
        &mut self,
        name: Name,
        empty: bool,
        tokens: &mut Tokens<R>,
        notes: &mut Notes,
    ) -> Result<Result<(), BadReason>, ReadError> {
        self.scratch.clear();
        if !empty && let Err(reason) = self.text(name_of(name), tokens, notes)? {
            return Ok(Err(reason));
        }
        let text = std::mem::take(self.scratch);
        let result = self.value(name, &text, false, notes);
        *self.scratch = text;
        Ok(result)
    }

    /// Takes the content of a text element, with references resolved.
    fn value(
        &mut self,
        name: Name,
        written: &str,
        is_plain: bool,
        notes: &mut Notes,
    ) -> Result<(), BadReason> {
        let field = name_of(name);
        let text = trim(written);
        if text.is_empty() {
            notes.add(Quirk::EmptyValue);
            return Ok(());
        }
        if !is_plain {
            check_text(field, text, notes)?;
        }
        match name {
            Name::Loc => {
                check_loc(text)?;
                if text.len() != written.len() {
                    notes.add(Quirk::WhitespaceInLoc);
                }
                let result = put(&mut self.loc, text.to_owned(), field, notes);
                result.map_err(|_| BadReason::SeveralLocs)
            }
            Name::LastMod => match read_time(text, notes) {
                Some(time) => put(&mut self.entry.lastmod, time, field, notes),
                None => Ok(()),
            },
            Name::ChangeFreq => put(&mut self.entry.change_frequency, text.to_owned(), field, notes),
            _ => put(&mut self.entry.priority, text.to_owned(), field, notes),
        }
    }

    /// Reads a text element's content, up to and including its end tag, into the scratch.
    fn text<R: Read>(
        &mut self,
        field: &'static str,
        tokens: &mut Tokens<R>,
        notes: &mut Notes,
    ) -> Result<Result<(), BadReason>, ReadError> {
        let limit = self.options.limits.max_field_bytes;
        let mut result = Ok(());
        loop {
            match tokens.next(notes)? {
                Token::Text(text) if self.scratch.len() + text.len() > limit => {
                    result = Err(BadReason::FieldTooLong { field, limit });
                }
                Token::Text(text) => self.scratch.push_str(&text),
                Token::Char(_) if self.scratch.len() + 4 > limit => {
                    result = Err(BadReason::FieldTooLong { field, limit });
                }
                Token::Char(character) => self.scratch.push(character),
                Token::Open(tag) if tag.name == Name::Ln && field == LOC => {
                    let empty = tag.empty;
                    notes.add(Quirk::LinkInLoc);
                    let link = self.link(tag.pairs(), notes);
                    if let Err(flaw) = self.take(link) {
                        return Err(header_error(tokens.position(), flaw));
                    }
                    tokens.skip(empty, notes)?;
                }
                Token::Open(tag) => {
                    let empty = tag.empty;
                    tokens.skip(empty, notes)?;
                    result = Err(BadReason::MarkupInField { field });
                }
                Token::Close => return Ok(result),
                Token::End => return Err(tokens.truncated()),
                Token::Doctype { .. } => return Err(tokens.doctype()),
                Token::Declaration | Token::Other => {}
            }
        }
    }
}

/// The element of an entry's URI.
const LOC: &str = "loc";

/// The name of a text element.
fn name_of(field: Name) -> &'static str {
    match field {
        Name::Loc => LOC,
        Name::LastMod => "lastmod",
        Name::ChangeFreq => "changefreq",
        _ => "priority",
    }
}
