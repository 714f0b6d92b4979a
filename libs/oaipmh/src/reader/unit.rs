//! One child of the root element or of the verb's element: found, parsed, or given up.

use std::borrow::Cow;

use super::envelope::{self, Fatal};
use super::frame::{Found, Guide};
use super::record::Draft;
use super::{Reader, Step};
use crate::error::{BadReason, LimitKind, ReadError};
use crate::events::Events;
use crate::limits::Strictness;
use crate::quirk::{Quirk, QuirkSet};
use crate::record::{BadRecord, Item, RecordHeader};
use crate::text::replace_illegal;
use crate::verb::Verb;

/// Elements of one name.
#[derive(Debug, Default)]
pub(super) struct Unit {
    pub(super) kind: Kind,
    /// The verb that lists, if they are in its element.
    pub(super) list: Option<Verb>,
    pub(super) guide: Guide,
}

/// What an element is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    Record,
    Header,
    Set,
    Format,
    /// In a list, where it should not be: what a broken record left over, or an extension. It is passed over.
    Stray,
    /// Beside the items. If it is broken, so is the answer.
    #[default]
    Other,
}

impl Unit {
    /// Elements of this qualified and local name. `outer`: the names of the elements around them.
    pub(super) fn named(name: &[u8], local: &[u8], list: Option<Verb>, outer: [Vec<u8>; 2]) -> Self {
        let (kind, item, first_child) = match list {
            Some(Verb::ListRecords | Verb::GetRecord) => (Kind::Record, &b"record"[..], &b"header"[..]),
            Some(Verb::ListIdentifiers) => (Kind::Header, &b"header"[..], &b"identifier"[..]),
            Some(Verb::ListSets) => (Kind::Set, &b"set"[..], &b"setSpec"[..]),
            Some(Verb::ListMetadataFormats) => (Kind::Format, &b"metadataFormat"[..], &b"metadataPrefix"[..]),
            Some(Verb::Identify) | None => {
                let guide = Guide { own: name.to_vec(), outer, ..Guide::default() };
                return Self { kind: Kind::Other, list, guide };
            }
        };
        // Items have the prefix of the verb's element.
        let colon = outer[0].iter().position(|byte| *byte == b':');
        let prefix = outer[0][..colon.map_or(0, |colon| colon + 1)].to_vec();
        let qualified = |local: &[u8]| [&prefix[..], local].concat();
        let kind = match local {
            b"resumptionToken" => Kind::Other,
            local if local == item => kind,
            _ => Kind::Stray,
        };
        let token = if kind == Kind::Other { Vec::new() } else { qualified(b"resumptionToken") };
        let item = if kind == Kind::Other { Vec::new() } else { qualified(item) };
        let guide = Guide { own: name.to_vec(), item, first_child: qualified(first_child), token, outer };
        Self { kind, list, guide }
    }

    pub(super) fn is_named(&self, name: &[u8]) -> bool {
        self.guide.own == name
    }
}

/// What parsing one element gave.
struct Parsed {
    result: Result<Option<Item>, Fatal>,
    header: Option<RecordHeader>,
    quirks: QuirkSet,
}

impl Parsed {
    /// The identifier of the record, if that could be read.
    fn identifier(&self) -> Option<String> {
        let of_item = match &self.result {
            Ok(Some(Item::Record(record))) => Some(&record.header),
            Ok(Some(Item::Header(header))) => Some(&**header),
            _ => None,
        };
        of_item.or(self.header.as_ref()).map(|header| header.identifier.clone())
    }
}

impl Reader {
    /// Goes on searching for the end of the element that begins at the next byte.
    pub(super) fn scan(&mut self, is_last: bool) -> Result<Step, ReadError> {
        let Some(scan) = &mut self.scan else { return Ok(Step::Again) };
        let limit = self.options.limits.max_record_bytes;
        let ahead = self.input.ahead();
        let is_over = ahead.len() > limit;
        let bytes = if is_over { &ahead[..=limit] } else { ahead };
        let is_last = is_last && !is_over;
        let offset = self.input.offset();
        let found = scan.find(bytes, &self.unit.guide, offset, &mut self.unclosed, is_last);
        let reached = scan.reached().max(1);
        match found {
            Found::Whole(length) if length > limit => {
                self.give_up(length, BadReason::RecordBytes(limit), false)
            }
            Found::Whole(length) => self.parse(length),
            Found::Cut(at) => self.give_up(at, BadReason::Cut, false),
            Found::Broken(at) => {
                let message = "an end tag has no start tag".to_owned();
                let at_position = self.input.position_at(at);
                self.give_up(at, BadReason::Malformed { at: at_position, message }, true)
            }
            Found::Incomplete if is_over => self.give_up(reached, BadReason::RecordBytes(limit), true),
            // Records may follow that a comment without an end has swallowed.
            Found::Incomplete if is_last => {
                match self.unit.guide.resynchronise(&ahead[reached.min(ahead.len())..], true) {
                    Ok(at) => self.give_up(reached + at, BadReason::Cut, false),
                    Err(_) => Ok(Step::More),
                }
            }
            Found::Incomplete => {
                self.want_more(reached);
                Ok(Step::More)
            }
        }
    }

    /// Searches for the next element behind a broken one.
    pub(super) fn search(&mut self, is_last: bool) -> Step {
        match self.unit.guide.resynchronise(self.input.ahead(), is_last) {
            Ok(at) => {
                self.input.consume(at);
                self.searching = false;
                Step::Again
            }
            Err(searched) => {
                self.input.consume(searched);
                self.want_more(0);
                Step::More
            }
        }
    }

    /// Gives up an element whose bytes up to `length` are its own. `search`: what follows must be searched for the
    /// next one.
    fn give_up(&mut self, length: usize, reason: BadReason, search: bool) -> Result<Step, ReadError> {
        let position = self.input.position();
        if self.unit.kind == Kind::Other {
            return Err(match reason {
                BadReason::RecordBytes(limit) => self.limit(LimitKind::ElementBytes(limit)),
                reason => ReadError::Malformed { position, message: reason.to_string() },
            });
        }
        if self.unit.kind == Kind::Stray {
            self.note_at(Quirk::BrokenRecord, position);
            self.scan = None;
            self.searching = search;
            self.input.consume(length);
            return Ok(Step::Again);
        }
        // Its beginning may have a whole header.
        let header = self.parse_bytes(length).header;
        self.scan = None;
        self.searching = search;
        self.input.consume(length);
        self.bad(BadRecord { position, reason, header })
    }

    /// Parses the element of this length.
    fn parse(&mut self, length: usize) -> Result<Step, ReadError> {
        let position = self.input.position();
        if self.unit.kind == Kind::Stray {
            self.scan = None;
            self.input.consume(length);
            return Ok(Step::Again);
        }
        let parsed = self.parse_bytes(length);
        self.scan = None;
        self.input.consume(length);
        let was_refused = self.refused.is_some();
        self.note_all(parsed.quirks, position);
        if let Some(refused) = self.refused.as_mut().filter(|_| !was_refused) {
            refused.record = parsed.identifier();
        }
        match parsed.result {
            Ok(None) => Ok(Step::Again),
            Ok(Some(item)) => self.item(item),
            Err(Fatal::Limit(limit)) => Err(ReadError::Limit { position, limit }),
            Err(Fatal::Bad(reason)) if self.unit.kind == Kind::Other => {
                Err(ReadError::Malformed { position, message: reason.to_string() })
            }
            Err(Fatal::Bad(reason)) => self.bad(BadRecord { position, reason, header: parsed.header }),
        }
    }

    fn parse_bytes(&mut self, length: usize) -> Parsed {
        let position = self.input.position();
        let bytes = &self.input.ahead()[..length];
        let mut quirks = QuirkSet::default();
        let mut not_utf8 = None;
        let mut is_changed = false;
        let mut text = match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(error) => {
                quirks.insert(Quirk::InvalidUtf8);
                let encoding = self.options.encoding;
                let read = encoding
                    .and_then(|encoding| encoding.decode_without_bom_handling_and_without_replacement(bytes));
                read.unwrap_or_else(|| {
                    is_changed = true;
                    not_utf8 = Some(self.input.position_at(error.valid_up_to()));
                    String::from_utf8_lossy(bytes)
                })
            }
        };
        if let Some((clean, _, _)) = replace_illegal(&text) {
            quirks.insert(Quirk::IllegalCharacter);
            is_changed = true;
            text = Cow::Owned(clean);
        }
        let mut events = Events::new(&text, position, self.scope.inner(), &self.options.limits);
        if self.unit.kind == Kind::Other {
            let limit = self.options.limits.max_token_bytes;
            let result = envelope::read(&mut events, &mut self.answer, limit).map(|()| None);
            events.quirks.iter().for_each(|quirk| quirks.insert(quirk));
            return Parsed { result, header: None, quirks };
        }
        let mut draft = Draft::new(events, &self.options, &mut self.scratch, is_changed);
        let kind = self.unit.kind;
        let result = draft.root().and_then(|root| {
            let Some(root) = root else { return Ok(None) };
            match kind {
                Kind::Record => draft.record(root, position),
                Kind::Header => draft.header(root),
                Kind::Set => draft.set(root),
                Kind::Format | Kind::Stray | Kind::Other => draft.format(root),
            }
            .map(Some)
        });
        draft.events.quirks.iter().for_each(|quirk| quirks.insert(quirk));
        let result = match not_utf8 {
            Some(at) => Err(Fatal::Bad(BadReason::NotUtf8 { at })),
            None => result.map_err(Fatal::Bad),
        };
        Parsed { result, header: draft.header, quirks }
    }

    fn item(&mut self, item: Item) -> Result<Step, ReadError> {
        self.count()?;
        if let Item::Record(record) = &item {
            record.header.add_to(&mut self.digest);
        } else if let Item::Header(header) = &item {
            header.add_to(&mut self.digest);
        }
        Ok(Step::Item(item))
    }

    fn bad(&mut self, bad: BadRecord) -> Result<Step, ReadError> {
        if let Some(header) = &bad.header {
            header.add_to(&mut self.digest);
        }
        if matches!(bad.reason, BadReason::Malformed { .. } | BadReason::Cut) {
            self.note_at(Quirk::BrokenRecord, bad.position);
        }
        if self.options.strictness == Strictness::Strict {
            let BadRecord { position, reason, header } = bad;
            let record = header.map(|header| header.identifier);
            return Err(ReadError::BadRecord { position, record, reason });
        }
        self.count()?;
        self.answer.bad += 1;
        Ok(Step::Item(Item::Bad(Box::new(bad))))
    }

    fn count(&mut self) -> Result<(), ReadError> {
        let limit = self.options.limits.max_items;
        if self.answer.items >= limit {
            return Err(self.limit(LimitKind::Items(limit)));
        }
        self.answer.items += 1;
        Ok(())
    }
}
