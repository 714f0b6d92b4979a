//! Resources that an operator withdraws.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use fixity::Sha256;
use model::ResourceUri;

use crate::PublishError;

/// The most resources: the state names them, and is written with each publication.
const MOST: usize = 10_000;

/// Resources that are not published. Clones share the list: what replaces it counts for publications under way, too.
#[derive(Debug, Clone, Default)]
pub struct Takedown(Arc<RwLock<Arc<TakedownList>>>);

/// The list as it was at a moment.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TakedownList {
    uris: BTreeSet<ResourceUri>,
    /// The digest of its URIs. None of an empty list.
    sha256: Option<Sha256>,
}

impl Takedown {
    /// Reads a list: a URI on each line. Blank lines, and those that begin with `#`, mean nothing.
    ///
    /// # Errors
    /// [`PublishError::Refused`] for a line that is no URI, and for too many.
    pub fn parse(text: &str) -> Result<Self, PublishError> {
        let mut uris = BTreeSet::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let uri = line.parse::<ResourceUri>().map_err(|error| {
                PublishError::Refused(format!("line {number} is no URI of a resource: {error}"))
            })?;
            uris.insert(uri);
            if uris.len() > MOST {
                return Err(PublishError::Refused(format!("it has more than {MOST} URIs")));
            }
        }
        Ok(Self(Arc::new(RwLock::new(Arc::new(TakedownList::of(uris))))))
    }

    /// Takes the list of another one, for all clones.
    pub fn replace(&self, with: &Self) {
        let list = with.now();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = list;
    }

    /// The list by now.
    pub fn now(&self) -> Arc<TakedownList> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a resource is withdrawn.
    pub fn contains(&self, uri: &ResourceUri) -> bool {
        self.now().contains(uri)
    }
}

impl TakedownList {
    fn of(uris: BTreeSet<ResourceUri>) -> Self {
        let text: Vec<&str> = uris.iter().map(ResourceUri::as_str).collect();
        let sha256 = (!uris.is_empty()).then(|| Sha256::of(text.join("\n").as_bytes()));
        Self { uris, sha256 }
    }

    /// All of them.
    pub fn uris(&self) -> &BTreeSet<ResourceUri> {
        &self.uris
    }

    /// Whether a resource is withdrawn.
    pub fn contains(&self, uri: &ResourceUri) -> bool {
        self.uris.contains(uri)
    }

    /// Whether nothing is withdrawn.
    pub fn is_empty(&self) -> bool {
        self.uris.is_empty()
    }

    /// Its digest. None of an empty list.
    pub(crate) fn sha256(&self) -> Option<Sha256> {
        self.sha256
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_a_uri_on_each_line_and_comments() {
        let list = Takedown::parse("# by court order\n\nhttp://e.org/a\n  http://e.org/b c  \n").unwrap();
        assert!(list.contains(&"http://e.org/a".parse().unwrap()));
        assert!(list.contains(&"http://e.org/b c".parse().unwrap()));
        assert!(!list.contains(&"http://e.org/".parse().unwrap()));
        assert_eq!(Takedown::parse("").unwrap().now(), Takedown::default().now());
    }

    #[test]
    fn lists_that_are_none_are_refused_with_the_line() {
        let error = Takedown::parse("http://e.org/a\n/b\n").unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        let many: String = (0..=MOST).map(|number| format!("http://e.org/{number}\n")).collect();
        assert!(Takedown::parse(&many).unwrap_err().to_string().contains("10000"));
    }
    #[test]
    fn clones_see_what_replaces_the_list() {
        let (first, second) =
            (Takedown::parse("http://e.org/a").unwrap(), Takedown::parse("http://e.org/b").unwrap());
        let (clone, before) = (first.clone(), first.now());
        first.replace(&second);
        assert!(
            clone.contains(&"http://e.org/b".parse().unwrap())
                && !before.contains(&"http://e.org/b".parse().unwrap())
        );
        assert!(clone.now().sha256() == second.now().sha256() && clone.now().sha256() != before.sha256());
    }
}
