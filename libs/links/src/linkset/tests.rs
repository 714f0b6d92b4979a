use proptest::prelude::*;

use super::*;
use crate::link::Link;

fn json(body: &str) -> Links {
    read(body.as_bytes(), Format::Json, &Limits::BODY).unwrap()
}

fn targets(set: &Links) -> Vec<&str> {
    set.links.iter().map(|link| link.target.as_str()).collect()
}

const PLAIN: &str = r#"{"linkset": [
    {"anchor": "http://s.test/w", "item": [
        {"href": "http://s.test/f.pdf", "type": "application/pdf", "hreflang": ["en", "de"]},
        {"href": "http://s.test/f.csv", "title*": [{"value": "Daten", "language": "de"}], "size": ["12"]}]},
    {"item": [], "describedby": [{"href": "m.xml", "type": "application/xml"}], "anchor": "http://s.test/v"}]}"#;

#[test]
fn contexts_relations_and_attributes_become_links() {
    let set = json(PLAIN);
    assert!(set.faults.is_empty(), "{:?}", set.faults);
    assert_eq!(targets(&set), ["http://s.test/f.pdf", "http://s.test/f.csv", "m.xml"]);
    let [pdf, csv, xml] = &set.links[..] else { panic!() };
    assert_eq!((pdf.rel.as_str(), pdf.anchor.as_deref()), ("item", Some("http://s.test/w")));
    let languages: Vec<_> = pdf.attributes.iter().filter(|(name, _)| name == "hreflang").collect();
    assert_eq!(languages.len(), 2);
    assert_eq!((csv.attribute("title*"), csv.attribute("size")), (Some("Daten"), Some("12")));
    assert_eq!(xml.anchor.as_deref(), Some("http://s.test/v"));
}

#[test]
fn text_is_a_header_with_line_breaks() {
    let body = b"<http://s.test/f.pdf>\n  ; rel=\"item\"\n  ; anchor=\"http://s.test/w\" ,\n\n<m.xml>;rel=describedby";
    let set = read(body, Format::Text, &Limits::BODY).unwrap();
    assert_eq!(targets(&set), ["http://s.test/f.pdf", "m.xml"]);
    assert_eq!(set.links[0].anchor.as_deref(), Some("http://s.test/w"));
    assert_eq!(set.faults.count(Fault::NoAnchor), 1);
    assert_eq!(read(b"\xff", Format::Text, &Limits::BODY), Err(LinksetError::NotUtf8));
}

/// Each of these is served by some repository. Only what has no name is lost.
#[test]
fn each_fault_seen_in_the_wild_is_named_and_tolerated() {
    for (fault, body) in [
        (
            Fault::Wrapped,
            r#"{"status": "OK", "data": {"linkset": [{"anchor": "http://a/", "item": [{"href": "/b"}]}]}}"#,
        ),
        (
            Fault::ExtraMembers,
            r#"{"linkset": [{"anchor": "http://a/", "item": [{"href": "/b"}]}], "id": {"x": [1]}}"#,
        ),
        (Fault::NoAnchor, r#"{"linkset": [{"item": [{"href": "/b"}]}]}"#),
        (Fault::RelativeAnchor, r#"{"linkset": [{"anchor": "/a", "item": [{"href": "/b"}]}]}"#),
        (Fault::NotAnArray, r#"{"linkset": [{"anchor": "http://a/", "item": {"href": "/b"}}]}"#),
        (Fault::NotAnArray, r#"{"linkset": {"anchor": "http://a/", "item": [{"href": "/b"}]}}"#),
        (Fault::NotAnArray, r#"{"linkset": [{"anchor": "http://a/", "item": "/b"}]}"#),
        (
            Fault::StrayComma,
            "{\"linkset\": [{\"anchor\": \"http://a/\", \"item\": [{\"href\": \"/b\",},]},],}",
        ),
        (Fault::RelationCase, r#"{"linkset": [{"anchor": "http://a/", "describedBy": [{"href": "/b"}]}]}"#),
        (
            Fault::NoTarget,
            r#"{"linkset": [{"anchor": "http://a/", "item": [{"href": "/b"}, {"type": "x"}, {"href": 1, "href": ""}]}]}"#,
        ),
    ] {
        let set = json(body);
        assert_eq!(targets(&set), ["/b"], "{body}");
        assert!(set.faults.count(fault) > 0, "{body}: {:?}", set.faults);
    }
    let marked = [b"\xef\xbb\xbf", PLAIN.as_bytes()].concat();
    assert_eq!(read(&marked, Format::Json, &Limits::BODY).unwrap().links.len(), 3);
}

#[test]
fn media_types_are_taken_as_servers_write_them() {
    for (text, format) in [
        ("application/linkset+json", Some((Format::Json, true))),
        ("Application/Linkset; charset=utf-8", Some((Format::Text, true))),
        ("application/json+linkset", Some((Format::Json, false))),
        ("application/json", Some((Format::Json, false))),
        ("linkset+json", Some((Format::Json, false))),
        ("text/html", None),
    ] {
        assert_eq!(Format::of(text), format, "{text}");
    }
}

#[test]
fn what_is_no_link_set_is_refused() {
    let error = |body: &str| read(body.as_bytes(), Format::Json, &Limits::BODY).unwrap_err();
    for other in ["{}", "[]", "1", "null", "\"linkset\"", r#"{"linksets": []}"#] {
        assert_eq!(error(other), LinksetError::NotALinkset, "{other}");
    }
    for broken in ["", "<html>", r#"{"linkset": ["#, r#"{"linkset": []} {}"#] {
        assert!(matches!(error(broken), LinksetError::NotJson(_)), "{broken}");
    }
    assert!(matches!(error(&"[".repeat(100_000)), LinksetError::NotJson(_)));
    assert!(json(r#"{"linkset": []}"#).links.is_empty());
}

#[test]
fn reading_stops_at_its_limits() {
    let limits = Limits { links: 2, bytes: 1_000, value_bytes: 20 };
    let body = |n: usize| {
        let targets: Vec<_> = (0..n).map(|n| format!("{{\"href\": \"/{n}\"}}")).collect();
        format!("{{\"linkset\": [{{\"anchor\": \"http://a/\", \"item\": [{}]}}]}}", targets.join(","))
    };
    let set = read(body(5).as_bytes(), Format::Json, &limits).unwrap();
    assert_eq!((set.links.len(), set.faults.count(Fault::TooManyLinks)), (2, 3));
    assert!(set.faults.has_left_out());
    assert_eq!(read(body(500).as_bytes(), Format::Json, &limits), Err(LinksetError::TooLarge(1_000)));
    let long = format!(
        "{{\"linkset\": [{{\"item\": [{{\"href\": \"/b\"}}], \"anchor\": \"http://{}/\"}}]}}",
        "a".repeat(30)
    );
    let set = read(long.as_bytes(), Format::Json, &limits).unwrap();
    assert_eq!((set.links.len(), set.faults.count(Fault::TooLong)), (0, 1));
}

/// An anchor and a relation are written once, and each link has a copy of them.
#[test]
fn copies_of_a_long_anchor_or_relation_count() {
    let long = "x".repeat(8_000);
    let targets = vec![r#"{"href":"a"}"#; 10_000].join(",");
    for (anchor, rel) in [(long.as_str(), "item"), ("http://a/", long.as_str())] {
        let body = format!(r#"{{"linkset": [{{"{rel}": [{targets}], "anchor": "{anchor}"}}]}}"#);
        let set = read(body.as_bytes(), Format::Json, &Limits::BODY).unwrap();
        assert!(set.size() <= 32 * body.len() && !set.links.is_empty(), "{}", set.size());
        assert!(set.faults.count(Fault::TooManyBytes) > 0 && set.faults.has_left_out());
        assert!(set.links.iter().all(|link| link.anchor.as_deref() == Some(anchor)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_bytes_are_read_without_panic(
        body in "([\\[\\]{}:, ]|\"linkset\"|\"anchor\"|\"href\"|\"item\"|\"data\"|\"value\"|null|1|\"a\"){0,40}|.{0,80}"
    ) {
        let limits = Limits { links: 3, ..Limits::BODY };
        for format in [Format::Json, Format::Text] {
            if let Ok(set) = read(body.as_bytes(), format, &limits) {
                prop_assert!(set.links.len() <= 3);
            }
        }
    }

    #[test]
    fn what_is_written_is_read(
        links in prop::collection::vec(("[a-z/:.,;\"\\\\]{1,12}", "[b-z]{1,8}", "[ -~]{0,12}", "[a-c]{1}"), 0..6)
    ) {
        let link = |(target, rel, value, anchor): (String, String, String, String)| Link {
            anchor: Some(format!("http://{anchor}/")),
            ..Link::new(target, rel).with("type", value.clone()).with("hreflang", value.clone()).with("title*", value)
        };
        let mut links: Vec<_> = links.into_iter().map(link).collect();
        // Within a context, JSON orders links by their relation.
        links.sort_by(|a, b| (&a.anchor, &a.rel).cmp(&(&b.anchor, &b.rel)));
        let mut read = json(&to_json(&links, "http://x/"));
        read.links.iter_mut().for_each(|link| link.attributes.sort());
        links.iter_mut().for_each(|link| link.attributes.sort());
        read.links.sort_by(|a, b| (&a.anchor, &a.rel).cmp(&(&b.anchor, &b.rel)));
        prop_assert_eq!(read.links, links);
    }
}
