//! The links of a resource, as its entry gives them.

use std::fmt;
use std::sync::Arc;

use resourcesync::{Link, relation};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// Relations of one event of a resource: the difference from the version before, and the version itself. A later
/// version does not inherit them.
const OF_ONE_EVENT: [&str; 2] = [relation::PATCH, relation::MEMENTO];

/// The links of an entry (ResourceSync 1.1, section 14), never empty.
///
/// They are kept in their encoded form, a JSON array of [`Link`]s: millions of records are read, passed on and
/// compared, and few of their links are looked at. Copies share the text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Links(Arc<str>);

impl Links {
    /// The links in this order; none if there are none.
    pub fn of(links: &[Link]) -> Option<Self> {
        if links.is_empty() {
            return None;
        }
        // Text and numbers, in maps with text as keys: nothing that JSON cannot express.
        serde_json::to_string(links).ok().map(|text| Self(text.into()))
    }

    /// The links that this text encodes, as [`as_str`](Self::as_str) returned it.
    pub fn from_encoded(text: &str) -> Self {
        Self(text.into())
    }

    /// The encoded form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The links, in the order of the entry.
    pub fn to_vec(&self) -> Vec<Link> {
        // Only what `of` has encoded is ever read here.
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// What a later version keeps of them if its entry has no links: all but those of one event.
    pub fn inherited(&self) -> Option<Self> {
        if !OF_ONE_EVENT.iter().any(|rel| self.0.contains(rel)) {
            return Some(self.clone());
        }
        let mut links = self.to_vec();
        links.retain(|link| !OF_ONE_EVENT.contains(&link.rel.as_str()));
        Self::of(&links)
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Links {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error as _;
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Links {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let text = Box::<str>::from(raw);
        if !text.starts_with('[') {
            return Err(D::Error::custom("links are no list"));
        }
        Ok(Self(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn link(rel: &str) -> Link {
        Link::new(rel, "http://h/x")
    }

    #[test]
    fn no_links_are_none() {
        assert_eq!(Links::of(&[]), None);
    }

    #[test]
    fn links_of_one_event_are_not_inherited() {
        let all = [link("describedby"), link(relation::PATCH), link("memento"), link("timegate")];
        let inherited = Links::of(&all).and_then(|links| links.inherited()).map(|links| links.to_vec());
        assert_eq!(inherited, Some(vec![link("describedby"), link("timegate")]));
        assert_eq!(Links::of(&all[1..3]).and_then(|links| links.inherited()), None);
    }

    #[test]
    fn a_record_holds_them_as_a_list_of_objects() {
        let links = Links::of(&[link("via")]).unwrap();
        let text = serde_json::to_string(std::slice::from_ref(&links)).unwrap();
        assert_eq!(text, r#"[[{"rel":"via","href":"http://h/x"}]]"#);
        assert_eq!(serde_json::from_str::<Vec<Links>>(&text).unwrap(), [links]);
        assert!(serde_json::from_str::<Links>("\"via\"").is_err());
    }

    proptest! {
        #[test]
        fn links_are_read_as_they_were_kept(
            kept in prop::collection::vec(
                (".{1,8}", ".{0,20}", prop::option::of(any::<u64>()), prop::option::of(".{0,4}"), "[a-z]:[a-z]{0,3}"),
                1..4,
            )
        ) {
            let links: Vec<Link> = kept
                .into_iter()
                .map(|(rel, href, length, media_type, name)| Link {
                    length,
                    media_type,
                    other: BTreeMap::from([(name, "1".to_owned())]),
                    ..Link::new(rel, href)
                })
                .collect();
            let kept = Links::of(&links).unwrap();
            prop_assert_eq!(kept.to_vec(), links);
            let read: Links = serde_json::from_str(&serde_json::to_string(&kept).unwrap()).unwrap();
            prop_assert_eq!(read, kept);
        }
    }
}
