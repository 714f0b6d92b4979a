//! What the lists of a set do not name, of what is held of it: found in the same pass in which the lists are laid beside the catalog.

use std::io;
use std::iter::Peekable;

use model::ResourceUri;

use crate::absentees::Absentees;

/// What a set's lists say by not naming it.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// Whether names came that were not laid beside the catalog yet.
    pub(crate) is_fresh: bool,
    /// What was found when they were; none before.
    pub(crate) found: Option<Unnamed>,
}

/// What no list of a set has named.
#[derive(Debug)]
pub(crate) struct Unnamed {
    /// Resources held of the set.
    pub(crate) held: u64,
    /// Those of them that were not named.
    pub(crate) absent: Absentees,
    /// What failed before and was not named, of whatever set.
    pub(crate) failed: Absentees,
}

/// One pass over all that is held and all that has failed. Earlier ones did not know the names of this one: only what none of them named is unnamed.
pub(crate) struct Sayings {
    held: u64,
    absent: Narrowed,
    failed: Narrowed,
}

/// Those that were unnamed before and are unnamed now, in the order of URIs.
struct Narrowed {
    before: Option<Peekable<Box<dyn Iterator<Item = ResourceUri> + Send>>>,
    now: Absentees,
}

impl Sayings {
    /// Begins a pass behind an earlier one.
    pub(crate) fn after(before: Option<Unnamed>) -> io::Result<Self> {
        let (absent, failed) = before.map(|before| (before.absent, before.failed)).unzip();
        Ok(Self { held: 0, absent: Narrowed::of(absent)?, failed: Narrowed::of(failed)? })
    }

    /// A resource is held of the set.
    pub(crate) fn note_held(&mut self, uri: &[u8], is_named: bool) -> io::Result<()> {
        self.held += 1;
        if is_named { Ok(()) } else { self.absent.note(uri) }
    }

    /// A resource failed before, and is not named.
    pub(crate) fn note_failed(&mut self, uri: &[u8]) -> io::Result<()> {
        self.failed.note(uri)
    }

    /// The end of the pass.
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
