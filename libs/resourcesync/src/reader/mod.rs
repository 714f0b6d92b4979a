use std::io::{BufRead, Read};

use serde::Serialize;

mod attributes;
mod checks;
mod cursor;
mod draft;
mod heading;
mod input;
mod notes;
mod opening;
mod outline;
mod reference;
mod scope;
mod source;
mod tokens;
mod uri;
mod values;

use self::checks::Checks;
use self::cursor::Stop;
use self::draft::Draft;
use self::heading::header_error;
use self::notes::Notes;
use self::outline::Outline;
use self::scope::Name;
use self::source::Source;
use self::tokens::{Token, Tokens};
use crate::capability::Root;
use crate::entry::{BadEntry, Entry, Item};
use crate::error::ReadError;
use crate::header::Header;
use crate::limits::{Mode, Options};
use crate::position::Position;
use crate::quirk::{Quirk, Quirks};

/// Reads one document, entry by entry, from any stream of bytes, plain or gzip.
///
/// It holds one entry and a buffer of 64 KiB, however long the document. Items that it returned before an
/// error stay valid; after an error it returns that error again.
///
/// Entries in the common shape are read straight from the buffer, all others token by token from the XML
/// parser. Both give the same result; the first is twice as fast.
pub struct Reader<R> {
    tokens: Tokens<R>,
    notes: Notes,
    options: Options,
    /// The header as far as it is read; `None` before the root element.
    header: Option<Header>,
    header_bytes: u64,
    checks: Option<Checks>,
    /// The outline of entries in the common shape, if the document can have them.
    outline: Option<Outline>,
    /// An entry whose start tag is read.
    pending: Option<Pending>,
    scratch: String,
    entries: u64,
    bad: u64,
    complete: bool,
    failed: Option<ReadError>,
}

/// Progress of a reading, and its quirks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Entries returned as [`Item::Entry`].
    pub entries: u64,
    /// Entries returned as [`Item::Bad`].
    pub bad: u64,
    /// Whether the root element was read to its end. If not, nothing may be concluded from what is missing.
    pub complete: bool,
    /// The quirks.
    pub quirks: Quirks,
}

const BUFFER: usize = 64 * 1024;
/// Enough for the marks of encodings and any character.
const LEAST_BUFFER: usize = 16;

struct Pending {
    position: Position,
    empty: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the first two bytes, to tell gzip.
    ///
    /// # Errors
    /// [`ReadError::Io`] when the stream fails at once.
    pub fn new(inner: R, options: Options) -> Result<Self, ReadError> {
        Self::with_buffer(inner, options, BUFFER)
    }

    /// As [`new`](Self::new), with a buffer of this many bytes (16 at least). Entries that are longer than
    /// the buffer are read token by token.
    ///
    /// # Errors
    /// [`ReadError::Io`] when the stream fails at once.
    pub fn with_buffer(inner: R, options: Options, bytes: usize) -> Result<Self, ReadError> {
        let bytes = bytes.max(LEAST_BUFFER);
        let source = Source::open(inner, &options.limits, bytes).map_err(|error| ReadError::Io {
            position: Position::default(),
            source: std::sync::Arc::new(error),
        })?;
        Ok(Self {
            tokens: Tokens::new(source, &options.limits),
            notes: Notes::new(options.mode),
            options,
            header: None,
            header_bytes: 0,
            checks: None,
            outline: None,
            pending: None,
            scratch: String::new(),
            entries: 0,
            bad: 0,
            complete: false,
            failed: None,
        })
    }

    /// The document's own metadata. Reads up to the first entry or the end.
    ///
    /// Metadata and links behind entries are added when they are read, as [`Quirk::LateHeader`].
    ///
    /// # Errors
    /// Any [`ReadError`].
    pub fn header(&mut self) -> Result<&Header, ReadError> {
        self.guarded(Self::prepare)?;
        match &self.header {
            Some(header) => Ok(header),
            None => Err(self.tokens.truncated()),
        }
    }

    /// The next entry, good or bad; `None` behind the last one.
    ///
    /// # Errors
    /// Any [`ReadError`]; each ends the reading.
    #[expect(clippy::should_implement_trait, reason = "an error ends the reading, which Iterator cannot say")]
    pub fn next(&mut self) -> Result<Option<Item>, ReadError> {
        self.guarded(Self::advance)
    }

    /// Bytes of the document read so far, after decompression.
    pub fn bytes_read(&self) -> u64 {
        self.tokens.bytes_read()
    }

    /// The progress of the reading.
    pub fn summary(&self) -> Summary {
        Summary {
            entries: self.entries,
            bad: self.bad,
            complete: self.complete,
            quirks: self.notes.quirks().clone(),
        }
    }

    /// After an error, returns it again.
    fn guarded<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, ReadError>) -> Result<T, ReadError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        step(self).inspect_err(|error| self.failed = Some(error.clone()))
    }

    fn prepare(&mut self) -> Result<(), ReadError> {
        if self.checks.is_some() {
            return Ok(());
        }
        let (root, empty) = self.open()?;
        if root == Root::UrlSet {
            self.outline = Outline::of(self.tokens.scope(), &self.options.limits);
        }
        let header = self.header.insert(Header::new(root, None));
        header.links.reserve(2);
        if empty {
            self.finish()?;
        } else {
            self.seek_entry()?;
        }
        if let Some(header) = &self.header {
            self.checks = Some(Checks::new(header, self.options.latest, &mut self.notes));
        }
        let position = self.tokens.position();
        self.refuse(position)
    }

    fn advance(&mut self) -> Result<Option<Item>, ReadError> {
        self.prepare()?;
        if self.pending.is_none() && !self.complete {
            if let Some(item) = self.outlined()? {
                return self.hand_out(item).map(Some);
            }
            self.seek_entry()?;
        }
        let Some(Pending { position, empty }) = self.pending.take() else {
            let position = self.tokens.position();
            self.refuse(position)?;
            return Ok(None);
        };
        let item = self.entry(position, empty)?;
        self.hand_out(item).map(Some)
    }

    fn hand_out(&mut self, item: Item) -> Result<Item, ReadError> {
        match &item {
            Item::Entry(entry) => {
                self.refuse(entry.position)?;
                self.entries += 1;
            }
            Item::Bad(bad) => {
                self.refuse(bad.position)?;
                self.bad += 1;
            }
        }
        Ok(item)
    }

    /// In strict mode, the error for the first quirk that is not allowed there.
    fn refuse(&self, position: Position) -> Result<(), ReadError> {
        match self.notes.refused() {
            Some(quirk) => Err(ReadError::Quirk { position, quirk }),
            None => Ok(()),
        }
    }

    /// Reads the root element's children up to the next entry, which is then pending, or to its end.
    fn seek_entry(&mut self) -> Result<(), ReadError> {
        loop {
            match self.tokens.next(&mut self.notes)? {
                Token::Open(tag) => {
                    let name = tag.name;
                    let empty = tag.empty;
                    match name {
                        Name::Url | Name::Sitemap => {
                            let position = self.tokens.position();
                            self.pending = Some(Pending { position, empty });
                            let root = self.header.as_ref().map(|header| header.root);
                            if (root == Some(Root::UrlSet)) != (name == Name::Url) {
                                self.notes.add(Quirk::WrongEntryElement);
                            }
                            return Ok(());
                        }
                        Name::Md | Name::Ln => {
                            let flaw = match &mut self.header {
                                Some(header) => {
                                    self.header_bytes += tag.len() as u64;
                                    self.options.absorb(&tag, header, self.header_bytes, &mut self.notes)
                                }
                                None => Ok(()),
                            };
                            if self.checks.is_some() {
                                self.notes.add(Quirk::LateHeader);
                            }
                            flaw.map_err(|flaw| header_error(self.tokens.position(), flaw))?;
                        }
                        _ => {}
                    }
                    self.tokens.skip(empty, &mut self.notes)?;
                }
                Token::Close => return self.finish(),
                Token::End => return Err(self.tokens.truncated()),
                Token::Doctype { .. } => return Err(self.tokens.doctype()),
                Token::Text(_) | Token::Char(_) | Token::Declaration | Token::Other => {}
            }
        }
    }

    fn entry(&mut self, position: Position, empty: bool) -> Result<Item, ReadError> {
        let tells_changes = self.tells_changes();
        let mut draft = Draft::new(position, tells_changes, &self.options, &mut self.scratch);
        if !empty {
            draft.read(&mut self.tokens, &mut self.notes)?;
        }
        let finished = draft.finish(&mut self.notes);
        self.conclude(finished)
    }

    /// The next entry, if it is completely in the buffer and has the common shape; if not, nothing is
    /// consumed.
    fn outlined(&mut self) -> Result<Option<Item>, ReadError> {
        let tells_changes = self.tells_changes();
        let Some(outline) = &mut self.outline else { return Ok(None) };
        let source = self.tokens.source();
        let limits = &self.options.limits;
        let mut traced = outline.trace(source.ahead(), limits);
        if traced == Err(Stop::Cut) && source.read_to_end_of_entry() {
            traced = outline.trace(source.ahead(), limits);
        }
        let Ok(()) = traced else { return Ok(None) };
        source.mark_ahead(outline.start);
        let position = source.marked();
        let Ok(entry) = std::str::from_utf8(&source.ahead()[..outline.end]) else { return Ok(None) };
        let mut draft = Draft::new(position, tells_changes, &self.options, &mut self.scratch);
        draft.fill(entry, outline, &mut self.notes).map_err(|flaw| header_error(position, flaw))?;
        let finished = draft.finish(&mut self.notes);
        source.consume(outline.end);
        self.conclude(finished).map(Some)
    }

    /// Whether the document lists changes of resources.
    fn tells_changes(&self) -> bool {
        match &self.header {
            Some(Header { root: Root::UrlSet, capability: Some(capability), .. }) => {
                capability.tells_changes() && capability.lists_resources()
            }
            _ => false,
        }
    }

    fn conclude(&mut self, finished: Result<Box<Entry>, BadEntry>) -> Result<Item, ReadError> {
        match finished {
            Ok(entry) => {
                if let (Some(checks), Some(header)) = (&mut self.checks, &self.header) {
                    checks.entry(&entry, header, &mut self.notes);
                }
                Ok(Item::Entry(entry))
            }
            Err(BadEntry { position, reason, .. }) if self.options.mode == Mode::Strict => {
                Err(ReadError::BadEntry { position, reason })
            }
            Err(bad) => Ok(Item::Bad(bad)),
        }
    }

    /// After the root's end tag: runs the last checks, and checks that nothing follows.
    fn finish(&mut self) -> Result<(), ReadError> {
        self.complete = true;
        if let Some(checks) = &self.checks {
            checks.end(&mut self.notes);
        }
        let gzip = self.tokens.source().is_gzip();
        let quirk = loop {
            match self.tokens.next(&mut self.notes) {
                Ok(Token::Other) => {}
                Ok(Token::Text(text)) if text.trim().is_empty() => {}
                Ok(Token::End) => return Ok(()),
                Err(error @ ReadError::Io { .. }) => return Err(error),
                Err(ReadError::Gzip { .. } | ReadError::Truncated { .. }) if gzip => {
                    break Quirk::DamagedGzipEnd;
                }
                Ok(_) | Err(_) => break Quirk::TrailingBytes,
            }
        };
        self.notes.add(quirk);
        Ok(())
    }
}
