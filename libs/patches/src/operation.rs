//! The operations of a patch, as they are written (RFC 6902, section 4).

use std::borrow::Cow;
use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::PatchError;
use crate::pointer::Pointer;

/// An operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation<'p> {
    Add { path: Pointer<'p>, value: &'p str },
    Remove { path: Pointer<'p> },
    Replace { path: Pointer<'p>, value: &'p str },
    Move { from: Pointer<'p>, path: Pointer<'p> },
    Copy { from: Pointer<'p>, path: Pointer<'p> },
    Test { path: Pointer<'p>, value: &'p str },
}

/// The memory of an operation while a patch is read, beside its texts.
pub(crate) const SIZE: usize = size_of::<Written<'_>>() + size_of::<Operation<'_>>();

#[derive(Deserialize)]
struct Written<'p> {
    #[serde(borrow)]
    op: Cow<'p, str>,
    #[serde(borrow)]
    path: Cow<'p, str>,
    #[serde(borrow, default)]
    from: Option<Cow<'p, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    value: Option<&'p RawValue>,
}

/// A value, also if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The operations of a patch, `most` of them at most.
pub(crate) fn operations(patch: &[u8], most: usize) -> Result<Vec<Operation<'_>>, PatchError> {
    let text = std::str::from_utf8(patch).map_err(|_| PatchError::NotApplicable)?;
    let mut reader = serde_json::Deserializer::from_str(text);
    let written = reader.deserialize_seq(AtMost(most)).map_err(|_| PatchError::NotApplicable)?;
    reader.end().map_err(|_| PatchError::NotApplicable)?;
    written.ok_or(PatchError::TooLarge)?.into_iter().map(read).collect()
}

fn read(written: Written<'_>) -> Result<Operation<'_>, PatchError> {
    let path = Pointer::read(written.path)?;
    let from = written.from.map(Pointer::read).transpose()?;
    let value = written.value.map(RawValue::get);
    let operation = match &*written.op {
        "add" => value.map(|value| Operation::Add { path, value }),
        "remove" => Some(Operation::Remove { path }),
        "replace" => value.map(|value| Operation::Replace { path, value }),
        "move" => from.map(|from| Operation::Move { from, path }),
        "copy" => from.map(|from| Operation::Copy { from, path }),
        "test" => value.map(|value| Operation::Test { path, value }),
        _ => None,
    };
    operation.ok_or(PatchError::NotApplicable)
}

/// Reads a list of so many operations; none if there are more. Longer lists are read to their end, and not kept.
struct AtMost(usize);

impl<'de> Visitor<'de> for AtMost {
    type Value = Option<Vec<Written<'de>>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of operations")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        let mut is_more = false;
        while let Some(operation) = list.next_element()? {
            if found.len() < self.0 {
                found.push(operation);
            } else {
                is_more = true;
            }
        }
        Ok((!is_more).then_some(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_is_a_value_and_unknown_members_are_left_alone() {
        let patch = br#"[{"op":"add","path":"/a","value":null,"x":1}]"#;
        let path = Pointer::read("/a".into()).unwrap();
        assert_eq!(operations(patch, 1), Ok(vec![Operation::Add { path, value: "null" }]));
    }

    #[test]
    fn what_is_no_patch_is_refused() {
        for odd in [
            "",
            "{}",
            "[1]",
            "[] x",
            r#"[{"op":"add","path":"/a"}]"#,
            r#"[{"op":"move","path":"/a"}]"#,
            r#"[{"op":"paint","path":"/a","value":1}]"#,
            r#"[{"op":"remove","path":"a"}]"#,
        ] {
            assert_eq!(operations(odd.as_bytes(), 9), Err(PatchError::NotApplicable), "{odd}");
        }
        assert_eq!(operations(b"\xff", 9), Err(PatchError::NotApplicable));
    }

    #[test]
    fn more_operations_than_the_limit_are_too_many() {
        let patch = br#"[{"op":"remove","path":"/a"},{"op":"remove","path":"/b"}]"#;
        assert_eq!(operations(patch, 1), Err(PatchError::TooLarge));
        assert_eq!(operations(patch, 2).map(|found| found.len()), Ok(2));
    }
}
