//! Tests of the mapping from URIs to paths.

use std::collections::{HashMap, HashSet};

use model::ResourceUri;
use proptest::prelude::*;

use super::name::Rule;
use super::path::{ViewPath, path_of};

fn path(uri: &str) -> String {
    path_of(&uri.parse().unwrap()).to_string()
}

fn path_by(rule: Rule, uri: &str) -> String {
    ViewPath::by(rule, &uri.parse().unwrap()).to_string()
}

#[test]
fn plain_paths_are_as_the_uri_writes_them() {
    for (uri, expected) in [
        ("https://example.org/x/Report.pdf", "example.org/x/Report.pdf"),
        ("http://example.org:8080/2020/05/Report.PDF", "example.org+8080/2020/05/Report.PDF"),
        ("http://127.0.0.1:8888/a%20b.txt", "127.0.0.1+8888/a%20b.txt"),
        ("https://example.org/10.1234/caf%C3%A9.xml", "example.org/10.1234/caf%C3%A9.xml"),
        ("https://h/caf%c3.txt", "h/caf%c3.txt"),
        ("https://h/a", "h/a"),
        ("https://h/a/b", "h/a/b"),
        ("https://h/A", "h/A"),
        ("https://h/v1.pdf/b.txt", "h/v1.pdf/b.txt"),
    ] {
        assert_eq!(path(uri), expected, "{uri}");
    }
}

#[test]
fn schemes_and_ports_are_told_apart() {
    for (uri, expected) in [
        ("https://h/x", "h/x"),
        ("http://h/x", "h+80/x"),
        ("http://h:8080/x", "h+8080/x"),
        ("https://h:8080/x", "h+8080+https/x"),
        ("http://h:443/x", "h+443/x"),
        ("https://h:80/x", "h+80+https/x"),
        ("http://h:80/x", "h^3a80+80/x"),
        ("https://h:443/x", "h^3a443/x"),
        ("http://h:08080/x", "h^3a08080+80/x"),
        ("https://h+80/x", "h^2b80/x"),
        ("HTTP://h/x", "+uri/HTTP^3a^2f^2fh^2fx"),
    ] {
        assert_eq!(path(uri), expected, "{uri}");
    }
}

#[test]
fn empty_segments_queries_and_fragments_have_names() {
    for (uri, expected) in [
        ("https://h/a/", "h/a/^-"),
        ("https://h/a//b.txt", "h/a/^-/b.txt"),
        ("https://h/", "h/^-"),
        ("https://h", "h/^~"),
        ("https://h?q", "h/^~^3fq"),
        ("https://h/?q", "h/^3fq"),
        ("https://h/a#b", "h/a^23b"),
        ("https://h/y.php?id=3/4", "h/y.php^3fid=3^2f4"),
    ] {
        assert_eq!(path(uri), expected, "{uri}");
    }
}

#[test]
fn strict_paths_mark_whatever_could_collide() {
    for (uri, expected) in [
        ("https://h/a", "+also/h/a^"),
        ("https://h/a/b", "+also/h/a/b^"),
        ("https://h/a/", "+also/h/a/^-"),
        ("https://h/a//b.txt", "+also/h/a/^-^/b.txt"),
        ("https://h/2020/05/b.txt", "+also/h/2020^/05^/b.txt"),
        ("https://h/v1.pdf/b.txt", "+also/h/v1.pdf^/b.txt"),
        ("http://h/Report.pdf", "+also/h+80/Report^u1.pdf"),
        ("https://h/REPORT.PDF", "+also/h/REPORT^u.PDF"),
        ("https://h/caf%c3.txt", "+also/h/caf%c3^u8.txt"),
        ("HTTP://h/x.txt", "+also/+uri/HTTP^3a^2f^2fh^2fx^uf.txt"),
    ] {
        assert_eq!(path_by(Rule::Strict, uri), expected, "{uri}");
    }
}

#[test]
fn plain_paths_mark_only_case_where_it_is_not_told_apart() {
    for (uri, expected) in [
        ("https://h/2020/a", "h/2020/a"),
        ("https://h/Report.pdf", "h/Report^u1.pdf"),
        ("https://H/A", "H^u/A^u"),
    ] {
        assert_eq!(path_by(Rule::Cased, uri), expected, "{uri}");
    }
}

#[test]
fn what_cannot_be_a_name_is_escaped() {
    for (uri, expected) in [
        ("https://h/../x.txt", "h/^2e^2e/x.txt"),
        ("https://h/./x.txt", "h/^2e/x.txt"),
        ("https://h/a./x.txt", "h/a^2e/x.txt"),
        ("https://h/con.txt", "h/^63on.txt"),
        ("https://h/a^b\\c.txt", "h/a^5eb^5cc.txt"),
        ("https://h/é.txt", "h/^c3^a9.txt"),
        ("https://.thresher/x.txt", "^2ethresher/x.txt"),
        ("https://h/a/.git/config", "h/a/^2egit/config"),
        ("https://h/.envrc", "h/^2eenvrc"),
        ("https://h/.htaccess?a=.b", "h/^2ehtaccess^3fa=.b"),
        ("https://h/a/...", "h/a/^2e.^2e"),
        ("https://h/GIT~1/config", "h/GIT^7e1/config"),
        ("https://h/~user/x~", "h/~user/x~"),
        ("https://h/Desktop.ini", "h/^44esktop.ini"),
        ("https://h/autorun.inf/x", "h/^61utorun.inf/x"),
        ("http://[::1]:8080/x.txt", "[^3a^3a1]+8080/x.txt"),
        ("https://user@h/x.txt", "user@h/x.txt"),
    ] {
        assert_eq!(path(uri), expected, "{uri}");
    }
}

#[test]
fn the_former_path_of_a_name_is_the_one_that_was_given_before_it_was_known_to_be_dangerous() {
    for (uri, former) in [
        ("https://h/.git/config", "h/.git/config"),
        ("https://h/../x.txt", "h/.^2e/x.txt"),
        ("https://h/GIT~1/config", "h/GIT~1/config"),
        ("https://h/desktop.ini", "h/desktop.ini"),
        ("https://.thresher/x.txt", "^2ethresher/x.txt"),
        ("https://h/con", "h/^63on"),
        ("https://h/a/b.txt", "h/a/b.txt"),
    ] {
        assert_eq!(ViewPath::former(Rule::Plain, &uri.parse().unwrap()).to_string(), former, "{uri}");
    }
    let strict = ViewPath::former(Rule::Strict, &"https://h/.git/config".parse().unwrap());
    assert_eq!(strict.to_string(), "+also/h/.git/config^");
}

#[test]
fn long_names_are_cut_and_long_uris_become_digests() {
    let long = path(&format!("https://h/{}.txt", "a".repeat(300)));
    assert_eq!(long, format!("h/{}^_/^_{}.txt", "a".repeat(240), "a".repeat(60)));
    let longer = path(&format!("https://h/{}", "a/".repeat(2_000)));
    assert!(longer.starts_with("+long/") && longer.len() < 80, "{longer}");
}

/// URIs from pieces that are prone to collide.
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
        Just(".git"),
        Just("GIT~1"),
        Just("desktop.ini"),
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
        Just("h+80"),
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
        assert!(!name.ends_with('.') && !name.starts_with('.'), "{path}");
        let after = name.split('~').skip(1);
        assert!(!after.into_iter().any(|rest| rest.starts_with(|c: char| c.is_ascii_digit())), "{path}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_024))]

    #[test]
    fn a_path_by_any_rule_is_valid_and_gives_its_uri_back(uri in uris()) {
        for rule in [Rule::Plain, Rule::Cased, Rule::Strict] {
            let path = ViewPath::by(rule, &uri);
            assert_valid(&path);
            prop_assert_eq!(path.as_str().starts_with("+also/"), rule == Rule::Strict, "{}", path);
            if !path.as_str().contains("+long/") {
                prop_assert_eq!(path.uri(), Some(uri.clone()), "{}", path);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn plain_paths_of_different_uris_differ(uris in prop::collection::hash_set(uris(), 2..200)) {
        let paths: HashSet<ViewPath> = uris.iter().map(path_of).collect();
        prop_assert_eq!(paths.len(), uris.len());
    }

    #[test]
    fn cased_paths_of_different_uris_differ_in_any_case(uris in prop::collection::hash_set(uris(), 2..200)) {
        let folded: HashSet<String> =
            uris.iter().map(|uri| ViewPath::by(Rule::Cased, uri).as_str().to_lowercase()).collect();
        prop_assert_eq!(folded.len(), uris.len());
    }

    #[test]
    fn strict_paths_of_different_uris_differ_in_any_case_and_none_leads_through_another(
        uris in prop::collection::hash_set(uris(), 2..200)
    ) {
        let folded: HashMap<String, &ResourceUri> =
            uris.iter().map(|uri| (ViewPath::by(Rule::Strict, uri).as_str().to_lowercase(), uri)).collect();
        prop_assert_eq!(folded.len(), uris.len());
        for (path, uri) in &folded {
            for (at, _) in path.match_indices('/') {
                prop_assert!(!folded.contains_key(&path[..at]), "{} of {}", path, uri);
            }
        }
    }
}
