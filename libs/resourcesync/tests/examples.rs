//! The specification's own examples: each is read completely, with the meaning that the specification gives
//! it.

use resourcesync::{Capability, Change, Item, Mode, Options, Quirk, ReadError, Reader, Root, relation};

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/examples/");

/// File, root element, capability, number of entries, quirks that strict mode refuses.
const TABLE: &[(&str, Root, &str, u64, &[Quirk])] = &[
    ("ex01", Root::UrlSet, "resourcelist", 2, &[]),
    ("ex02", Root::UrlSet, "resourcelist", 2, &[]),
    ("ex03", Root::UrlSet, "changelist", 3, &[]),
    ("ex04", Root::UrlSet, "resourcedump", 1, &[]),
    ("ex05", Root::UrlSet, "resourcedump-manifest", 2, &[]),
    ("ex06", Root::UrlSet, "capabilitylist", 3, &[]),
    ("ex07", Root::UrlSet, "description", 1, &[]),
    ("ex08", Root::SitemapIndex, "resourcelist", 2, &[]),
    ("ex12", Root::UrlSet, "description", 3, &[]),
    ("ex13", Root::UrlSet, "capabilitylist", 4, &[]),
    ("ex14", Root::UrlSet, "resourcelist", 2, &[]),
    ("ex15", Root::SitemapIndex, "resourcelist", 3, &[]),
    ("ex16", Root::UrlSet, "resourcelist", 2, &[]),
    ("ex17", Root::UrlSet, "resourcedump", 3, &[]),
    ("ex18", Root::UrlSet, "resourcedump-manifest", 2, &[]),
    ("ex19", Root::UrlSet, "changelist", 4, &[]),
    ("ex20", Root::SitemapIndex, "changelist", 3, &[]),
    ("ex21", Root::UrlSet, "changelist", 4, &[]),
    ("ex22", Root::UrlSet, "changedump", 3, &[]),
    ("ex23", Root::UrlSet, "changedump-manifest", 4, &[]),
    ("ex24", Root::UrlSet, "changelist", 1, &[]),
    ("ex25", Root::UrlSet, "changelist", 1, &[]),
    ("ex26", Root::UrlSet, "changelist", 1, &[]),
    ("ex27", Root::UrlSet, "changelist", 2, &[]),
    ("ex27-resync-testdata", Root::UrlSet, "changelist", 2, &[]),
    ("ex28", Root::UrlSet, "changelist", 2, &[]),
    ("ex29", Root::UrlSet, "changelist", 1, &[]),
    ("ex30", Root::UrlSet, "changelist", 1, &[]),
    ("ex31", Root::UrlSet, "changelist", 1, &[]),
    ("ex32", Root::UrlSet, "changelist", 1, &[]),
    ("ex33", Root::UrlSet, "changelist", 1, &[]),
    ("notification-ex1-payload", Root::UrlSet, "change-notification", 2, &[]),
    ("notification-ex7-capabilitylist", Root::UrlSet, "capabilitylist", 5, &[]),
];

fn open(name: &str, mode: Mode) -> Reader<std::fs::File> {
    let file = std::fs::File::open(format!("{DIRECTORY}{name}.xml")).unwrap();
    Reader::new(file, Options { mode, ..Options::default() }).unwrap()
}

#[test]
fn every_example_has_its_kind_and_entries() {
    for &(name, root, capability, entries, refused) in TABLE {
        let mut reader = open(name, Mode::Tolerant);
        let header = reader.header().unwrap();
        assert_eq!(header.root, root, "{name}");
        assert_eq!(header.capability.as_ref().map(Capability::as_str), Some(capability), "{name}");
        while let Some(item) = reader.next().unwrap() {
            assert!(matches!(item, Item::Entry(_)), "{name}: {item:?}");
        }
        let summary = reader.summary();
        assert!(summary.complete, "{name}");
        assert_eq!((summary.entries, summary.bad), (entries, 0), "{name}");
        let found: Vec<_> =
            summary.quirks.iter().map(|(quirk, _)| quirk).filter(|q| q.is_refused_when_strict()).collect();
        assert_eq!(found, refused, "{name}");
    }
}

#[test]
fn every_file_is_in_the_table() {
    let mut files: Vec<_> = std::fs::read_dir(DIRECTORY)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.retain(|file| file != "ex28-as-printed-malformed.xml");
    files.sort();
    let mut table: Vec<_> = TABLE.iter().map(|row| format!("{}.xml", row.0)).collect();
    table.sort();
    assert_eq!(files, table);
}

#[test]
fn strict_mode_reads_every_example_that_breaks_no_rule() {
    for &(name, .., entries, refused) in TABLE.iter().filter(|row| row.4.is_empty()) {
        assert_eq!(refused, &[]);
        let mut reader = open(name, Mode::Strict);
        while reader.next().unwrap_or_else(|error| panic!("{name}: {error}")).is_some() {}
        assert_eq!(reader.summary().entries, entries, "{name}");
    }
}

#[test]
fn example_with_an_unclosed_link_is_refused_with_line_and_column() {
    let mut reader = open("ex28-as-printed-malformed", Mode::Tolerant);
    let Some(Item::Entry(first)) = reader.next().unwrap() else { panic!("the first entry is whole") };
    assert_eq!(first.loc, "http://example.com/res2.pdf");
    let error = reader.next().unwrap_err();
    assert!(matches!(error, ReadError::Malformed { .. }), "{error:?}");
    assert_eq!((error.position().line, error.position().column), (31, 3));
    assert!(error.to_string().starts_with("line 31, column 3: the XML is not well-formed"), "{error}");
    assert_eq!(reader.next().unwrap_err().to_string(), error.to_string());
    let summary = reader.summary();
    assert_eq!((summary.entries, summary.complete), (1, false));
}

#[test]
fn notification_has_its_interval_and_two_digests() {
    let mut reader = open("notification-ex1-payload", Mode::Strict);
    let header = reader.header().unwrap().clone();
    assert_eq!(header.until.unwrap().to_string(), "2013-01-03T00:10:00Z");
    assert_eq!(header.link(relation::UP).unwrap().href, "http://example.com/dataset1/capabilitylist.xml");
    reader.next().unwrap();
    let Some(Item::Entry(entry)) = reader.next().unwrap() else { panic!("two entries") };
    assert_eq!(entry.metadata.change, Some(Change::Updated));
    let digests: Vec<_> = entry.metadata.hash.as_deref().unwrap().split_whitespace().collect();
    assert_eq!(digests.len(), 2);
    assert_eq!(entry.metadata.length, Some(14_599));
}

#[test]
fn mirrors_keep_their_preference_and_time() {
    let mut reader = open("ex24", Mode::Strict);
    let Some(Item::Entry(entry)) = reader.next().unwrap() else { panic!("one entry") };
    let preferences: Vec<_> = entry.links.iter().map(|link| link.pri).collect();
    assert_eq!(preferences, [Some(1), Some(2), Some(3)]);
    assert_eq!(entry.links[2].modified.unwrap().to_string(), "2013-01-03T18:00:23Z");
    assert_eq!(entry.links[2].href, "gsiftp://gridftp.example.com/res1");
}
