use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const PDF: &str = "https://repo.example.org/a.pdf";

fn read(value: &Value) -> Notification {
    Notification::read(value.to_string().as_bytes(), &Limits::default()).unwrap()
}

fn about(notification: &Notification) -> Vec<&str> {
    notification.objects.iter().map(Url::as_str).collect()
}

/// The same Announce, as different senders write it.
fn spellings() -> Vec<Value> {
    let full = |name: &str| format!("https://www.w3.org/ns/activitystreams#{name}");
    vec![
        json!({"@context": "https://www.w3.org/ns/activitystreams", "type": "Announce", "object": PDF}),
        json!({"@context": "https://www.w3.org/ns/activitystreams", "@type": ["Announce"], "object": {"id": PDF}}),
        json!({"@context": ["https://www.w3.org/ns/activitystreams", {"x": "urn:x#"}], "type": ["x:Y", "Announce"], "object": [{"@id": PDF}]}),
        json!({"type": "Announce", "object": PDF}),
        json!({"@type": full("Announce"), full("object"): {"@id": PDF}}),
        json!([{"@type": [full("Announce")], full("object"): [{"@id": PDF}]}]),
        json!({"@context": null, "@type": full("Announce"), full("object"): PDF}),
        json!({"@context": {"as": full("")}, "@type": "as:Announce", "as:object": {"@id": PDF}}),
        json!({"@context": {"as": full(""), "says": "as:object", "kind": "@type"}, "kind": "as:Announce", "says": {"@id": PDF}}),
        json!({"@context": "https://www.w3.org/ns/activitystreams", "@graph": [
            {"id": PDF, "type": "Document"}, {"id": "urn:uuid:1", "type": "Announce", "object": PDF}]}),
        json!({"@context": {"@vocab": full("")}, "@type": "Announce", "object": {"@list": [{"@id": PDF}]}}),
        json!({"@context": {"@vocab": full("")}, "@type": "Announce", "object": {"@value": PDF}}),
    ]
}

#[test]
fn an_announce_is_read_in_each_form_of_json_ld() {
    for spelling in spellings() {
        let read = read(&spelling);
        assert_eq!((read.activity, about(&read)), (Some(Activity::Announce), vec![PDF]), "{spelling}");
    }
}

#[test]
fn a_coar_notify_announcement_is_read_with_who_says_it_and_what_it_belongs_to() {
    let read = read(&json!({
        "@context": ["https://www.w3.org/ns/activitystreams", "https://coar-notify.net"],
        "id": "urn:uuid:94ecae35-dcfd-4182-8550-22c7164fe23f",
        "type": ["Announce", "coar-notify:ReviewAction"],
        "actor": {"id": "https://review.example.com", "name": "Reviews", "type": "Service"},
        "origin": {"id": "https://review.example.com/system", "inbox": "https://review.example.com/inbox/", "type": "Service"},
        "target": {"id": "https://repo.example.org/system", "inbox": "https://repo.example.org/inbox/", "type": "Service"},
        "context": {"id": PDF, "ietf:cite-as": "https://doi.org/10.5555/12345680"},
        "object": {"id": "https://review.example.com/r/1", "type": ["Document", "sorg:Review"]},
    }));
    assert_eq!(read.activity, Some(Activity::Announce));
    assert!(read.types.contains(&"http://purl.org/coar/notify_vocabulary/ReviewAction".to_owned()));
    assert_eq!(about(&read), ["https://review.example.com/r/1", PDF]);
    assert_eq!(read.origin.as_deref(), Some("https://review.example.com/system"));
    assert_eq!(read.target.as_deref(), Some("https://repo.example.org/system"));
    assert_eq!(read.speaks_from(), Some(Url::parse("https://review.example.com").unwrap().origin()));
}

#[test]
fn an_activity_that_is_announced_is_about_its_own_object() {
    let inner = json!({"id": "urn:uuid:2", "type": "Update", "object": PDF});
    let nested = json!({"type": "Announce", "object": inner});
    assert_eq!(about(&read(&nested)), [PDF]);
    let flat = json!([{"type": "Announce", "object": {"id": "urn:uuid:2"}}, inner]);
    assert_eq!((read(&flat).activity, about(&read(&flat))), (Some(Activity::Announce), vec![PDF]));
}

#[test]
fn other_notifications_are_read_and_are_no_activity_of_ours() {
    for (other, kind) in [
        (json!({"type": "Like", "object": PDF}), "https://www.w3.org/ns/activitystreams#Like"),
        (json!({"@context": "http://schema.org/", "@type": "Announce", "object": PDF}), "Announce"),
        (json!({"@context": {"Announce": "urn:x:Announce"}, "@type": "Announce"}), "urn:x:Announce"),
    ] {
        let read = read(&other);
        assert_eq!((read.activity, read.types), (None, vec![kind.to_owned()]), "{other}");
    }
    let no_type = read(&json!({"@id": "", "http://purl.org/dc/terms/title": "hello"}));
    assert_eq!((no_type.activity, no_type.types.len()), (None, 0));
}

#[test]
fn what_says_nothing_is_refused() {
    for nothing in [
        json!({}),
        json!([]),
        json!(7),
        json!("x"),
        json!(null),
        json!([[], [1]]),
        json!({"@id": "urn:x"}),
        json!({"@context": {}}),
        json!({"@graph": []}),
        json!({"type": null}),
    ] {
        let read = Notification::read(nothing.to_string().as_bytes(), &Limits::default());
        assert_eq!(read, Err(Unreadable::SaysNothing), "{nothing}");
    }
}

#[test]
fn who_speaks_is_the_system_and_else_the_actor_and_has_a_host() {
    let from = |value: Value| read(&value).speaks_from().map(|origin| origin.ascii_serialization());
    let both = json!({"type": "Create", "actor": "https://a.example/x", "origin": {"id": "https://b.example:8443/y"}});
    assert_eq!(from(both).as_deref(), Some("https://b.example:8443"));
    assert_eq!(
        from(json!({"type": "Create", "actor": "https://a.example/x"})).as_deref(),
        Some("https://a.example")
    );
    for nobody in [
        json!({"type": "Create"}),
        json!({"type": "Create", "actor": "mailto:a@b.example"}),
        json!({"type": "Create", "actor": "/x"}),
    ] {
        assert_eq!(from(nobody), None);
    }
}

#[test]
fn what_is_read_of_one_notification_is_bounded() {
    let many: Vec<_> = (0..300).map(|n| format!("https://e.org/{n}")).collect();
    let read = read(
        &json!({"type": vec!["Create"; 50], "object": many, "actor": format!("https://e.org/{}", "a".repeat(3_000))}),
    );
    assert_eq!((read.objects.len(), read.types.len(), read.actor), (MOST_OBJECTS, MOST_TYPES, None));
}

/// JSON with names that have a meaning in JSON-LD.
fn documents() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        Just(json!(1)),
        "(Announce|as:Create|@id|@type|https://e[.]org/[a-c]|as|[a-c]|a:b|https://www[.]w3[.]org/ns/activitystreams)".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let name =
            "(@context|@graph|@id|id|@type|type|@list|@set|@value|@vocab|object|context|actor|as|a|b|a:b)";
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_document_is_read_without_panic_and_within_bounds(document in documents()) {
        if let Ok(read) = Notification::read(document.to_string().as_bytes(), &Limits::default()) {
            prop_assert!(read.objects.len() <= MOST_OBJECTS && read.types.len() <= MOST_TYPES);
        }
    }

    #[test]
    fn an_announce_is_found_whatever_stands_beside_it(which in 0..12_usize, extra in documents()) {
        let mut spelling = spellings().swap_remove(which);
        let one = match &mut spelling { Value::Array(one) => &mut one[0], one => one };
        one.as_object_mut().unwrap().insert("urn:x:beside".to_owned(), extra);
        let read = read(&spelling);
        prop_assert_eq!(read.activity, Some(Activity::Announce));
        prop_assert_eq!(about(&read), vec![PDF]);
    }
}
