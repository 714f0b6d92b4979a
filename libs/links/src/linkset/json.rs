//! Reads a link set in JSON, in one pass and without a tree of its values.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{LinksetError, is_relative, repair};
use crate::fault::Fault;
use crate::limits::Limits;
use crate::link::{Link, Links, add_attribute};

/// Objects that servers put around a link set.
const WRAPPERS: [&str; 2] = ["data", "result"];
/// Maximum such objects, one in the other.
const MOST_WRAPPERS: usize = 2;

/// Maximum bytes of the links for each byte of the body. The relation and the anchor are written once, and each link
/// has a copy of them.
const MOST_COPIES: usize = 32;

/// Reads a link set. On stray commas, reads it again without them.
pub(super) fn read(body: &[u8], limits: &Limits) -> Result<Links, LinksetError> {
    // Some servers write a byte order mark.
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let error = match read_once(body, limits) {
        Ok(found) => return found.ok_or(LinksetError::NotALinkset),
        Err(error) => error,
    };
    let Some(repaired) = repair::without_stray_commas(body) else {
        return Err(LinksetError::NotJson(error.to_string()));
    };
    match read_once(&repaired, limits) {
        Ok(Some(mut found)) => {
            found.faults.add(Fault::StrayComma);
            Ok(found)
        }
        Ok(None) => Err(LinksetError::NotALinkset),
        // The first error has the right line and column.
        Err(_) => Err(LinksetError::NotJson(error.to_string())),
    }
}

fn read_once(body: &[u8], limits: &Limits) -> Result<Option<Links>, serde_json::Error> {
    let room = body.len().saturating_mul(MOST_COPIES).min(2 * limits.bytes);
    let reading =
        Reading { found: RefCell::default(), has_set: RefCell::new(false), room: Cell::new(room), limits };
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    deserializer.deserialize_any(Outer { reading: &reading, depth: 0 })?;
    deserializer.end()?;
    Ok(reading.has_set.into_inner().then(|| reading.found.into_inner()))
}

/// What is filled while the body passes.
struct Reading<'a> {
    found: RefCell<Links>,
    has_set: RefCell<bool>,
    /// How many more bytes of links are taken.
    room: Cell<usize>,
    limits: &'a Limits,
}

impl Reading<'_> {
    fn fault(&self, fault: Fault) {
        self.found.borrow_mut().faults.add(fault);
    }

    /// Counts these bytes, if there is room for them.
    fn has_room(&self, bytes: usize) -> bool {
        let left = self.room.get().checked_sub(bytes);
        self.room.set(left.unwrap_or(self.room.get()));
        left.is_some()
    }
}

/// Ends a value that is none of those expected.
macro_rules! ignored {
    ($($name:ident: $type:ty),+) => {
        $(fn $name<E: Error>(self, _: $type) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        })+
        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
}

/// The object with the member `linkset`, or one around it.
struct Outer<'a> {
    reading: &'a Reading<'a>,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Outer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Outer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a link set")
    }

    ignored!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "linkset" => {
                    self.reading.has_set.replace(true);
                    map.next_value_seed(List { reading: self.reading, each: |reading| Context { reading } })?;
                }
                wrapper if WRAPPERS.contains(&wrapper) && self.depth < MOST_WRAPPERS => {
                    self.reading.fault(Fault::Wrapped);
                    map.next_value_seed(Outer { reading: self.reading, depth: self.depth + 1 })?;
                }
                _ => {
                    self.reading.fault(Fault::ExtraMembers);
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// An array, or one element in its place.
struct List<'a, F> {
    reading: &'a Reading<'a>,
    each: F,
}

impl<'a, 'de, S, F> DeserializeSeed<'de> for List<'a, F>
where
    F: Fn(&'a Reading<'a>) -> S,
    S: Visitor<'de, Value = ()> + DeserializeSeed<'de, Value = ()>,
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a, 'de, S, F> Visitor<'de> for List<'a, F>
where
    F: Fn(&'a Reading<'a>) -> S,
    S: Visitor<'de, Value = ()> + DeserializeSeed<'de, Value = ()>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    ignored!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64);

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed((self.each)(self.reading))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.reading.fault(Fault::NotAnArray);
        (self.each)(self.reading).visit_map(map)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.reading.fault(Fault::NotAnArray);
        (self.each)(self.reading).visit_str(text)
    }
}

/// The links of one context: `anchor`, and an array of targets for each relation.
struct Context<'a> {
    reading: &'a Reading<'a>,
}

impl<'de> DeserializeSeed<'de> for Context<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Context<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the links of one context")
    }

    ignored!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let reading = self.reading;
        let first = reading.found.borrow().links.len();
        let mut anchor = None;
        while let Some(name) = map.next_key::<String>()? {
            if name == "anchor" {
                anchor = map.next_value_seed(Texts)?.into_iter().next();
            } else {
                map.next_value_seed(List { reading, each: |reading| Target { reading, rel: &name } })?;
            }
        }
        let is_long =
            anchor.as_ref().is_some_and(|anchor: &String| anchor.len() > reading.limits.value_bytes);
        match &anchor {
            _ if is_long => reading.fault(Fault::TooLong),
            None => reading.fault(Fault::NoAnchor),
            Some(anchor) if is_relative(anchor) => reading.fault(Fault::RelativeAnchor),
            Some(_) => {}
        }
        // The anchor may be the last member.
        let found = &mut *reading.found.borrow_mut();
        if is_long {
            found.links.truncate(first);
        } else if let Some(anchor) = anchor {
            let mut links = found.links[first..].iter_mut();
            let taken = links.by_ref().take_while(|_| reading.has_room(anchor.len()));
            let taken = taken.map(|link| link.anchor = Some(anchor.clone())).count();
            if first + taken < found.links.len() {
                found.links.truncate(first + taken);
                found.faults.add(Fault::TooManyBytes);
            }
        }
        Ok(())
    }
}

/// The target of a link: an object with `href` and attributes.
struct Target<'a> {
    reading: &'a Reading<'a>,
    rel: &'a str,
}

impl Target<'_> {
    fn take(&self, link: Link) {
        let found = &mut *self.reading.found.borrow_mut();
        if link.target.trim().is_empty() {
            found.faults.add(Fault::NoTarget);
        } else if !self.reading.has_room(link.size()) {
            found.faults.add(Fault::TooManyBytes);
        } else {
            found.take(link, self.reading.limits);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Target<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Target<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the target of a link")
    }

    ignored!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64);

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    /// Some servers write the URL itself.
    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.take(Link::new(text.trim(), self.rel));
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut link = Link::new("", self.rel);
        while let Some(name) = map.next_key::<String>()? {
            let values = map.next_value_seed(Texts)?;
            if name == "href" {
                link.target = values.into_iter().next().unwrap_or_default().trim().to_owned();
                continue;
            }
            let faults = &mut self.reading.found.borrow_mut().faults;
            for value in values {
                add_attribute(&mut link, &name, value, faults, self.reading.limits);
            }
        }
        self.take(link);
        Ok(())
    }
}

/// A value as texts: a string is one, an array has several, an object such as `{"value": …, "language": …}` has its
/// `value`.
struct Texts;

impl<'de> DeserializeSeed<'de> for Texts {
    type Value = Vec<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<String>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Texts {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Vec<String>, E> {
        Ok(vec![value.to_string()])
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Vec<String>, E> {
        Ok(vec![value.to_string()])
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Vec<String>, E> {
        Ok(vec![value.to_string()])
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Vec<String>, E> {
        Ok(vec![value.to_string()])
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<String>, E> {
        Ok(vec![text.to_owned()])
    }

    fn visit_unit<E: Error>(self) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<String>, A::Error> {
        let mut texts = Vec::new();
        // One more than a link keeps, so that the fault is counted.
        while let Some(more) = seq.next_element_seed(Texts)? {
            let room = (crate::MOST_ATTRIBUTES + 1).saturating_sub(texts.len());
            texts.extend(more.into_iter().take(room));
        }
        Ok(texts)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<String>, A::Error> {
        let mut texts = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            if name == "value" {
                texts = map.next_value_seed(Texts)?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(texts)
    }
}
