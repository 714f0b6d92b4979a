//! Finds where elements end, without parsing them: the first of two passes. It never trusts what is inside a
//! record, so that a broken one does not hide those behind it.

use memchr::{memchr, memchr2, memmem};

/// Longest tag; a longer one is taken for text.
const MAX_TAG_BYTES: usize = 1024 * 1024;
/// Longest blank space between the start of a record and its header.
const MAX_BLANK_BYTES: usize = 4 * 1024;

/// Markup between elements.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Markup {
    /// Blank or other text of this length; no markup begins in it.
    Text(usize),
    /// A comment, a processing instruction or a CDATA section of this length.
    Skipped { length: usize, kind: Skipped },
    /// `<!DOCTYPE`.
    Doctype,
    /// A start tag of this length.
    Start { length: usize, empty: bool },
    /// An end tag of this length.
    End { length: usize },
    /// A `<` that begins no markup.
    Stray,
    /// It does not end in the bytes so far.
    Incomplete,
}

/// What is passed over between elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Skipped {
    Comment,
    Instruction,
    Cdata,
}

/// The markup at the start of some bytes, which are not empty.
pub(super) fn markup(bytes: &[u8]) -> Markup {
    match memchr(b'<', bytes) {
        None => return Markup::Text(bytes.len()),
        Some(0) => {}
        Some(text) => return Markup::Text(text),
    }
    let long = |open: &str, close: &[u8], kind| match memmem::find(&bytes[open.len()..], close) {
        Some(at) => Markup::Skipped { length: open.len() + at + close.len(), kind },
        None => Markup::Incomplete,
    };
    match bytes.get(1) {
        None => Markup::Incomplete,
        Some(b'!') => match bang(bytes) {
            Bang::Comment => long("<!--", b"-->", Skipped::Comment),
            Bang::Cdata => long("<![CDATA[", b"]]>", Skipped::Cdata),
            Bang::Unknown => Markup::Incomplete,
            Bang::Other => Markup::Doctype,
        },
        Some(b'?') => long("<?", b"?>", Skipped::Instruction),
        Some(b'/') => match tag_end(bytes) {
            TagEnd::At { length, .. } => Markup::End { length },
            TagEnd::Cut => Markup::Incomplete,
            TagEnd::None => Markup::Stray,
        },
        Some(&first) if begins_name(first) => match tag_end(bytes) {
            TagEnd::At { length, empty } => Markup::Start { length, empty },
            TagEnd::Cut => Markup::Incomplete,
            TagEnd::None => Markup::Stray,
        },
        Some(_) => Markup::Stray,
    }
}

/// The element names that end a broken element.
#[derive(Clone, Debug, Default)]
pub(super) struct Guide {
    /// The element's own qualified name.
    pub(super) own: Vec<u8>,
    /// The qualified name of the list's items; empty outside of lists.
    pub(super) item: Vec<u8>,
    /// The qualified name of an item's first child, which shows that a start tag of the item's name is the next
    /// item, and not part of the metadata.
    pub(super) first_child: Vec<u8>,
    /// The qualified name of `resumptionToken`.
    pub(super) token: Vec<u8>,
    /// The qualified names of the elements around it.
    pub(super) outer: [Vec<u8>; 2],
}

/// A search for the end of an element, which goes on where it stopped when more bytes are there.
#[derive(Debug)]
pub(super) struct Scan {
    /// Bytes from the element's start that were searched.
    at: usize,
    depth: usize,
}

/// Where an element ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It is whole, and has this length.
    Whole(usize),
    /// It is cut by what comes at this place, which is not part of it.
    Cut(usize),
    /// Its tags do not match; what follows from this place on must be searched.
    Broken(usize),
    /// More bytes are needed.
    Incomplete,
}

/// Places before which no end of a comment or CDATA section is, by the answer's bytes: each is looked for once.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unclosed {
    pub(super) comment: u64,
    pub(super) cdata: u64,
    pub(super) instruction: u64,
}

impl Scan {
    pub(super) fn new() -> Self {
        Self { at: 0, depth: 0 }
    }

    /// How far the search came.
    pub(super) fn reached(&self) -> usize {
        self.at
    }

    /// Searches for the end of the element at the start of `bytes`. `is_last`: no more bytes will come.
    pub(super) fn find(
        &mut self,
        bytes: &[u8],
        guide: &Guide,
        offset: u64,
        unclosed: &mut Unclosed,
        is_last: bool,
    ) -> Found {
        loop {
            let Some(found) = memchr(b'<', &bytes[self.at..]) else {
                self.at = bytes.len();
                return Found::Incomplete;
            };
            self.at += found;
            let rest = &bytes[self.at..];
            match rest.get(1) {
                None => return Found::Incomplete,
                Some(b'!') => match bang(rest) {
                    Bang::Comment => {
                        match close(rest, 4, b"-->", offset + self.at as u64, &mut unclosed.comment) {
                            Some(length) => self.at += length,
                            None => return Found::Incomplete,
                        }
                    }
                    Bang::Cdata => {
                        match close(rest, 9, b"]]>", offset + self.at as u64, &mut unclosed.cdata) {
                            Some(length) => self.at += length,
                            None => return Found::Incomplete,
                        }
                    }
                    Bang::Unknown if !is_last => return Found::Incomplete,
                    Bang::Unknown | Bang::Other => self.at += 2,
                },
                Some(b'?') => {
                    match close(rest, 2, b"?>", offset + self.at as u64, &mut unclosed.instruction) {
                        Some(length) => self.at += length,
                        None => return Found::Incomplete,
                    }
                }
                Some(b'/') => match tag_end(rest) {
                    TagEnd::At { length, .. } => {
                        let name = rest[2..length - 1].trim_ascii_end();
                        if self.depth > 0 && guide.is_outer(name) {
                            return Found::Cut(self.at);
                        }
                        self.depth = self.depth.saturating_sub(1);
                        if self.depth == 0 {
                            return if name == &guide.own[..] {
                                Found::Whole(self.at + length)
                            } else {
                                Found::Broken(self.at + length)
                            };
                        }
                        self.at += length;
                    }
                    TagEnd::Cut => return Found::Incomplete,
                    TagEnd::None => self.at += 2,
                },
                Some(&first) if begins_name(first) => match tag_end(rest) {
                    TagEnd::At { length, empty } => {
                        if self.depth > 0 {
                            match guide.next_element(rest, length, is_last) {
                                Some(true) => return Found::Cut(self.at),
                                Some(false) => {}
                                None => return Found::Incomplete,
                            }
                        }
                        if !empty {
                            self.depth += 1;
                        } else if self.depth == 0 {
                            return Found::Whole(self.at + length);
                        }
                        self.at += length;
                    }
                    TagEnd::Cut => return Found::Incomplete,
                    TagEnd::None => self.at += 1,
                },
                Some(_) => self.at += 1,
            }
        }
    }
}

impl Guide {
    /// Whether a name is that of an element around this one.
    fn is_outer(&self, name: &[u8]) -> bool {
        self.outer.iter().any(|outer| !outer.is_empty() && name == &outer[..])
    }

    /// Whether the start tag at the start of `bytes`, of this length, begins the next element or the token.
    /// `None`: more bytes are needed.
    fn next_element(&self, bytes: &[u8], length: usize, is_last: bool) -> Option<bool> {
        if has_name(&bytes[1..length], &self.token) {
            return Some(true);
        }
        if !has_name(&bytes[1..length], &self.item) {
            return Some(false);
        }
        let rest = &bytes[length..];
        let blank = rest.iter().take(MAX_BLANK_BYTES).take_while(|byte| byte.is_ascii_whitespace()).count();
        let rest = &rest[blank..];
        if rest.len() > self.first_child.len() + 1 {
            return Some(rest[0] == b'<' && has_name(&rest[1..], &self.first_child));
        }
        // It may still become that name.
        let begun = rest.iter().zip([b'<'].iter().chain(&self.first_child)).all(|(one, other)| one == other);
        if is_last || !begun { Some(false) } else { None }
    }

    /// Searches broken bytes for the next element, the token or the end of an element around it. Returns its
    /// place, or `Err` with how many bytes were searched.
    pub(super) fn resynchronise(&self, bytes: &[u8], is_last: bool) -> Result<usize, usize> {
        let mut at = 0;
        loop {
            let Some(found) = memchr(b'<', &bytes[at..]) else { return Err(bytes.len()) };
            at += found;
            let rest = &bytes[at..];
            let is_end = rest.get(1) == Some(&b'/');
            if rest.len() < 2 {
                return Err(at);
            }
            match tag_end(rest) {
                TagEnd::At { length, .. } if is_end => {
                    let name = rest[2..length - 1].trim_ascii_end();
                    if self.is_outer(name) {
                        return Ok(at);
                    }
                }
                TagEnd::At { length, .. } => match self.next_element(rest, length, is_last) {
                    Some(true) => return Ok(at),
                    Some(false) => {}
                    None => return Err(at),
                },
                TagEnd::Cut if !is_last => return Err(at),
                TagEnd::Cut | TagEnd::None => {}
            }
            at += 1;
        }
    }
}

/// The length of a comment, CDATA section or processing instruction whose opening has this length, if it ends.
fn close(rest: &[u8], opening: usize, closing: &[u8], offset: u64, unclosed: &mut u64) -> Option<usize> {
    // What was searched already is not searched again, except where the closing may have been cut.
    let known = usize::try_from(unclosed.saturating_sub(offset)).unwrap_or(usize::MAX).min(rest.len());
    let from = known.saturating_sub(closing.len() - 1).max(opening);
    match rest.get(from..).and_then(|rest| memmem::find(rest, closing)) {
        Some(at) => Some(from + at + closing.len()),
        None => {
            *unclosed = (*unclosed).max(offset + rest.len() as u64);
            None
        }
    }
}

enum Bang {
    Comment,
    Cdata,
    Other,
    Unknown,
}

fn bang(bytes: &[u8]) -> Bang {
    if bytes.starts_with(b"<!--") {
        Bang::Comment
    } else if bytes.starts_with(b"<![CDATA[") {
        Bang::Cdata
    } else if b"<!--".starts_with(bytes) || b"<![CDATA[".starts_with(bytes) {
        Bang::Unknown
    } else {
        Bang::Other
    }
}

enum TagEnd {
    At {
        length: usize,
        empty: bool,
    },
    Cut,
    /// There is a `<` before its end, or it is far too long.
    None,
}

/// The end of the tag at the start of `bytes`; `>` within quotes does not end it.
fn tag_end(bytes: &[u8]) -> TagEnd {
    let bytes = &bytes[..bytes.len().min(MAX_TAG_BYTES)];
    let cut = if bytes.len() == MAX_TAG_BYTES { TagEnd::None } else { TagEnd::Cut };
    let mut at = 1;
    loop {
        let mut end = at;
        // Most tags are short, so bytes are compared one by one.
        let byte = loop {
            match bytes.get(end) {
                None => return cut,
                Some(byte @ (b'>' | b'<' | b'"' | b'\'')) => break *byte,
                Some(_) => end += 1,
            }
        };
        match byte {
            b'>' => return TagEnd::At { length: end + 1, empty: bytes[end - 1] == b'/' && end > 1 },
            b'<' => return TagEnd::None,
            quote => match memchr2(quote, b'<', &bytes[end + 1..]) {
                None => return cut,
                Some(close) if bytes[end + 1 + close] == b'<' => return TagEnd::None,
                Some(close) => at = end + 1 + close + 1,
            },
        }
    }
}

/// Whether the bytes behind a `<` begin with this whole name.
fn has_name(bytes: &[u8], name: &[u8]) -> bool {
    !name.is_empty()
        && bytes.starts_with(name)
        && bytes.get(name.len()).is_none_or(|byte| matches!(byte, b'>' | b'/' | b' ' | b'\t' | b'\r' | b'\n'))
}

fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte == b':' || byte >= 0x80
}
