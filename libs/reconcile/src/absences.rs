//! Absences of a set: stored resources that its lists omit. They are found in the pass that joins the lists with the
//! catalog.

use std::iter::Peekable;

use model::ResourceUri;

use crate::absent_spool::AbsentSpool;
use crate::error::SpoolError;

/// Absences of a set.
#[derive(Debug, Default)]
pub struct Absences {
    /// Whether names arrived that are not joined with the catalog yet.
    pub is_fresh: bool,
    /// Result of the last join; none before the first.
    pub found: Option<AbsentResources>,
}

/// Resources that no list of a set contains.
#[derive(Debug)]
pub struct AbsentResources {
    /// Stored resources of the set.
    pub held: u64,
    /// Stored resources that are absent.
    pub absent: AbsentSpool,
    /// Failed resources that are absent, of any set.
    pub failed: AbsentSpool,
}

/// One pass over all stored and all failed resources. Earlier passes did not have the names of this one, so a
/// resource is absent only if it was absent in all of them.
pub struct AbsenceSearch {
    held: u64,
    absent: NarrowedSpool,
    failed: NarrowedSpool,
}

/// Resources that were absent before and are absent now, in the order of URIs.
struct NarrowedSpool {
    before: Option<Peekable<Box<dyn Iterator<Item = ResourceUri> + Send>>>,
    now: AbsentSpool,
}

impl AbsenceSearch {
    /// Starts a pass after an earlier one.
    pub fn after(before: Option<AbsentResources>) -> Result<Self, SpoolError> {
        let (absent, failed) = before.map(|before| (before.absent, before.failed)).unzip();
        Ok(Self { held: 0, absent: NarrowedSpool::of(absent)?, failed: NarrowedSpool::of(failed)? })
    }

    /// Records a stored resource of the set.
    pub fn note_held(&mut self, uri: &[u8], is_named: bool) -> Result<(), SpoolError> {
        self.held += 1;
        if is_named { Ok(()) } else { self.absent.note(uri) }
    }

    /// Records a failed resource that the lists omit.
    pub fn note_failed(&mut self, uri: &[u8]) -> Result<(), SpoolError> {
        self.failed.note(uri)
    }

    /// Ends the pass.
    pub fn finish(self) -> AbsentResources {
        AbsentResources { held: self.held, absent: self.absent.now, failed: self.failed.now }
    }
}

impl NarrowedSpool {
    fn of(before: Option<AbsentSpool>) -> Result<Self, SpoolError> {
        let before = match before {
            Some(before) => {
                let all: Box<dyn Iterator<Item = ResourceUri> + Send> = Box::new(before.all()?);
                Some(all.peekable())
            }
            None => None,
        };
        Ok(Self { before, now: AbsentSpool::new()? })
    }

    fn note(&mut self, uri: &[u8]) -> Result<(), SpoolError> {
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

    fn absent(before: Option<AbsentResources>, uris: &[&str]) -> AbsentResources {
        let mut sayings = AbsenceSearch::after(before).unwrap();
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
