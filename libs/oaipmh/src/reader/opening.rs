//! The beginning of an answer: byte order mark, XML declaration, and what is no answer at all.

use super::{Reader, Step};
use crate::error::ReadError;
use crate::quirk::Quirk;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const DOCTYPE_HTML_BYTES: usize = 14;

/// What came before the root element.
#[derive(Debug, Default)]
pub(super) struct Opening {
    begun: bool,
    /// Blank space came.
    pub(super) blank: bool,
    /// An XML declaration, comment or processing instruction came.
    pub(super) anything: bool,
    /// What the first bytes look like if they are not XML.
    found: &'static str,
}

impl Reader {
    /// Looks at the first bytes. `false`: more are needed.
    pub(super) fn begin(&mut self, is_last: bool) -> Result<bool, ReadError> {
        if self.opening.begun {
            return Ok(true);
        }
        let ahead = self.input.ahead();
        if ahead.len() < 4 && !is_last {
            return Ok(false);
        }
        if let [0xfe, 0xff, ..] | [0xff, 0xfe, ..] | [0, b'<', ..] | [b'<', 0, 1..=0xff, ..] = ahead {
            return Err(ReadError::Encoding { position: self.input.position(), encoding: "UTF-16" });
        }
        self.opening.found = match ahead {
            [b'P', b'K', 3 | 5, _, ..] => "a ZIP package",
            [b'%', b'P', b'D', b'F', ..] => "a PDF file",
            [b'{' | b'[', ..] => "JSON or other text",
            _ => "other text or data",
        };
        self.opening.begun = true;
        if self.input.is_gzip() {
            self.note(Quirk::Gzip);
        }
        if self.input.ahead().starts_with(BYTE_ORDER_MARK) {
            self.note(Quirk::ByteOrderMark);
            self.input.consume(BYTE_ORDER_MARK.len());
        }
        Ok(true)
    }

    pub(super) fn not_xml(&self) -> ReadError {
        ReadError::NotXml { position: self.input.position(), found: self.opening.found }
    }

    /// A processing instruction before the root element, of this length.
    pub(super) fn instruction(&mut self, length: usize) {
        let text = String::from_utf8_lossy(&self.input.ahead()[..length]).into_owned();
        let Some(declaration) = text.strip_prefix("<?xml") else { return };
        if !declaration.starts_with(|character: char| character.is_ascii_whitespace()) {
            return;
        }
        if self.opening.blank {
            self.note(Quirk::BlankBeforeProlog);
        }
        if encoding(declaration).is_some_and(|name| !is_utf8(name)) {
            self.note(Quirk::OtherEncoding);
        }
    }

    /// `<!` outside of records that begins no comment.
    pub(super) fn doctype(&self, is_last: bool) -> Result<Step, ReadError> {
        let ahead = self.input.ahead();
        if ahead.len() < DOCTYPE_HTML_BYTES && !is_last {
            return Ok(Step::More);
        }
        let position = self.input.position();
        let start = &ahead[..ahead.len().min(DOCTYPE_HTML_BYTES)];
        if start.to_ascii_lowercase().starts_with(b"<!doctype html") {
            return Err(ReadError::Html { position });
        }
        Err(ReadError::DoctypeRefused { position })
    }
}

/// The encoding that an XML declaration names.
fn encoding(declaration: &str) -> Option<&str> {
    let (_, rest) = declaration.split_once("encoding")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    rest[1..].split_once(quote).map(|(name, _)| name.trim())
}

fn is_utf8(encoding: &str) -> bool {
    ["utf-8", "utf8", "us-ascii", "ascii"].iter().any(|name| name.eq_ignore_ascii_case(encoding))
}
