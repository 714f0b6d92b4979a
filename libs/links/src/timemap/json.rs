//! TimeMaps in JSON, as Memento aggregators serve them.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};

use super::{Memento, Part, TimeMap, parse_moment};
use crate::fault::Fault;
use crate::limits::Limits;

#[derive(Deserialize)]
struct Body {
    original_uri: Option<String>,
    timegate_uri: Option<String>,
    #[serde(rename = "self")]
    this: Option<String>,
    mementos: Option<Versions>,
    #[serde(default)]
    timemap_index: Bounded<Page>,
    /// Pages before and after this one, by name.
    #[serde(default)]
    pages: BTreeMap<String, OneOrMany<Page>>,
}

#[derive(Deserialize)]
struct Versions {
    #[serde(default)]
    list: Bounded<Version>,
    first: Option<Version>,
    last: Option<Version>,
}

#[derive(Deserialize)]
struct Version {
    datetime: Option<String>,
    uri: Option<OneOrMany<String>>,
}

#[derive(Deserialize)]
struct Page {
    uri: Option<String>,
    from: Option<String>,
    until: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

/// An array, of which [`Limits::BODY`] says how many elements are kept.
struct Bounded<T> {
    kept: Vec<T>,
    has_more: bool,
}

pub(super) fn read(body: &[u8], limits: &Limits) -> Result<TimeMap, serde_json::Error> {
    let body: Body = serde_json::from_slice(body)?;
    let mut map = TimeMap { original: body.original_uri, timegate: body.timegate_uri, ..TimeMap::default() };
    map.this = body.this.map(|url| Part { url, ..Part::default() });
    let pages = body.pages.into_values().flat_map(OneOrMany::into_iter);
    for page in body.timemap_index.kept.into_iter().chain(pages).take(limits.links) {
        let moment = |text: Option<String>| text.as_deref().and_then(parse_moment);
        let Some(url) = page.uri.filter(|url| url.len() <= limits.value_bytes) else { continue };
        map.parts.push(Part { url, from: moment(page.from), until: moment(page.until) });
    }
    let mut has_more = body.timemap_index.has_more;
    if let Some(versions) = body.mementos {
        map.has_first = versions.first.is_some();
        map.has_last = versions.last.is_some();
        has_more |= versions.list.has_more;
        for version in versions.list.kept.into_iter().chain(versions.first).chain(versions.last) {
            let time = version.datetime.as_deref().and_then(parse_moment);
            let url = version.uri.and_then(|uri| uri.into_iter().next());
            match (url, time) {
                (None, _) => map.faults.add(Fault::NoTarget),
                (Some(_), None) => map.faults.add(Fault::BadDatetime),
                (Some(url), _) if url.len() > limits.value_bytes => map.faults.add(Fault::TooLong),
                _ if map.mementos.len() >= limits.links => has_more = true,
                (Some(url), Some(time)) => map.mementos.push(Memento { url, time }),
            }
        }
    }
    if has_more {
        map.faults.add(Fault::TooManyLinks);
    }
    Ok(map)
}

impl<T> OneOrMany<T> {
    fn into_iter(self) -> std::vec::IntoIter<T> {
        match self {
            Self::One(one) => vec![one].into_iter(),
            Self::Many(many) => many.into_iter(),
        }
    }
}

impl<T> Default for Bounded<T> {
    fn default() -> Self {
        Self { kept: Vec::new(), has_more: false }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Bounded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Elements<T> {
            type Value = Bounded<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Bounded<T>, A::Error> {
                let mut array = Bounded::default();
                while array.kept.len() < Limits::BODY.links {
                    let Some(element) = seq.next_element()? else { return Ok(array) };
                    array.kept.push(element);
                }
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    array.has_more = true;
                }
                Ok(array)
            }
        }

        deserializer.deserialize_seq(Elements(PhantomData))
    }
}
