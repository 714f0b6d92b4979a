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

/// Where a link keeps the document that gave it, if that is not the document of its listing. No attribute of a
/// document has such a name.
const GIVEN_BY: &str = "@document";

/// The name under which the document of a link is shown.
const DOCUMENT: &str = "document";

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
        let mut links = self.decoded();
        if self.has_documents() {
            links.iter_mut().for_each(|link| drop(link.other.remove(GIVEN_BY)));
        }
        links
    }

    /// What a later version keeps of them if its entry has no links: all but those of one event. `document` gave them.
    pub fn inherited(&self, document: &str) -> Option<Self> {
        let mut links = self.decoded();
        links.retain(|link| !OF_ONE_EVENT.contains(&link.rel.as_str()));
        Self::of(&given_by(links, document))
    }

    /// The same links in the listing of another document than the one that gave them.
    #[must_use]
    pub fn given_by(&self, document: &str) -> Self {
        Self::of(&given_by(self.decoded(), document)).unwrap_or_else(|| self.clone())
    }

    /// The same links, each with the document that gave it, as they are shown. `document` is that of the listing.
    #[must_use]
    pub fn shown(&self, document: &str) -> Self {
        let mut links = self.decoded();
        for link in &mut links {
            let given_by = link.other.remove(GIVEN_BY).unwrap_or_else(|| document.to_owned());
            link.other.insert(DOCUMENT.to_owned(), given_by);
        }
        Self::of(&links).unwrap_or_else(|| self.clone())
    }

    /// Whether these are the same links, whichever documents gave them.
    pub fn are(&self, other: &Self) -> bool {
        let any_document = self.has_documents() || other.has_documents();
        self == other || any_document && self.to_vec() == other.to_vec()
    }

    fn has_documents(&self) -> bool {
        self.0.contains(GIVEN_BY)
    }

    fn decoded(&self) -> Vec<Link> {
        // Only what `of` has encoded is ever read here.
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

/// Links with the document that gave them, except those that have one already.
fn given_by(mut links: Vec<Link>, document: &str) -> Vec<Link> {
    for link in &mut links {
        link.other.entry(GIVEN_BY.to_owned()).or_insert_with(|| document.to_owned());
    }
    links
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
        let inherited = Links::of(&all).and_then(|links| links.inherited("http://h/list"));
        assert_eq!(inherited.map(|links| links.to_vec()), Some(vec![link("describedby"), link("timegate")]));
        assert_eq!(Links::of(&all[1..3]).and_then(|links| links.inherited("http://h/list")), None);
    }

    #[test]
    fn inherited_links_keep_the_document_that_gave_them() {
        let listed = Links::of(&[link("via")]).unwrap();
        let once = listed.inherited("http://h/list").unwrap();
        let twice = once.inherited("http://h/changes").unwrap();
        assert_eq!(once, twice);
        let document = |links: &Links| links.shown("http://h/changes").to_vec()[0].other["document"].clone();
        assert_eq!(
            (document(&listed), document(&twice)),
            ("http://h/changes".into(), "http://h/list".into())
        );
        assert!(once.are(&listed) && listed.are(&once) && once != listed);
        assert!(!once.are(&Links::of(&[link("license")]).unwrap()));
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
