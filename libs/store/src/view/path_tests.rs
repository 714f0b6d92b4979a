//! Tests of the mapping from URIs to paths.

use std::collections::HashMap;

use model::ResourceUri;
use proptest::prelude::*;

use super::path::{ViewPath, path_of};

fn path(uri: &str) -> String {
    path_of(&uri.parse().unwrap()).to_string()
}

#[test]
fn ordinary_uris_stay_readable() {
    for (uri, expected) in [
        ("http://example.org/x/y.pdf", "example.org/x/y.pdf"),
        ("http://example.org:8080/resources/1", "example.org+8080/resources/1"),
        ("http://127.0.0.1:8888/a%20b.txt", "127.0.0.1+8888/a%20b.txt"),
        ("http://example.org/10.1234/caf%C3%A9.xml", "example.org/10.1234/caf%C3%A9.xml"),
        ("https://example.org/x/y.pdf", "example.org+https/x/y.pdf"),
        ("https://example.org:8443/x.pdf", "example.org+8443+https/x.pdf"),
    ] {
        assert_eq!(path(uri), expected);
    }
}

#[test]
fn what_would_collide_is_marked() {
    for (uri, expected) in [
        ("http://h/a", "h/a^"),
        ("http://h/a/b", "h/a/b^"),
        ("http://h/a/", "h/a/^-"),
        ("http://h/a//b.txt", "h/a/^-^/b.txt"),
        ("http://h/2020/05/b.txt", "h/2020^/05^/b.txt"),
        ("http://h/v1.pdf/b.txt", "h/v1.pdf^/b.txt"),
        ("http://h/", "h/^-"),
        ("http://h", "h/^~"),
        ("http://h?q", "h/^~^3fq"),
        ("http://h/?q", "h/^3fq"),
        ("http://h:80/x.txt", "h^3a80/x.txt"),
        ("http://h:443/x.txt", "h+443/x.txt"),
        ("http://h/y.php?id=3/4", "h/y.php^3fid=3^2f4"),
        ("http://h/Report.pdf", "h/Report^u1.pdf"),
        ("http://h/REPORT.PDF", "h/REPORT^u.PDF"),
        ("http://h/caf%c3.txt", "h/caf%c3^u8.txt"),
        ("HTTP://h/x.txt", "+uri/HTTP^3a^2f^2fh^2fx^uf.txt"),
    ] {
        assert_eq!(path(uri), expected, "{uri}");
    }
}

#[test]
fn what_cannot_be_a_name_is_escaped() {
    for (uri, expected) in [
        ("http://h/../x.txt", "h/.^2e/x.txt"),
        ("http://h/./x.txt", "h/^2e/x.txt"),
        ("http://h/a./x.txt", "h/a^2e/x.txt"),
        ("http://h/con.txt", "h/^63on.txt"),
        ("http://h/a^b\\c.txt", "h/a^5eb^5cc.txt"),
        ("http://h/é.txt", "h/^c3^a9.txt"),
        ("http://.thresher/x.txt", "^2ethresher/x.txt"),
        ("http://[::1]:8080/x.txt", "[^3a^3a1]+8080/x.txt"),
        ("http://user@h/x.txt", "user@h/x.txt"),
    ] {
        assert_eq!(path(uri), expected, "{uri}");
    }
}

#[test]
fn long_names_are_cut_and_long_uris_become_digests() {
    let long = path(&format!("http://h/{}.txt", "a".repeat(300)));
    assert_eq!(long, format!("h/{}^_/^_{}.txt", "a".repeat(240), "a".repeat(60)));
    let longer = path(&format!("http://h/{}", "a/".repeat(2_000)));
    assert!(longer.starts_with("+long/") && longer.len() < 80, "{longer}");
}

/// URIs made of pieces that are prone to collide.
fn uris() -> impl Strategy<Value = ResourceUri> {
    let piece = prop_oneof![
        Just("a"),
        Just("A"),
        Just("b.txt"),
        Just("B.TXT"),
        Just("b.Txt"),
        Just("."),
        Just(".."),
        Just(""),
        Just("1"),
        Just("con"),
        Just("Con.x"),
        Just("%c3%A9"),
        Just("%C3%a9"),
        Just("%2F"),
        Just("%%41"),
        Just("^"),
        Just("^-"),
        Just("^u1"),
        Just("a^"),
        Just("a^u"),
        Just("é"),
        Just("É"),
        Just("a+b"),
        Just("^5e"),
        Just("^_"),
        Just("^~"),
        Just("a\\b"),
        Just("a b"),
        Just("x."),
        Just(".thresher"),
        Just("+long"),
        Just("~"),
        Just("COM1"),
        Just("a:80"),
    ];
    let long = "[aA.^%?]{230,260}";
    let segment = prop_oneof![
        12 => prop::collection::vec(piece, 1..3).prop_map(|pieces| pieces.concat()),
        2 => "[ -~]{0,6}".prop_map(|text| text),
        1 => long.prop_map(|text| text),
    ];
    let authority = prop_oneof![
        Just("h"),
        Just("H"),
        Just("h:80"),
        Just("h:443"),
        Just("h:8080"),
        Just("h:08080"),
        Just("h:"),
        Just("u@h"),
        Just("U+x@h"),
        Just("[::1]"),
        Just("[::1]:1"),
        Just(".thresher"),
        Just("h."),
        Just("h+https"),
        Just("con"),
    ];
    let scheme =
        prop_oneof![6 => Just("http://"), 3 => Just("https://"), 1 => Just("HTTP://"), 1 => Just("http:/")];
    let tail =
        prop_oneof![4 => Just(""), 1 => Just("?"), 1 => Just("?a/B"), 1 => Just("#f"), 1 => Just("?x#y")];
    (scheme, authority, prop::collection::vec(segment, 0..4), tail).prop_filter_map(
        "no URI that is harvested",
        |(scheme, authority, segments, tail)| {
            let path: String = segments.iter().map(|segment| format!("/{segment}")).collect();
            format!("{scheme}{authority}{path}{tail}").parse().ok()
        },
    )
}

fn assert_valid(path: &ViewPath) {
    for name in path.as_str().split('/') {
        assert!((1..=255).contains(&name.len()), "{path}");
        assert!(name.bytes().all(|b| b.is_ascii_graphic() && !br#"<>:"\|?*"#.contains(&b)), "{path}");
        assert!(!name.ends_with('.') && name != "..", "{path}");
    }
    assert!(!path.as_str().starts_with('.'), "{path}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_024))]

    #[test]
    fn a_path_is_valid_and_gives_its_uri_back(uri in uris()) {
        let path = path_of(&uri);
        assert_valid(&path);
        if !path.as_str().starts_with("+long/") {
            prop_assert_eq!(path.uri(), Some(uri), "{}", path);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn paths_of_different_uris_differ_in_any_case_and_none_leads_through_another(
        uris in prop::collection::hash_set(uris(), 2..200)
    ) {
        let folded: HashMap<String, &ResourceUri> =
            uris.iter().map(|uri| (path_of(uri).as_str().to_lowercase(), uri)).collect();
        prop_assert_eq!(folded.len(), uris.len());
        for (path, uri) in &folded {
            for (at, _) in path.match_indices('/') {
                prop_assert!(!folded.contains_key(&path[..at]), "{} of {}", path, uri);
            }
        }
    }
}
