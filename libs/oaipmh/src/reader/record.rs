//! Records, headers, sets and formats from one element each.

use std::borrow::Cow;

use jiff::Timestamp;
use resourcesync::{Datetime, Position, Precision, Zone};

use crate::canonical;
use crate::error::BadReason;
use crate::events::{Events, Tag, Token};
use crate::granularity::Granularity;
use crate::limits::Options;
use crate::quirk::{Quirk, QuirkSet};
use crate::record::{Item, Metadata, MetadataFormat, Record, RecordHeader, SetItem, Status};
use crate::text::shorten;

/// A reading of one element. The header stays when what follows it is broken.
pub(super) struct Draft<'x, 's> {
    pub(super) events: Events<'x>,
    pub(super) header: Option<RecordHeader>,
    options: &'x Options,
    scratch: &'s mut String,
    /// Whether characters were replaced, so that a header must be checked for them.
    replaced: bool,
}

impl<'x, 's> Draft<'x, 's> {
    pub(super) fn new(
        events: Events<'x>,
        options: &'x Options,
        scratch: &'s mut String,
        replaced: bool,
    ) -> Self {
        Self { events, header: None, options, scratch, replaced }
    }

    /// The element's own start tag; `None` if it is another vocabulary's.
    pub(super) fn root(&mut self) -> Result<Option<Tag<'x>>, BadReason> {
        match self.events.next()? {
            Token::Open(tag) => Ok(self.events.oai_name(&tag).map(|_| tag)),
            _ => Err(self.events.cut()),
        }
    }

    /// A `record`.
    pub(super) fn record(&mut self, root: Tag<'x>, position: Position) -> Result<Item, BadReason> {
        let mut metadata: Option<Metadata> = None;
        let mut has_metadata = false;
        let mut about = Vec::new();
        self.children(&root, |draft, name, tag| {
            match name {
                Some("header") => {
                    let header = draft.read_header(&tag)?;
                    put(&mut draft.header, header, "header")?;
                }
                Some("metadata") => {
                    let only = draft.only_element(&tag)?;
                    if has_metadata && only.is_some() && metadata.is_some() {
                        return Err(BadReason::NotOneElement);
                    }
                    has_metadata = true;
                    metadata = metadata.take().or(only);
                }
                Some("about") => {
                    if about.len() >= draft.options.limits.max_abouts {
                        return Err(BadReason::Abouts(draft.options.limits.max_abouts));
                    }
                    about.extend(draft.only_element(&tag)?.map(|metadata| metadata.document));
                }
                _ => draft.events.skip(&tag)?,
            }
            Ok(())
        })?;
        let header = self.header.clone().ok_or(BadReason::Missing("header"))?;
        if header.is_deleted() {
            if metadata.take().is_some() {
                self.events.quirks.insert(Quirk::DeletedWithMetadata);
            }
        } else if metadata.is_none() {
            self.events.quirks.insert(Quirk::EmptyMetadata);
            return Err(BadReason::EmptyMetadata);
        }
        Ok(Item::Record(Box::new(Record { header, metadata, about, position })))
    }

    /// A `header`.
    pub(super) fn header(&mut self, root: Tag<'x>) -> Result<Item, BadReason> {
        let header = self.read_header(&root)?;
        self.header = Some(header.clone());
        Ok(Item::Header(Box::new(header)))
    }

    /// A `set`.
    pub(super) fn set(&mut self, root: Tag<'x>) -> Result<Item, BadReason> {
        let (mut spec, mut name) = (None, None);
        self.children(&root, |draft, child, tag| match child {
            Some("setSpec") => put(&mut spec, draft.events.text(&tag, "setSpec")?, "setSpec"),
            Some("setName") => {
                name = Some(draft.events.text(&tag, "setName")?);
                Ok(())
            }
            _ => draft.events.skip(&tag),
        })?;
        let spec = self.value(spec, "setSpec")?;
        Ok(Item::Set(SetItem { spec, name: name.unwrap_or_default().into_owned() }))
    }

    /// A `metadataFormat`.
    pub(super) fn format(&mut self, root: Tag<'x>) -> Result<Item, BadReason> {
        let (mut prefix, mut schema, mut namespace) = (None, None, None);
        self.children(&root, |draft, child, tag| match child {
            Some("metadataPrefix") => {
                put(&mut prefix, draft.events.text(&tag, "metadataPrefix")?, "metadataPrefix")
            }
            Some("schema") => put(&mut schema, draft.events.text(&tag, "schema")?, "schema"),
            Some("metadataNamespace") => {
                put(&mut namespace, draft.events.text(&tag, "metadataNamespace")?, "metadataNamespace")
            }
            _ => draft.events.skip(&tag),
        })?;
        let prefix = self.value(prefix, "metadataPrefix")?;
        Ok(Item::Format(MetadataFormat {
            prefix,
            schema: schema.unwrap_or_default().into_owned(),
            namespace: namespace.unwrap_or_default().into_owned(),
        }))
    }

    /// Calls `each` with the name and tag of each child: the name only if it is one of OAI-PMH. It must read the
    /// child to its end.
    fn children(
        &mut self,
        parent: &Tag<'x>,
        mut each: impl FnMut(&mut Self, Option<&'x str>, Tag<'x>) -> Result<(), BadReason>,
    ) -> Result<(), BadReason> {
        if parent.empty {
            return Ok(());
        }
        let inside = self.events.depth;
        loop {
            match self.events.next()? {
                Token::Open(tag) => {
                    let name = self.events.oai_name(&tag);
                    each(self, name, tag)?;
                }
                Token::Close(_) if self.events.depth < inside => return Ok(()),
                Token::End => return Err(self.events.cut()),
                _ => {}
            }
        }
    }

    fn read_header(&mut self, tag: &Tag<'x>) -> Result<RecordHeader, BadReason> {
        let mut status = Status::Live;
        self.events.attributes(tag, |events, name, value| {
            match (name, value.trim()) {
                ("status", "deleted") => status = Status::Deleted,
                ("status", other) => {
                    events.quirks.insert(Quirk::OddStatus);
                    if other.eq_ignore_ascii_case("deleted") {
                        status = Status::Deleted;
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        let mut identifier = None;
        let mut datestamp = None;
        let mut sets: Vec<String> = Vec::new();
        self.children(tag, |draft, child, tag| {
            match child {
                Some("identifier") => {
                    put(&mut identifier, draft.events.text(&tag, "identifier")?, "identifier")?;
                }
                Some("datestamp") => put(&mut datestamp, draft.events.text(&tag, "datestamp")?, "datestamp")?,
                Some("setSpec") => {
                    let set = draft.events.text(&tag, "setSpec")?;
                    draft.check(&set, "setSpec")?;
                    if !set.is_empty() && !sets.iter().any(|known| *known == set) {
                        let limit = draft.options.limits.max_sets_per_record;
                        if sets.len() >= limit {
                            return Err(BadReason::Sets(limit));
                        }
                        sets.push(set.into_owned());
                    }
                }
                _ => draft.events.skip(&tag)?,
            }
            Ok(())
        })?;
        let identifier = self.value(identifier, "identifier")?;
        let datestamp = datestamp.unwrap_or_default();
        self.check(&datestamp, "datestamp")?;
        let datestamp = read_datestamp(&datestamp, self.options, &mut self.events.quirks);
        Ok(RecordHeader { identifier, datestamp, sets, status })
    }

    /// The one element within `metadata` or `about`; `None` if there is nothing.
    fn only_element(&mut self, tag: &Tag<'x>) -> Result<Option<Metadata>, BadReason> {
        if tag.empty {
            return Ok(None);
        }
        let inside = self.events.depth;
        let mut only = None;
        loop {
            match self.events.next()? {
                Token::Open(_) if only.is_some() => return Err(BadReason::NotOneElement),
                Token::Open(tag) => only = Some(canonical::element(&mut self.events, tag, self.scratch)?),
                Token::Close(_) if self.events.depth < inside => return Ok(only),
                Token::Declaration => self.events.quirks.insert(Quirk::InnerXmlDeclaration),
                Token::Text(text) if text.trim().is_empty() => {}
                Token::Text(_) | Token::Char(_) => return Err(BadReason::NotOneElement),
                Token::End => return Err(self.events.cut()),
                _ => {}
            }
        }
    }

    /// A required value, as an owned text.
    fn value(&self, value: Option<Cow<'x, str>>, field: &'static str) -> Result<String, BadReason> {
        let value = value.unwrap_or_default();
        if value.is_empty() {
            return Err(BadReason::Missing(field));
        }
        self.check(&value, field)?;
        Ok(value.into_owned())
    }

    /// A header's values must be exact: a replaced character would make another value of them.
    fn check(&self, value: &str, field: &'static str) -> Result<(), BadReason> {
        let replaced = self.replaced || self.events.quirks.contains(Quirk::IllegalCharacter);
        if replaced && value.contains(char::REPLACEMENT_CHARACTER) {
            return Err(BadReason::IllegalCharacter { at: self.events.here(), field });
        }
        Ok(())
    }
}

/// Fills a slot; different values are a conflict.
fn put<T: PartialEq>(slot: &mut Option<T>, value: T, field: &'static str) -> Result<(), BadReason> {
    match slot {
        Some(known) if *known != value => return Err(BadReason::Conflict(field)),
        _ => *slot = Some(value),
    }
    Ok(())
}

/// A datestamp, and what is odd about it.
fn read_datestamp(text: &str, options: &Options, quirks: &mut QuirkSet) -> Option<Datetime> {
    let Ok((time, odd)) = Datetime::parse_lenient(text) else {
        quirks.insert(Quirk::UnreadableDatestamp);
        return None;
    };
    let is_day = time.precision() == Precision::Day;
    if time.precision() == Precision::Subsecond || (options.granularity == Some(Granularity::Day) && !is_day)
    {
        quirks.insert(Quirk::DatestampPrecision);
    }
    let has_odd_form = time.precision() < Precision::Day || time.precision() == Precision::Minute;
    if !odd.is_empty() || has_odd_form || matches!(time.zone(), Zone::Offset(_)) {
        quirks.insert(Quirk::OddDatestamp);
    }
    if is_late(&time, options.latest) {
        quirks.insert(Quirk::FutureTime);
    }
    Some(time)
}

fn is_late(time: &Datetime, latest: Option<Timestamp>) -> bool {
    latest.is_some_and(|latest| time.instant() > latest)
}

/// The words of an error of the protocol, for people.
pub(super) fn message(text: &str) -> String {
    const LONGEST: usize = 500;
    crate::text::shorten_to(text, LONGEST)
}

/// The beginning of a value that is shown only.
pub(super) fn shown(text: &str) -> String {
    shorten(text)
}
