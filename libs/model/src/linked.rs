//! Resources that no list names, and that are stored because a link of another resource leads to them.

use fixity::Sha256;
use serde::{Deserialize, Serialize};

use crate::ResourceUri;

/// Bytes of a version: few enough that every reader of JSON keeps the number exactly.
const BYTES: usize = 6;

/// The link that led to a resource which no list names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Linked {
    /// The resource whose entry has the link.
    pub from: ResourceUri,
    /// The link's relation.
    pub rel: String,
    /// Whether other resources link to it too, so that it does not end with this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// The version that the link spoke of; none if nothing that it says could be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<LinkVersion>,
}

/// Identifies what a link says of its target: its digest and modification, or else those of the resource that has the
/// link. The same version again needs no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LinkVersion(u64);

impl LinkVersion {
    /// The version that this text describes.
    pub fn of(text: &str) -> Self {
        let digest = Sha256::of(text.as_bytes());
        Self(digest.as_bytes().iter().take(BYTES).fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

impl Linked {
    /// Whether this is the link that led to the stored version, and speaks of the same version again.
    pub fn is_same(&self, held: Option<&Self>) -> bool {
        self.version.is_some()
            && held.is_some_and(|held| held.from == self.from && held.version == self.version)
    }

    /// This link, beside the one that led to the target before.
    #[must_use]
    pub fn beside(self, before: Option<&Self>) -> Self {
        let shared = before.is_some_and(|before| before.shared || before.from != self.from);
        Self { shared: self.shared || shared, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linked(from: &str, version: Option<&str>) -> Linked {
        let from = from.parse().unwrap();
        Linked { from, rel: "item".to_owned(), shared: false, version: version.map(LinkVersion::of) }
    }

    #[test]
    fn the_same_version_is_known_by_the_resource_that_links_and_by_what_it_says() {
        let held = linked("http://h/a", Some("1"));
        assert!(linked("http://h/a", Some("1")).is_same(Some(&held)));
        assert!(!linked("http://h/a", Some("2")).is_same(Some(&held)));
        assert!(!linked("http://h/b", Some("1")).is_same(Some(&held)));
        assert!(!linked("http://h/a", Some("1")).is_same(None));
        let unsaid = linked("http://h/a", None);
        assert!(!unsaid.is_same(Some(&unsaid)), "nothing could be compared");
    }

    #[test]
    fn a_target_of_two_resources_stays_shared() {
        let one = linked("http://h/a", None);
        assert!(!one.clone().beside(None).shared && !one.clone().beside(Some(&one)).shared);
        let both = linked("http://h/b", None).beside(Some(&one));
        assert!(both.shared && one.beside(Some(&both)).shared);
    }

    #[test]
    fn what_is_left_out_is_what_it_was_without() {
        let text = r#"{"from":"http://h/a","rel":"item"}"#;
        let read: Linked = serde_json::from_str(text).unwrap();
        assert_eq!(read, linked("http://h/a", None));
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
}
