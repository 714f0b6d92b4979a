//! Resources that an operator withdraws.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::ResourceUri;

use crate::PublishError;

/// The most resources: the state names them, and is written with each publication.
const MOST: usize = 10_000;

/// Resources that are not published.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Takedown(Arc<BTreeSet<ResourceUri>>);

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
        Ok(Self(Arc::new(uris)))
    }

    /// All of them.
    pub(crate) fn all(&self) -> &BTreeSet<ResourceUri> {
        &self.0
    }

    /// Whether a resource is withdrawn.
    pub fn contains(&self, uri: &ResourceUri) -> bool {
        self.0.contains(uri)
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
        assert_eq!(Takedown::parse("").unwrap(), Takedown::default());
    }

    #[test]
    fn lists_that_are_none_are_refused_with_the_line() {
        let error = Takedown::parse("http://e.org/a\n/b\n").unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        let many: String = (0..=MOST).map(|number| format!("http://e.org/{number}\n")).collect();
        assert!(Takedown::parse(&many).unwrap_err().to_string().contains("10000"));
    }
}
