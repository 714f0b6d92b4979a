//! Absences of a set: stored resources that its lists omit. They are found in the pass that joins the lists with the
//! catalog.

use std::io;
use std::iter::Peekable;

use model::ResourceUri;

use crate::absentees::Absentees;

/// Absences of a set.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// Whether names arrived that are not joined with the catalog yet.
    pub(crate) is_fresh: bool,
    /// Result of the last join; none before the first.
    pub(crate) found: Option<Unnamed>,
}

/// Resources that no list of a set contains.
#[derive(Debug)]
pub(crate) struct Unnamed {
    /// Stored resources of the set.
    pub(crate) held: u64,
    /// Stored resources that are absent.
    pub(crate) absent: Absentees,
    /// Failed resources that are absent, of any set.
    pub(crate) failed: Absentees,
}

/// One pass over all stored and all failed resources. Earlier passes did not have the names of this one, so a
/// resource is absent only if it was absent in all of them.
pub(crate) struct Sayings {
    held: u64,
    absent: Narrowed,
    failed: Narrowed,
}

/// Resources that were absent before and are absent now, in the order of URIs.
struct Narrowed {
    before: Option<Peekable<Box<dyn Iterator<Item = ResourceUri> + Send>>>,
    now: Absentees,
}

impl Sayings {
    /// Starts a pass after an earlier one.
    pub(crate) fn after(before: Option<Unnamed>) -> io::Result<Self> {
        let (absent, failed) = before.map(|before| (before.absent, before.failed)).unzip();
        Ok(Self { held: 0, absent: Narrowed::of(absent)?, failed: Narrowed::of(failed)? })
    }

    /// Records a stored resource of the set.
    pub(crate) fn note_held(&mut self, uri: &[u8], is_named: bool) -> io::Result<()> {
        self.held += 1;
        if is_named { Ok(()) } else { self.absent.note(uri) }
    }

    /// Records a failed resource that the lists omit.
    pub(crate) fn note_failed(&mut self, uri: &[u8]) -> io::Result<()> {
        self.failed.note(uri)
    }

    /// Ends the pass.
    pub(crate) fn finish(self) -> Unnamed {
        Unnamed { held: self.held, absent: self.absent.now, failed: self.failed.now }
    }
}

impl Narrowed {
    fn of(before: Option<Absentees>) -> io::Result<Self> {
        let before = match before {
            Some(before) => {
                let all: Box<dyn Iterator<Item = ResourceUri> + Send> = Box::new(before.all()?);
                Some(all.peekable())
            }
            None => None,
        };
        Ok(Self { before, now: Absentees::new()? })
    }

    fn note(&mut self, uri: &[u8]) -> io::Result<()> {
        if let Some(before) = &mut self.before {
            while before.next_if(|before| before.as_str().as_bytes() < uri).is_some() {}
            if before.peek().is_none_or(|before| before.as_str().as_bytes() != uri) {
                return Ok(());
            }
        }
        self.now.note(uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absent(before: Option<Unnamed>, uris: &[&str]) -> Unnamed {
        let mut sayings = Sayings::after(before).unwrap();
        for uri in uris {
            sayings.note_held(uri.as_bytes(), false).unwrap();
            sayings.note_failed(uri.as_bytes()).unwrap();
        }
        sayings.note_held(b"http://h/z", true).unwrap();
        sayings.finish()
    }

    #[test]
    fn only_what_no_pass_has_named_is_unnamed() {
        let first = absent(None, &["http://h/a", "http://h/b", "http://h/c", "http://h/d"]);
        let second = absent(Some(first), &["http://h/0", "http://h/b", "http://h/d", "http://h/e"]);
        assert_eq!(second.held, 5);
        for found in [second.absent, second.failed] {
            let found: Vec<String> = found.all().unwrap().map(|uri| uri.to_string()).collect();
            assert_eq!(found, ["http://h/b", "http://h/d"]);
        }
    }
}
