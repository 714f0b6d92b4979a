use std::str::FromStr as _;

use resourcesync::Position;
use sha2::{Digest as _, Sha256};

mod ending;
mod envelope;
mod frame;
mod input;
mod opening;
mod outer;
mod record;
mod unit;

use self::frame::{Markup, Scan, Skipped, Unclosed, markup};
use self::input::Input;
use self::unit::Unit;
use crate::answer::Answer;
use crate::error::{LimitKind, ReadError};
use crate::limits::{Options, Strictness};
use crate::page_digest::PageDigest;
use crate::quirk::{Quirk, QuirkSet};
use crate::record::Item;
use crate::scope::Scope;
use crate::verb::Verb;

/// Bytes of an unfinished tag or comment that are searched again with each chunk. Of more, only when they are half
/// as many again, so that tiny chunks do not make long ones costly.
const SEARCHED_AGAIN_BYTES: usize = 8 * 1024;
/// Longest tag or comment outside of records.
const MAX_MARKUP_BYTES: usize = 1024 * 1024;

/// Reads one answer of any verb, from chunks of bytes as they arrive, plain or gzip.
///
/// It does no I/O. Call [`feed`](Self::feed) with a chunk, then [`next`](Self::next) until it returns `Ok(None)`,
/// and so on; after the last chunk [`end`](Self::end), then `next` until `Ok(None)`. It holds one record and what
/// was fed. How the bytes are split changes nothing.
///
/// Reading has two passes: the first finds where a record ends, without trusting what is in it, so that a broken
/// record does not hide those behind it; the second parses it.
pub struct Reader {
    input: Input,
    options: Options,
    place: Place,
    /// The declarations of the root element, and of the verb's element.
    scope: Scope<'static>,
    root_name: Vec<u8>,
    verb_name: Vec<u8>,
    /// What is known of elements of the name that was met last.
    unit: Unit,
    /// The search for the end of the element that begins at the next byte.
    scan: Option<Scan>,
    /// Behind a broken record: searching for the next.
    searching: bool,
    unclosed: Unclosed,
    /// Nothing is searched before so many bytes are there.
    wanted: usize,
    /// Text between elements was counted, up to the next markup.
    in_text: bool,
    opening: opening::Opening,
    answer: Answer,
    digest: Sha256,
    scratch: String,
    refused: Option<Refused>,
    failed: Option<ReadError>,
}

/// The first quirk that strict mode refuses.
struct Refused {
    quirk: Quirk,
    position: Position,
    /// The identifier of the record that has it.
    record: Option<String>,
}

impl Refused {
    fn error(&self) -> ReadError {
        let Self { quirk, position, record } = self;
        ReadError::Quirk { position: *position, quirk: *quirk, record: record.clone() }
    }
}

/// Where in the answer the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the root element.
    Prolog,
    /// In the root element.
    Root,
    /// In the verb's element.
    Verb,
    /// Behind the root element.
    Behind,
    /// Behind something that should not be behind the root element.
    Trailing,
}

/// What a step of the reading gave.
enum Step {
    Item(Item),
    Again,
    /// More bytes are needed.
    More,
}

impl Reader {
    /// A reader of one answer.
    pub fn new(options: Options) -> Self {
        Self {
            input: Input::new(),
            options,
            place: Place::Prolog,
            scope: Scope::default(),
            root_name: Vec::new(),
            verb_name: Vec::new(),
            unit: Unit::default(),
            scan: None,
            searching: false,
            unclosed: Unclosed::default(),
            wanted: 0,
            in_text: false,
            opening: opening::Opening::default(),
            answer: Answer::default(),
            digest: Sha256::new(),
            scratch: String::new(),
            refused: None,
            failed: None,
        }
    }

    /// Adds bytes. [`next`](Self::next) reads them.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.input.feed(bytes, &self.options.limits);
    }

    /// No more bytes follow.
    pub fn end(&mut self) {
        self.input.end(&self.options.limits);
    }

    /// The next item. `Ok(None)`: more bytes are needed, or, after [`end`](Self::end), there is none.
    ///
    /// # Errors
    /// Any [`ReadError`]; each ends the reading, and is returned again. What was returned before stays valid.
    #[expect(clippy::should_implement_trait, reason = "an error ends the reading, which Iterator cannot say")]
    pub fn next(&mut self) -> Result<Option<Item>, ReadError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let item = self.advance();
        if let Err(error) = &item {
            self.failed = Some(error.clone());
            self.seal();
        }
        item
    }

    /// What the answer says beside its items, as far as it is read. It stays valid after an error.
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// Ends the reading and returns what the answer says beside its items.
    pub fn into_answer(self) -> Answer {
        self.answer
    }

    /// Bytes of the answer so far, after decompression.
    pub fn bytes_read(&self) -> u64 {
        self.input.total()
    }

    fn advance(&mut self) -> Result<Option<Item>, ReadError> {
        let mut is_last = false;
        loop {
            let step = self.step(is_last)?;
            if let Some(refused) = &self.refused {
                return Err(refused.error());
            }
            match step {
                Step::Item(item) => return Ok(Some(item)),
                Step::Again => {}
                Step::More if self.input.more(&self.options.limits) => {}
                Step::More if is_last => return self.ran_out().map(|()| None),
                Step::More if self.input.is_ended() => is_last = true,
                Step::More => return Ok(None),
            }
        }
    }

    fn step(&mut self, is_last: bool) -> Result<Step, ReadError> {
        if self.input.ahead().len() < self.wanted && !is_last {
            return Ok(Step::More);
        }
        self.wanted = 0;
        if self.searching {
            return Ok(self.search(is_last));
        }
        if self.scan.is_some() {
            return self.scan(is_last);
        }
        if self.place == Place::Prolog && !self.begin(is_last)? {
            return Ok(Step::More);
        }
        let ahead = self.input.ahead();
        if ahead.is_empty() {
            return Ok(Step::More);
        }
        if self.place == Place::Trailing {
            let length = ahead.len();
            self.input.consume(length);
            return Ok(Step::Again);
        }
        let found = markup(ahead);
        if self.place == Place::Behind {
            return Ok(self.behind(&found, is_last));
        }
        match found {
            Markup::Text(length) => {
                let is_blank = ahead[..length].trim_ascii().is_empty();
                self.text(length, is_blank)?;
                return Ok(Step::Again);
            }
            Markup::Incomplete => {
                if ahead.len() > MAX_MARKUP_BYTES {
                    return Err(self.limit(LimitKind::ElementBytes(MAX_MARKUP_BYTES)));
                }
                self.want_more(0);
                return Ok(Step::More);
            }
            Markup::Stray => {
                self.text(1, false)?;
                return Ok(Step::Again);
            }
            Markup::Doctype => return self.doctype(is_last),
            Markup::Skipped { length, kind } => self.skipped(length, kind)?,
            Markup::Start { length, empty } => self.start(length, empty)?,
            Markup::End { length } => self.end_tag(length)?,
        }
        self.in_text = false;
        Ok(Step::Again)
    }

    /// Text between elements: blanks, or what should not be there.
    fn text(&mut self, length: usize, is_blank: bool) -> Result<(), ReadError> {
        if self.place == Place::Prolog {
            if !is_blank {
                let blank = self.input.ahead().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                self.input.consume(blank);
                return Err(self.not_xml());
            }
            self.opening.blank = true;
        } else if !is_blank && !self.in_text {
            self.in_text = true;
            self.note(Quirk::StrayText);
        }
        self.input.consume(length);
        Ok(())
    }

    fn skipped(&mut self, length: usize, kind: Skipped) -> Result<(), ReadError> {
        if length > MAX_MARKUP_BYTES {
            return Err(self.limit(LimitKind::ElementBytes(MAX_MARKUP_BYTES)));
        }
        match (self.place, kind) {
            (Place::Prolog, Skipped::Cdata) => return Err(self.not_xml()),
            (Place::Prolog, Skipped::Instruction) => self.instruction(length),
            (_, Skipped::Cdata) => self.note(Quirk::StrayText),
            _ => {}
        }
        self.opening.anything = true;
        self.input.consume(length);
        Ok(())
    }

    fn start(&mut self, length: usize, empty: bool) -> Result<(), ReadError> {
        let ahead = &self.input.ahead()[..length];
        let name_length = ahead[1..]
            .iter()
            .position(|byte| matches!(byte, b'>' | b'/' | b' ' | b'\t' | b'\r' | b'\n'))
            .unwrap_or(0);
        let name = &ahead[1..=name_length];
        if self.place == Place::Prolog {
            return self.root(length, name_length, empty);
        }
        let local = name.iter().position(|byte| *byte == b':').map_or(name, |colon| &name[colon + 1..]);
        let verb = if self.place == Place::Root {
            std::str::from_utf8(local).ok().and_then(|local| Verb::from_str(local).ok())
        } else {
            None
        };
        if let Some(verb) = verb
            && self.verb(verb, length, name_length, empty)?
        {
            return Ok(());
        }
        // Its parts are borrowed anew, since the verb's element may have been entered.
        let name = &self.input.ahead()[1..=name_length];
        let local = name.iter().position(|byte| *byte == b':').map_or(name, |colon| &name[colon + 1..]);
        let list = self.answer.verb.filter(|verb| self.place == Place::Verb && *verb != Verb::Identify);
        if !self.unit.is_named(name) || self.unit.list != list {
            self.unit = Unit::named(name, local, list, [self.verb_name.clone(), self.root_name.clone()]);
        }
        self.scan = Some(Scan::new());
        Ok(())
    }

    fn end_tag(&mut self, length: usize) -> Result<(), ReadError> {
        let name = self.input.ahead()[2..length - 1].trim_ascii_end();
        match self.place {
            Place::Verb if *name == self.verb_name[..] => {
                self.scope.leave(1);
                self.place = Place::Root;
                self.input.consume(length);
            }
            Place::Root if *name == self.root_name[..] => {
                self.input.consume(length);
                self.finish();
            }
            Place::Prolog => return Err(self.not_xml()),
            // What a broken record left over.
            Place::Verb if self.answer.verb != Some(Verb::Identify) && *name != self.root_name[..] => {
                self.note(Quirk::BrokenRecord);
                self.input.consume(length);
            }
            _ => {
                let found = record::shown(&String::from_utf8_lossy(name));
                let open = if self.place == Place::Verb { &self.verb_name } else { &self.root_name };
                let expected = record::shown(&String::from_utf8_lossy(open));
                let message = format!("found </{found}> where </{expected}> was expected");
                return Err(ReadError::Malformed { position: self.input.position(), message });
            }
        }
        Ok(())
    }

    /// Waits for more bytes, if what is not finished begins at this byte and is long already.
    fn want_more(&mut self, begins: usize) {
        let there = self.input.ahead().len();
        let unfinished = there.saturating_sub(begins);
        if unfinished > SEARCHED_AGAIN_BYTES {
            let most = self.options.limits.max_record_bytes.saturating_add(1).max(there + 1);
            self.wanted = (there + unfinished / 2).min(most);
        }
    }

    fn limit(&self, limit: LimitKind) -> ReadError {
        ReadError::Limit { position: self.input.position(), limit }
    }

    /// Counts a quirk at the next byte.
    fn note(&mut self, quirk: Quirk) {
        self.note_at(quirk, self.input.position());
    }

    fn note_at(&mut self, quirk: Quirk, position: Position) {
        self.answer.quirks.add(quirk);
        if self.options.strictness == Strictness::Strict && quirk.is_refused_when_strict() {
            self.refused.get_or_insert(Refused { quirk, position, record: None });
        }
    }

    fn note_all(&mut self, quirks: QuirkSet, position: Position) {
        if !quirks.is_empty() {
            quirks.iter().for_each(|quirk| self.note_at(quirk, position));
        }
    }

    /// Closes the page's digest.
    fn seal(&mut self) {
        self.answer.digest = PageDigest::of(&self.digest);
    }
}

/// Reads a whole answer from memory: an Identify, a GetRecord, the first page of a discovery. The items before an
/// error are returned too.
pub fn read(bytes: &[u8], options: Options) -> (Vec<Item>, Answer, Result<(), ReadError>) {
    let mut reader = Reader::new(options);
    reader.feed(bytes);
    reader.end();
    let mut items = Vec::new();
    let end = loop {
        match reader.next() {
            Ok(Some(item)) => items.push(item),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    (items, reader.into_answer(), end)
}
