//! Faults of a Source, and their places.

use std::collections::HashMap;
use std::time::Duration;

/// A fault at one path, until it is cleared or has occurred the given number of times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Answers with this status and a short text, and `Retry-After` in seconds if given.
    Status {
        /// The status code.
        code: u16,
        /// The value of `Retry-After`, in seconds.
        retry_after: Option<u64>,
        /// How often; always when absent.
        times: Option<u32>,
    },
    /// Lists declare a length that is one byte more than the resource has.
    WrongLength,
    /// The first byte of the body differs from the one whose digest is declared.
    WrongDigest,
    /// The connection is closed after this many bytes of the body, although more were announced.
    CutOff {
        /// How many bytes of the body still arrive.
        after: u64,
        /// How often; always when absent.
        times: Option<u32>,
    },
    /// The response starts only after this delay.
    Slow(Duration),
    /// Redirects with 302 to this path of the same Source, or to this absolute URI.
    Redirect(String),
    /// The document ends in the middle of its entries (documents only).
    TruncateDocument,
    /// A tag in the middle of the document is never closed (documents only).
    MalformedDocument,
    /// Answers with an HTML page and status 200.
    HtmlPage,
}

/// The place of a fault: a resource by its index, or any path or URI of the Source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The resource with this index.
    Resource(u64),
    /// A path such as `/set/resourcelist.xml`, or the whole URI.
    Path(String),
}

/// The faults of a Source, by path.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    by_path: HashMap<String, Fault>,
    /// Counts changes to the contents of lists, so that their entity tags change with them.
    declarations: u64,
}

impl Fault {
    /// This status, always.
    pub fn status(code: u16) -> Fault {
        Fault::Status { code, retry_after: None, times: None }
    }

    /// 503 with `Retry-After`, this many times.
    pub fn busy(retry_after_seconds: u64, times: u32) -> Fault {
        Fault::Status { code: 503, retry_after: Some(retry_after_seconds), times: Some(times) }
    }

    /// Every body ends after this many bytes.
    pub fn cut_off(after: u64) -> Fault {
        Fault::CutOff { after, times: None }
    }

    fn times_left(&mut self) -> Option<&mut u32> {
        match self {
            Fault::Status { times, .. } | Fault::CutOff { times, .. } => times.as_mut(),
            _ => None,
        }
    }
}

impl Faults {
    pub(crate) fn set(&mut self, path: String, fault: Fault) {
        let declared = fault == Fault::WrongLength;
        let replaced = self.by_path.insert(path, fault);
        if declared || replaced == Some(Fault::WrongLength) {
            self.declarations += 1;
        }
    }

    pub(crate) fn clear(&mut self) {
        if self.by_path.values().any(|fault| *fault == Fault::WrongLength) {
            self.declarations += 1;
        }
        self.by_path.clear();
    }

    /// The fault of one response at `path`; counts it.
    pub(crate) fn take(&mut self, path: &str) -> Option<Fault> {
        let fault = self.by_path.get_mut(path)?;
        if let Some(left) = fault.times_left() {
            if *left == 0 {
                self.by_path.remove(path);
                return None;
            }
            *left -= 1;
        }
        Some(fault.clone())
    }

    pub(crate) fn lies_about_length(&self, path: &str) -> bool {
        !self.by_path.is_empty() && self.by_path.get(path) == Some(&Fault::WrongLength)
    }

    pub(crate) fn declarations(&self) -> u64 {
        self.declarations
    }
}

impl From<u64> for Target {
    fn from(index: u64) -> Target {
        Target::Resource(index)
    }
}

impl From<&str> for Target {
    fn from(path: &str) -> Target {
        Target::Path(path.to_owned())
    }
}

impl From<String> for Target {
    fn from(path: String) -> Target {
        Target::Path(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counted_fault_ends_and_an_uncounted_one_stays() {
        let mut faults = Faults::default();
        faults.set("/a".to_owned(), Fault::busy(1, 2));
        faults.set("/b".to_owned(), Fault::status(404));
        let hits = |faults: &mut Faults, path| (0..5).filter(|_| faults.take(path).is_some()).count();
        assert_eq!(hits(&mut faults, "/a"), 2);
        assert_eq!(hits(&mut faults, "/b"), 5);
        assert_eq!(hits(&mut faults, "/c"), 0);
    }

    #[test]
    fn only_a_fault_that_lists_show_changes_the_declarations() {
        let mut faults = Faults::default();
        faults.set("/a".to_owned(), Fault::WrongDigest);
        assert_eq!(faults.declarations(), 0);
        faults.set("/a".to_owned(), Fault::WrongLength);
        faults.clear();
        assert_eq!(faults.declarations(), 2);
    }
}
