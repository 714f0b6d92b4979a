//! Finds the parts of a JSON text: a value, the children of a container. It checks no more than it needs to; nothing
//! here calls itself, so depth costs no stack.

use std::cell::Cell;
use std::ops::Range;

use crate::PatchError;

/// A JSON text that is read in parts, and the bytes that may still be read.
pub(crate) struct Scan<'t> {
    text: &'t [u8],
    work: &'t Cell<u64>,
}

/// A member of an object, or an element of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Child {
    /// The name, with its quotes; empty in an array, where the value begins.
    pub(crate) key: Range<usize>,
    /// Where the value begins.
    pub(crate) value: usize,
}

/// The children of a container, one after the other.
pub(crate) struct Children<'s, 't> {
    scan: &'s Scan<'t>,
    is_object: bool,
    at: usize,
    is_first: bool,
    /// Where the value of the last child begins. Its end is searched only when the next child is asked for.
    unread: Option<usize>,
    /// Where the container's closing bracket is, when all children were read.
    pub(crate) end: usize,
}

impl<'t> Scan<'t> {
    pub(crate) fn new(text: &'t [u8], work: &'t Cell<u64>) -> Self {
        Self { text, work }
    }

    pub(crate) fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    /// The text of a part that was found.
    pub(crate) fn text(&self, part: Range<usize>) -> &'t [u8] {
        &self.text[part]
    }

    /// The position after white space.
    pub(crate) fn skip_space(&self, at: usize) -> usize {
        let rest = self.text.get(at..).unwrap_or_default();
        at + rest.iter().take_while(|byte| is_space(**byte)).count()
    }

    /// Where the root value begins.
    pub(crate) fn root(&self) -> usize {
        let mark = if self.text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        self.skip_space(mark)
    }

    /// The value that begins here.
    pub(crate) fn value(&self, at: usize) -> Result<Range<usize>, PatchError> {
        let end = match self.byte(at) {
            Some(b'"') => self.end_of_string(at),
            Some(b'{' | b'[') => self.end_of_container(at),
            _ => self.end_of_literal(at),
        };
        let end = end.ok_or(PatchError::NotApplicable)?;
        self.charge(end - at)?;
        Ok(at..end)
    }

    /// The children of the container that begins here; none if no container does.
    pub(crate) fn children(&self, at: usize) -> Option<Children<'_, 't>> {
        let is_object = match self.byte(at)? {
            b'{' => true,
            b'[' => false,
            _ => return None,
        };
        Some(Children { scan: self, is_object, at: at + 1, is_first: true, unread: None, end: at })
    }

    fn charge(&self, bytes: usize) -> Result<(), PatchError> {
        charge(self.work, bytes)
    }

    /// The position after a string that begins here.
    pub(crate) fn end_of_string(&self, at: usize) -> Option<usize> {
        let mut at = at + 1;
        loop {
            match self.text.get(at)? {
                b'"' => return Some(at + 1),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
    }

    fn end_of_container(&self, at: usize) -> Option<usize> {
        let mut at = at;
        let mut depth = 0_usize;
        loop {
            match self.text.get(at)? {
                b'"' => {
                    at = self.end_of_string(at)?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                return Some(at);
            }
        }
    }

    /// The position after a number, `true`, `false` or `null`.
    pub(crate) fn end_of_literal(&self, at: usize) -> Option<usize> {
        let rest = self.text.get(at..)?;
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
        let length = rest.iter().take_while(is_part).count();
        (length > 0).then_some(at + length)
    }
}

impl Children<'_, '_> {
    /// The next child; none after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Child>, PatchError> {
        let scan = self.scan;
        if let Some(value) = self.unread.take() {
            self.at = scan.value(value)?.end;
        }
        let start = self.at;
        let mut at = scan.skip_space(self.at);
        let closing = if self.is_object { b'}' } else { b']' };
        match scan.byte(at) {
            Some(byte) if byte == closing => {
                self.end = at;
                return Ok(None);
            }
            Some(b',') if !self.is_first => at = scan.skip_space(at + 1),
            Some(_) if self.is_first => {}
            _ => return Err(PatchError::NotApplicable),
        }
        self.is_first = false;
        let key = if self.is_object {
            let is_key = scan.byte(at) == Some(b'"');
            let end = scan.end_of_string(at).filter(|_| is_key).ok_or(PatchError::NotApplicable)?;
            let colon = scan.skip_space(end);
            if scan.byte(colon) != Some(b':') {
                return Err(PatchError::NotApplicable);
            }
            let key = at..end;
            at = scan.skip_space(colon + 1);
            key
        } else {
            at..at
        };
        scan.charge(at - start)?;
        self.unread = Some(at);
        Ok(Some(Child { key, value: at }))
    }
}

/// Takes bytes that are read or moved from those that may be.
pub(crate) fn charge(work: &Cell<u64>, bytes: usize) -> Result<(), PatchError> {
    let left = work.get().checked_sub(bytes as u64 + 1).ok_or(PatchError::TooLarge)?;
    work.set(left);
    Ok(())
}

pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
