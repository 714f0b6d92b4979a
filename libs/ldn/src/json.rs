//! Parses untrusted JSON, with limits that are enforced during parsing.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::Limits;

/// Why a body is no valid notification or document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is too large.
    #[error("it has {bytes} bytes, and {limit} are read")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Arrays and objects are nested too deeply.
    #[error("its arrays and objects lie more than {limit} deep in each other")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// There are too many values.
    #[error("it has more than {limit} values")]
    TooManyMembers {
        /// The limit.
        limit: usize,
    },
    /// A name occurs twice in one object, so that two readers could see different values.
    #[error("the name {name:?} stands twice in one object")]
    RepeatedName {
        /// The name, perhaps shortened.
        name: String,
    },
    /// It is not Turtle.
    #[error("it is no Turtle: {0}")]
    NotTurtle(String),
    /// It is not JSON.
    #[error("it is no JSON: {0}")]
    NotJson(String),
    /// It is JSON without content: no object with a property.
    #[error(
        "it is no JSON-LD that says anything: an object with at least one property, or an array of such, is wanted"
    )]
    SaysNothing,
}

/// Parses JSON.
///
/// # Errors
/// [`Unreadable`]; the first of several errors.
pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Value, Unreadable> {
    if bytes.len() > limits.bytes {
        return Err(Unreadable::TooLarge { bytes: bytes.len(), limit: limits.bytes });
    }
    let reading = Reading { limits, left: Cell::new(limits.members), fault: RefCell::default() };
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let read = Seed { reading: &reading, depth: 0 }.deserialize(&mut json);
    let read = read.and_then(|value| json.end().map(|()| value));
    read.map_err(|error| reading.fault.take().unwrap_or_else(|| Unreadable::NotJson(error.to_string())))
}

/// State that all parts of one parse share.
struct Reading<'a> {
    limits: &'a Limits,
    left: Cell<usize>,
    /// The error, as our own type: the parser's errors carry only text.
    fault: RefCell<Option<Unreadable>>,
}

impl Reading<'_> {
    fn fault<E: serde::de::Error>(&self, fault: Unreadable) -> E {
        let error = E::custom(&fault);
        self.fault.replace(Some(fault));
        error
    }
}

/// Parses a value at this depth.
#[derive(Clone, Copy)]
struct Seed<'a> {
    reading: &'a Reading<'a>,
    depth: usize,
}

impl<'a> Seed<'a> {
    /// The same, one level deeper.
    fn within<E: serde::de::Error>(self) -> Result<Seed<'a>, E> {
        let limit = self.reading.limits.depth;
        if self.depth < limit {
            Ok(Self { depth: self.depth + 1, ..self })
        } else {
            Err(self.reading.fault(Unreadable::TooDeep { limit }))
        }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        let Some(left) = self.reading.left.get().checked_sub(1) else {
            let limit = self.reading.limits.members;
            return Err(self.reading.fault(Unreadable::TooManyMembers { limit }));
        };
        self.reading.left.set(left);
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let seed = self.within()?;
        let mut read = Vec::new();
        while let Some(item) = items.next_element_seed(seed)? {
            read.push(item);
        }
        Ok(Value::Array(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let seed = self.within()?;
        let mut read = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(seed)?;
            if read.contains_key(&name) {
                let name = name.chars().take(60).collect();
                return Err(self.reading.fault(Unreadable::RepeatedName { name }));
            }
            read.insert(name, value);
        }
        Ok(Value::Object(read))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const SMALL: Limits = Limits { bytes: 200, depth: 3, members: 6 };

    fn fault(text: &str) -> Unreadable {
        parse(text.as_bytes(), &SMALL).unwrap_err()
    }

    #[test]
    fn what_is_within_the_limits_is_read_as_it_is() {
        let text = r#"{"a":[1,-2,0.5],"b":{"c":null}}"#;
        assert_eq!(
            parse(text.as_bytes(), &Limits::default()).unwrap(),
            json!({"a": [1, -2, 0.5], "b": {"c": null}})
        );
    }

    #[test]
    fn each_limit_holds_exactly() {
        assert!(parse(b"[[[1]]]", &SMALL).is_ok());
        assert_eq!(fault("[[[[1]]]]"), Unreadable::TooDeep { limit: 3 });
        assert!(parse(b"[1,2,3,4,5]", &SMALL).is_ok());
        assert_eq!(fault("[1,2,3,4,5,6]"), Unreadable::TooManyMembers { limit: 6 });
        assert!(parse(format!("\"{}\"", "a".repeat(198)).as_bytes(), &SMALL).is_ok());
        let long = format!("\"{}\"", "a".repeat(199));
        assert_eq!(fault(&long), Unreadable::TooLarge { bytes: 201, limit: 200 });
    }

    #[test]
    fn a_name_that_stands_twice_and_what_is_no_json_are_refused() {
        assert_eq!(fault(r#"{"a":1,"a":2}"#), Unreadable::RepeatedName { name: "a".to_owned() });
        for text in ["", "{", "[1,]", "{} {}", "nonsense", "\"\u{1}\""] {
            assert!(matches!(fault(text), Unreadable::NotJson(_)), "{text}");
        }
        assert!(matches!(parse(b"\"\xff\"", &SMALL), Err(Unreadable::NotJson(_))));
    }

    /// Without a limit this would overflow the stack.
    #[test]
    fn a_million_brackets_are_refused_at_the_limit() {
        let limits = Limits { bytes: usize::MAX, ..Limits::default() };
        assert_eq!(parse("[".repeat(1_000_000).as_bytes(), &limits), Err(Unreadable::TooDeep { limit: 20 }));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = parse(&bytes, &SMALL);
        }

        #[test]
        fn what_is_read_is_what_any_reader_reads(text in r#"[\[\]{},:"a-c1 -]{0,40}"#) {
            if let Ok(value) = parse(text.as_bytes(), &SMALL) {
                prop_assert_eq!(value, serde_json::from_str::<Value>(&text).unwrap());
            }
        }
    }
}
