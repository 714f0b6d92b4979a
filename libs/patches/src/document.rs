//! A document while operations are applied to its text.

use std::cell::Cell;
use std::ops::Range;

use serde_json::Value;

use crate::operation::Operation;
use crate::place::{MemberOrder, Place, find};
use crate::scan::{Scan, charge};
use crate::style::Style;
use crate::{Limits, PatchError};

/// The most bytes of a value that a `test` compares: both sides are parsed for that.
const MOST_TESTED: usize = 16 * 1024;
/// The most memory of both. A list of one element takes room for four, and two bytes of text.
pub(crate) const TESTED: usize = 2 * MOST_TESTED * (4 * size_of::<Value>() / 2);

/// The work of parsing a byte, compared with that of finding where values end.
const PARSING: usize = 10;

/// A document, as text.
pub(crate) struct Document<'w> {
    text: Vec<u8>,
    style: Style,
    order: MemberOrder,
    /// Whether another order of new members could give another text.
    depends_on_order: bool,
    most: usize,
    work: &'w Cell<u64>,
}

impl<'w> Document<'w> {
    /// `work` are the bytes that may still be read and moved.
    pub(crate) fn new(text: &[u8], order: MemberOrder, limits: &Limits, work: &'w Cell<u64>) -> Self {
        let style = Style::of(text);
        Self { text: text.to_vec(), style, order, depends_on_order: false, most: limits.bytes, work }
    }

    pub(crate) fn depends_on_order(&self) -> bool {
        self.depends_on_order
    }

    pub(crate) fn into_text(self) -> Vec<u8> {
        self.text
    }

    /// Applies an operation.
    pub(crate) fn apply(&mut self, operation: &Operation<'_>) -> Result<(), PatchError> {
        match operation {
            Operation::Add { path, value } => self.add(&path.tokens()?, value.as_bytes()),
            Operation::Remove { path } => self.remove(&path.tokens()?),
            Operation::Replace { path, value } => {
                let path = path.tokens()?;
                let there = self.value_at(&path)?;
                self.put(there, value.as_bytes(), path.len())
            }
            Operation::Move { from, path } => self.move_value(&from.tokens()?, &path.tokens()?),
            Operation::Copy { from, path } => {
                let value = self.text[self.value_at(&from.tokens()?)?].to_vec();
                self.add(&path.tokens()?, &value)
            }
            Operation::Test { path, value } => self.test(&path.tokens()?, value),
        }
    }

    fn move_value(&mut self, from: &[String], path: &[String]) -> Result<(), PatchError> {
        // The whole document cannot be removed, not even to come back.
        if from == path && !path.is_empty() {
            return self.value_at(from).map(|_| ());
        }
        if path.starts_with(from) {
            return Err(PatchError::NotApplicable);
        }
        let value = self.text[self.value_at(from)?].to_vec();
        self.remove(from)?;
        self.add(path, &value)
    }

    fn scan(&self) -> Scan<'_> {
        Scan::new(&self.text, self.work)
    }

    /// The place that a token names in a container. See [`find`].
    fn place(&self, container: usize, token: &str, has_next: bool) -> Result<Place, PatchError> {
        find(&self.scan(), self.order, container, token, has_next)
    }

    /// The value that a pointer names.
    fn value_at(&self, path: &[String]) -> Result<Range<usize>, PatchError> {
        self.scan().value(self.start_of(path)?)
    }

    /// Where the value begins that a pointer names.
    fn start_of(&self, path: &[String]) -> Result<usize, PatchError> {
        let mut start = self.scan().root();
        for token in path {
            let place = self.place(start, token, false)?;
            start = place.child.ok_or(PatchError::NotApplicable)?.value;
        }
        Ok(start)
    }

    fn add(&mut self, path: &[String], value: &[u8]) -> Result<(), PatchError> {
        let Some((token, parent)) = path.split_last() else {
            let root = self.value_at(&[])?;
            return self.put(root, value, 0);
        };
        let container = self.start_of(parent)?;
        let place = self.place(container, token, false)?;
        let depth = path.len();
        let is_object = self.text[container] == b'{';
        let next = match (is_object, place.child, place.next) {
            (true, Some(there), _) => {
                let there = self.scan().value(there.value)?;
                return self.put(there, value, depth);
            }
            (true, None, next) => next,
            // An element comes before the one at its place.
            (false, there, _) => there,
        };
        self.depends_on_order |= is_object && place.previous.as_ref().or(next.as_ref()).is_some();
        // What is written comes before a child, after the last one, or between the brackets.
        let mut text = Vec::with_capacity(value.len() + 64);
        let there = match (&next, &place.previous) {
            (Some(next), _) => next.key.start..next.key.start,
            (None, Some(previous)) => {
                let end = self.scan().value(previous.value)?.end;
                self.style.comma(depth, &mut text);
                end..end
            }
            (None, None) => {
                self.style.begin_line(depth, &mut text);
                container + 1..place.closing
            }
        };
        if is_object {
            let key = serde_json::to_string(token).map_err(|_| PatchError::NotApplicable)?;
            text.extend_from_slice(key.as_bytes());
            text.extend_from_slice(self.style.colon());
        }
        self.style.write(value, depth, self.most, &mut text)?;
        if next.is_some() {
            self.style.comma(depth, &mut text);
        } else if place.previous.is_none() {
            self.style.begin_line(depth - 1, &mut text);
        }
        self.splice(there, &text)
    }

    fn remove(&mut self, path: &[String]) -> Result<(), PatchError> {
        let (token, parent) = path.split_last().ok_or(PatchError::NotApplicable)?;
        let container = self.start_of(parent)?;
        let place = self.place(container, token, true)?;
        let child = place.child.ok_or(PatchError::NotApplicable)?;
        let removed = match (place.previous, place.next) {
            (Some(previous), _) => {
                let scan = self.scan();
                scan.value(previous.value)?.end..scan.value(child.value)?.end
            }
            (None, Some(next)) => child.key.start..next.key.start,
            (None, None) => container + 1..place.closing,
        };
        self.splice(removed, b"")
    }

    /// Puts a value at this depth in the place of another one.
    fn put(&mut self, there: Range<usize>, value: &[u8], depth: usize) -> Result<(), PatchError> {
        let mut text = Vec::with_capacity(value.len());
        self.style.write(value, depth, self.most, &mut text)?;
        self.splice(there, &text)
    }

    fn splice(&mut self, there: Range<usize>, text: &[u8]) -> Result<(), PatchError> {
        if self.text.len() - there.len() + text.len() > self.most {
            return Err(PatchError::TooLarge);
        }
        charge(self.work, self.text.len() + text.len())?;
        // No more memory than it needs: documents may be large.
        self.text.reserve_exact(text.len().saturating_sub(there.len()));
        self.text.splice(there, text.iter().copied());
        Ok(())
    }

    fn test(&self, path: &[String], expected: &str) -> Result<(), PatchError> {
        let there = self.value_at(path)?;
        if there.len() > MOST_TESTED || expected.len() > MOST_TESTED {
            return Err(PatchError::TooLarge);
        }
        // They are parsed, which takes longer than to find their ends.
        charge(self.work, PARSING * (there.len() + expected.len()))?;
        let there: Result<Value, _> = serde_json::from_slice(&self.text[there]);
        let expected: Result<Value, _> = serde_json::from_str(expected);
        match (there, expected) {
            (Ok(there), Ok(expected)) if there == expected => Ok(()),
            _ => Err(PatchError::NotApplicable),
        }
    }
}
