//! Which link a resource must have, by the parameters `link.rel` and `link.href`.

use model::{Links, ResourceRecord};
use resourcesync::Link;

use crate::api_error::ApiError;

/// A link that resources must have, to be listed. Without relation and target, all are listed.
#[derive(Debug)]
pub(crate) struct LinkFilter {
    rel: Option<String>,
    href: Option<String>,
}

impl LinkFilter {
    /// The filter of these parameters.
    ///
    /// # Errors
    /// When one of them is empty.
    pub(crate) fn of(rel: Option<String>, href: Option<String>) -> Result<Self, ApiError> {
        for (name, value) in [("link.rel", &rel), ("link.href", &href)] {
            if value.as_deref().is_some_and(|value| value.trim().is_empty()) {
                return Err(ApiError::bad_request(format!("{name} is empty; leave it out to list all")));
            }
        }
        // Documents have registered relations in lower case; a URI is compared as it is.
        let rel = rel.map(|rel| if rel.contains(':') { rel } else { rel.to_ascii_lowercase() });
        Ok(Self { rel, href })
    }

    /// Whether the resource of a record has such a link.
    pub(crate) fn admits(&self, record: Option<&ResourceRecord>) -> bool {
        if self.rel.is_none() && self.href.is_none() {
            return true;
        }
        let links = record.and_then(|record| record.listing.links.as_ref()).map(Links::to_vec);
        links.is_some_and(|links| links.iter().any(|link| self.is(link)))
    }

    fn is(&self, link: &Link) -> bool {
        self.rel.as_ref().is_none_or(|rel| *rel == link.rel)
            && self.href.as_ref().is_none_or(|href| *href == link.href)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relation_and_target_must_be_those_of_one_link() {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let collection = Link::new("collection", "http://c.test/1");
        for (rel, href, is) in [
            ("", "http://c.test/1", true),
            ("Collection", "", true),
            ("collection", "http://c.test/1", true),
            ("collection", "http://c.test/2", false),
            ("via", "http://c.test/1", false),
            ("http://c.test/1", "", false),
        ] {
            let filter = LinkFilter::of(text(rel), text(href)).unwrap();
            assert_eq!(filter.is(&collection), is, "{rel} {href}");
            assert!(!filter.admits(None), "what has no record has no links");
        }
        assert!(LinkFilter::of(None, None).unwrap().admits(None));
        for empty in ["", " "] {
            assert!(LinkFilter::of(Some(empty.to_owned()), None).is_err());
            assert!(LinkFilter::of(None, Some(empty.to_owned())).is_err());
        }
    }
}
