use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// The first result of a patch.
fn first(before: &str, patch: &str) -> Result<String, PatchError> {
    let after = apply(before.as_bytes(), patch.as_bytes(), &Limits::default(), |_| true)?;
    Ok(String::from_utf8(after).unwrap())
}

/// A result of a patch that is this text.
fn gives(before: &str, patch: &str, after: &str) -> Result<(), PatchError> {
    let is_it = |bytes: &[u8]| bytes == after.as_bytes();
    apply(before.as_bytes(), patch.as_bytes(), &Limits::default(), is_it).map(|_| ())
}

fn op(op: &str, path: &str, value: &str) -> String {
    format!(r#"[{{"op":"{op}","path":"{path}","value":{value}}}]"#)
}

#[test]
fn what_a_patch_leaves_alone_keeps_its_bytes() {
    let before = "\u{feff}{ \"z\" :1.0,\n\"a\":[ 1 , 2e0 ],  \"t\": \"\\u00e9\"}\n";
    assert_eq!(first(before, &op("replace", "/z", "2")).unwrap(), before.replace("1.0", "2"));
    assert_eq!(first(before, &op("replace", "/a/1", "null")).unwrap(), before.replace("2e0", "null"));
}

#[test]
fn the_operations_of_the_standard_are_applied() {
    let before = r#"{"a":{"b":1},"c":[1,2,3]}"#;
    for (patch, after) in [
        (op("add", "/d", r#"{"x":[]}"#), r#"{"a":{"b":1},"c":[1,2,3],"d":{"x":[]}}"#),
        (op("add", "/a", "9"), r#"{"a":9,"c":[1,2,3]}"#),
        (op("add", "/c/1", "9"), r#"{"a":{"b":1},"c":[1,9,2,3]}"#),
        (op("add", "/c/3", "9"), r#"{"a":{"b":1},"c":[1,2,3,9]}"#),
        (op("add", "/c/-", "9"), r#"{"a":{"b":1},"c":[1,2,3,9]}"#),
        (op("add", "", "[]"), "[]"),
        (r#"[{"op":"remove","path":"/a"}]"#.to_owned(), r#"{"c":[1,2,3]}"#),
        (r#"[{"op":"remove","path":"/a/b"}]"#.to_owned(), r#"{"a":{},"c":[1,2,3]}"#),
        (r#"[{"op":"remove","path":"/c/0"}]"#.to_owned(), r#"{"a":{"b":1},"c":[2,3]}"#),
        (r#"[{"op":"remove","path":"/c/2"}]"#.to_owned(), r#"{"a":{"b":1},"c":[1,2]}"#),
        (r#"[{"op":"move","from":"/a/b","path":"/c/0"}]"#.to_owned(), r#"{"a":{},"c":[1,1,2,3]}"#),
        (r#"[{"op":"copy","from":"/a","path":"/a/b"}]"#.to_owned(), r#"{"a":{"b":{"b":1}},"c":[1,2,3]}"#),
        (op("test", "/c", "[1, 2, 3]"), before),
    ] {
        assert_eq!(gives(before, &patch, after), Ok(()), "{patch}");
    }
    for patch in [
        op("replace", "/x", "1"),
        op("add", "/x/y", "1"),
        op("add", "/c/4", "1"),
        op("test", "/c/0", "2"),
        r#"[{"op":"remove","path":""}]"#.to_owned(),
        r#"[{"op":"remove","path":"/c/-"}]"#.to_owned(),
        r#"[{"op":"move","from":"/a","path":"/a/b"}]"#.to_owned(),
        r#"[{"op":"move","from":"","path":""}]"#.to_owned(),
        // All or nothing.
        r#"[{"op":"remove","path":"/a"},{"op":"remove","path":"/a"}]"#.to_owned(),
    ] {
        assert_eq!(first(before, &patch), Err(PatchError::NotApplicable), "{patch}");
    }
}

#[test]
fn new_members_are_also_tried_in_the_order_of_keys() {
    let patch = op("add", "/b", "2");
    assert_eq!(gives(r#"{"a":1,"c":3}"#, &patch, r#"{"a":1,"c":3,"b":2}"#), Ok(()));
    assert_eq!(gives(r#"{"a":1,"c":3}"#, &patch, r#"{"a":1,"b":2,"c":3}"#), Ok(()));
    let unsorted = r#"{"c":1,"a":3}"#;
    assert_eq!(gives(unsorted, &patch, r#"{"b":2,"c":1,"a":3}"#), Err(PatchError::OtherResult));
}

#[test]
fn limits_bound_the_result_the_operations_and_the_work() {
    let before = format!(r#"{{"a":"{}"}}"#, "x".repeat(500));
    let double = r#"{"op":"copy","from":"","path":"/a"}"#;
    let patch = format!("[{}]", [double; 40].join(","));
    let with = |limits| apply(before.as_bytes(), patch.as_bytes(), &limits, |_| true);
    let small = || Limits { bytes: 100_000, ..Limits::default() };
    // Each copy of the whole into itself would double it.
    let grows = r#"[{"op":"add","path":"/b","value":1}]"#;
    assert!(apply(before.as_bytes(), grows.as_bytes(), &Limits { bytes: 512, ..small() }, |_| true).is_err());
    let nested = (0..40).map(|n| format!(r#"{{"op":"copy","from":"","path":"/{n}"}}"#)).collect::<Vec<_>>();
    let nested = format!("[{}]", nested.join(","));
    let doubled = apply(before.as_bytes(), nested.as_bytes(), &small(), |_| true);
    assert_eq!(doubled, Err(PatchError::TooLarge));
    assert_eq!(with(Limits { operations: 39, ..small() }), Err(PatchError::TooLarge));
    assert_eq!(with(Limits { work: 2_000, ..small() }), Err(PatchError::TooLarge));
    assert!(with(small()).is_ok());
    // The work of both orders of new members counts.
    let least = (0..)
        .find(|&work| apply(br#"{"a":1}"#, grows.as_bytes(), &Limits { work, ..small() }, |_| true).is_ok());
    let both = |work| apply(br#"{"a":1}"#, grows.as_bytes(), &Limits { work, ..small() }, |_| false);
    assert_eq!(both(least.unwrap()), Err(PatchError::TooLarge));
    assert_eq!(both(100_000), Err(PatchError::OtherResult));
    assert_eq!(
        apply(before.as_bytes(), b"[]", &Limits { bytes: 9, ..small() }, |_| true),
        Err(PatchError::TooLarge)
    );
}

#[test]
fn a_test_of_a_large_value_is_too_large() {
    let value = format!("[{}0]", "0,".repeat(10_000));
    assert_eq!(first(&value, &op("test", "", &value)), Err(PatchError::TooLarge));
    const { assert!(PARSED <= 4 * 1024 * 1024, "64 jobs have room at once") };
}

#[test]
fn media_types_are_compared_without_case_and_parameters() {
    assert!(is_known("Application/JSON-Patch+JSON; charset=utf-8") && is_known("application/json-patch"));
    assert!(!is_known("application/xml-patch+xml") && !is_known(""));
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[abc]", 1 => "[a-zé/~\"]{0,3}"]
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn path() -> impl Strategy<Value = String> {
    let token = prop_oneof![key(), "[0-3]", Just("-".to_owned())];
    prop::collection::vec(token, 0..4).prop_map(|tokens| {
        tokens.iter().map(|token| format!("/{}", token.replace('~', "~0").replace('/', "~1"))).collect()
    })
}

fn operation() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test"]);
    (name, path(), path(), document())
        .prop_map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}))
}

proptest! {
    #[test]
    fn the_document_is_the_one_that_another_implementation_makes(
        before in document(),
        operations in prop::collection::vec(operation(), 0..4),
        is_pretty in any::<bool>(),
    ) {
        let patch = serde_json::to_string(&operations).unwrap();
        let parsed: json_patch::Patch = serde_json::from_str(&patch).unwrap();
        let mut after = before.clone();
        // `patch` panics where it cannot undo what it has done.
        let expected = json_patch::patch_unsafe(&mut after, &parsed).is_ok();
        let text = if is_pretty { serde_json::to_string_pretty(&before) } else { serde_json::to_string(&before) };
        let made = first(&text.unwrap(), &patch);
        prop_assert_eq!(made.is_ok(), expected, "{:?}", made);
        if let Ok(made) = made {
            prop_assert_eq!(serde_json::from_str::<Value>(&made).unwrap(), after);
        }
    }

    #[test]
    fn the_bytes_are_those_that_the_same_program_writes(
        before in prop::collection::btree_map(key(), document(), 1..5),
        after in prop::collection::btree_map(key(), document(), 1..5),
    ) {
        let object = |members: std::collections::BTreeMap<String, Value>| Value::Object(members.into_iter().collect());
        let (before, after) = (object(before), object(after));
        let patch = serde_json::to_string(&json_patch::diff(&before, &after)).unwrap();
        for write in [serde_json::to_string, serde_json::to_string_pretty] {
            let (before, after) = (write(&before).unwrap(), write(&after).unwrap());
            prop_assert_eq!(gives(&before, &patch, &after), Ok(()), "{}", patch);
        }
    }

    #[test]
    fn any_bytes_are_edited_or_refused(
        before in ".{0,40}",
        noise in prop::collection::vec(prop::sample::select(br#"{}[]:,"\ a1"#.to_vec()), 0..40),
        operations in prop::collection::vec(operation(), 1..4),
    ) {
        let patch = serde_json::to_vec(&operations).unwrap();
        for text in [before.as_bytes(), &noise] {
            let _ = apply(text, &patch, &Limits::default(), |_| true);
            let _ = apply(&patch, text, &Limits::default(), |_| true);
        }
    }
}
