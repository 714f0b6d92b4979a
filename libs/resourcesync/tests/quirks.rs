//! One document for each quirk: it is understood, and counted under its name.

mod common;

use common::{NAMESPACES, change, change_list, gzip, in_2100, read, read_with, resource_list, urlset};
use resourcesync::{Capability, Mode, Options, Quirk, ReadError};

const AT: &str = r#"at="2013-01-03T09:00:00Z""#;
const FROM: &str = r#"from="2013-01-01T00:00:00Z""#;
const ONE: &str = "<url><loc>http://e.org/1</loc><lastmod>2013-01-01</lastmod></url>";

/// A Resource List with one entry that has this `rs:md` or `rs:ln`.
fn entry(content: &str) -> String {
    resource_list(&format!("<url><loc>http://e.org/1</loc>{content}</url>"))
}

/// A Change List with changes of a, b, c… at these times.
fn changes(times: &[&str]) -> String {
    let entries: String = ('a'..)
        .zip(times)
        .map(|(name, time)| change(&name.to_string(), &format!(r#"change="updated" datetime="{time}""#)))
        .collect();
    change_list(&entries)
}

/// The quirks that a document can have. Those that are left out depend on its place, and on another document.
fn quirks() -> impl Iterator<Item = Quirk> {
    let of_packages = [Quirk::ManifestElsewhere, Quirk::ContentsDiffers];
    Quirk::ALL.iter().copied().filter(move |quirk| !of_packages.contains(quirk))
}

/// The document that has a quirk, and the number of its entries.
fn document(quirk: Quirk) -> (Vec<u8>, usize) {
    let one = resource_list(ONE);
    let sitemap = |uri: &str| one.replace("http://www.sitemaps.org/schemas/sitemap/0.9", uri);
    let dump = |intervals: &[(&str, &str)]| {
        let entries: String = intervals
            .iter()
            .map(|(from, until)| change("p.zip", &format!(r#"from="{from}" until="{until}""#)))
            .collect();
        urlset(&format!(r#"<rs:md capability="changedump" {FROM}/>{entries}"#))
    };
    let text = match quirk {
        Quirk::Gzip => return (gzip(one.as_bytes()), 1),
        Quirk::ByteOrderMark => format!("\u{feff}{one}"),
        Quirk::BlankBeforeProlog => format!("\n<?xml version=\"1.0\"?>{one}"),
        Quirk::OtherEncoding => format!("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>{one}"),
        Quirk::InvalidUtf8 => {
            let two = resource_list(&format!("{ONE}<url><loc>http://e.org/X</loc></url>"));
            let bytes = two.bytes().map(|byte| if byte == b'X' { 0xe9 } else { byte });
            return (bytes.collect(), 1);
        }
        Quirk::BareAmpersand => resource_list("<url><loc>http://e.org/?a=1&b=2</loc></url>"),
        Quirk::TrailingBytes => format!("{one}<br />\n<b>Notice</b>: Undefined index"),
        Quirk::DamagedGzipEnd => {
            let mut bytes = gzip(one.as_bytes());
            bytes.truncate(bytes.len() - 4);
            return (bytes, 1);
        }
        Quirk::OddSitemapNamespace => sitemap("https://www.sitemaps.org/schemas/sitemap/0.9/"),
        Quirk::MissingSitemapNamespace => {
            one.replacen("xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"", "", 1)
        }
        Quirk::PrefixedSitemapNamespace => one
            .replace("xmlns=", "xmlns:sit=")
            .replace("urlset", "sit:urlset")
            .replace("url>", "sit:url>")
            .replace("loc>", "sit:loc>"),
        Quirk::OddResourceSyncNamespace => {
            one.replace("http://www.openarchives.org/rs/terms/", "https://www.openarchives.org/rs/terms")
        }
        Quirk::UndeclaredPrefix => one.replace("xmlns:rs=", "xmlns:other="),
        Quirk::ForeignLoc => entry(
            r#"<i:image xmlns:i="http://www.google.com/schemas/sitemap-image/1.1"><i:loc>http://e.org/i.png</i:loc></i:image>"#,
        ),
        Quirk::NoCapability => urlset(ONE),
        Quirk::UnknownCapability => urlset(&format!(r#"<rs:md capability="archives"/>{ONE}"#)),
        Quirk::OddCapabilityName => urlset(&format!(r#"<rs:md capability="changelistindex" {FROM}/>{ONE}"#)),
        Quirk::TooManyEntries => resource_list(
            &(0..50_001).fold(String::new(), |list, n| list + &ONE.replace("e.org/1", &format!("e.org/{n}"))),
        ),
        Quirk::RepeatedCapability => {
            let list = |name| change(name, r#"capability="resourcelist""#);
            urlset(&format!(r#"<rs:md capability="capabilitylist"/>{}{}"#, list("1.xml"), list("2.xml")))
        }
        Quirk::MissingEntryCapability => urlset(&format!(r#"<rs:md capability="capabilitylist"/>{ONE}"#)),
        Quirk::IndexAsUrlset => {
            change_list(&change("1", r#"change="updated" datetime="2013-01-02T00:00:00Z""#))
                .replace("urlset", "sitemapindex")
        }
        Quirk::UrlsetAsIndex => entry(r#"<rs:md capability="resourcelist"/>"#),
        Quirk::IndexNotAllowed => {
            format!(r#"<sitemapindex {NAMESPACES}><rs:md capability="capabilitylist"/></sitemapindex>"#)
        }
        Quirk::WrongEntryElement => format!(
            r#"<sitemapindex {NAMESPACES}><rs:md capability="resourcelist" {AT}/>{ONE}</sitemapindex>"#
        ),
        Quirk::LateHeader => {
            resource_list(&format!(r#"{ONE}<rs:ln rel="up" href="http://e.org/caps.xml"/>"#))
        }
        Quirk::RepeatedMetadata => entry(r#"<rs:md length="5"/><rs:md length="5"/>"#),
        Quirk::MissingAt => urlset(&format!(r#"<rs:md capability="resourcelist"/>{ONE}"#)),
        Quirk::MissingFrom => urlset(r#"<rs:md capability="changelist"/>"#),
        Quirk::MissingUntil => urlset(&format!(r#"<rs:md capability="change-notification" {FROM}/>"#)),
        Quirk::EntryWithoutMetadata => entry(""),
        Quirk::MetadataBeforeLoc => {
            resource_list(r#"<url><rs:md length="5"/><loc>http://e.org/1</loc></url>"#)
        }
        Quirk::WhitespaceInLoc => resource_list("<url><loc>\n http://e.org/1\n</loc></url>"),
        Quirk::SpaceInUri => resource_list("<url><loc>http://e.org/a b</loc></url>"),
        Quirk::NonAsciiUri => resource_list("<url><loc>http://e.org/caf\u{e9}</loc></url>"),
        Quirk::RelativeUri => resource_list("<url><loc>/a</loc></url>"),
        Quirk::RepeatedLoc => resource_list(&format!("{ONE}{ONE}")),
        Quirk::MissingChange => change_list(&change("1", r#"datetime="2013-01-02T00:00:00Z""#)),
        Quirk::UnreadableChange => entry(r#"<rs:md change="touched"/>"#),
        Quirk::OddChangeCase => {
            change_list(&change("1", r#"change="Deleted" datetime="2013-01-02T00:00:00Z""#))
        }
        Quirk::ChangeInResourceList => entry(r#"<rs:md change="deleted"/>"#),
        Quirk::PackageInChangeList => change_list(&change("data.tar.xz", r#"type="application/x-xz""#)),
        Quirk::MissingPath => urlset(&format!(r#"<rs:md capability="resourcedump-manifest" {AT}/>{ONE}"#)),
        Quirk::ManifestElsewhere | Quirk::ContentsDiffers => unreachable!("no document is read for it"),
        Quirk::EmptyValue => entry(r#"<rs:md hash="" length="5"/>"#),
        Quirk::UnreadableLength => entry(r#"<rs:md length="-5"/>"#),
        Quirk::UnreadablePriority => entry(r#"<rs:ln rel="duplicate" href="http://e.org/2" pri="0"/>"#),
        Quirk::LinkInLoc => {
            resource_list(r#"<url><loc>http://e.org/1<rs:ln rel="item" href="http://e.org/2"/></loc></url>"#)
        }
        Quirk::LinkWithoutTarget => entry(r#"<rs:ln rel="describedby" href=""/>"#),
        Quirk::LinksTruncated => {
            entry(&format!(r#"<rs:ln rel="via" href="http://e.org/{}"/>"#, "a".repeat(2_048)))
        }
        Quirk::LinkContradicts => {
            entry(r#"<rs:md length="5"/><rs:ln rel="duplicate" href="http://e.org/2" length="6"/>"#)
        }
        Quirk::RelationCase => entry(r#"<rs:ln rel="describedBy" href="http://e.org/2"/>"#),
        Quirk::UnreadableTime => entry("<lastmod>yesterday</lastmod>"),
        Quirk::ZoneLessTime => entry("<lastmod>2020-06-02T00:00:00</lastmod>"),
        Quirk::SpaceForT => entry("<lastmod>2020-06-02 00:00:00Z</lastmod>"),
        Quirk::OddTimeFormat => entry("<lastmod>2020-06-02T00:00:00+0200</lastmod>"),
        Quirk::FutureTime => change_list(&change("1", r#"change="updated" datetime="2101-01-01T00:00:00Z""#)),
        Quirk::LeapSecond => entry("<lastmod>2016-12-31T23:59:60Z</lastmod>"),
        Quirk::NoChangeTime => change_list(&change("1", r#"change="deleted""#)),
        Quirk::OutOfOrder => {
            changes(&["2013-01-02T00:00:00Z", "2013-01-03T00:00:00Z", "2013-01-02T12:00:00Z"])
        }
        Quirk::NewestFirst => {
            changes(&["2013-01-04T00:00:00Z", "2013-01-03T00:00:00Z", "2013-01-02T00:00:00Z"])
        }
        Quirk::ChangeOutsideInterval => changes(&["2012-12-31T00:00:00Z"]),
        Quirk::OverlappingIntervals => dump(&[("2013-01-01", "2013-01-08"), ("2013-01-02", "2013-01-03")]),
        Quirk::EmptyInterval => dump(&[("2013-01-01", "2013-01-01")]),
        Quirk::ReversedInterval => dump(&[("2013-01-02", "2013-01-01")]),
    };
    let entries = text.matches("url>").count() / 2;
    (text.into_bytes(), entries)
}

#[test]
fn every_quirk_is_understood_and_counted() {
    for quirk in quirks() {
        let (bytes, entries) = document(quirk);
        let reading = read_with(&bytes[..], in_2100(Mode::Tolerant));
        assert!(reading.error.is_none(), "{quirk}: {:?}", reading.error);
        assert!(reading.summary.complete, "{quirk}");
        assert_eq!(reading.entries.len(), entries, "{quirk}: {:?}", reading.bad);
        assert!(reading.count(quirk) > 0, "{quirk}: {:?}", reading.summary.quirks);
        assert_eq!(
            reading.summary.quirks.casts_doubt(),
            reading.summary.quirks.iter().any(|(q, _)| q.casts_doubt())
        );
    }
}

#[test]
fn strict_mode_refuses_what_breaks_the_specification_and_only_that() {
    for quirk in quirks() {
        let (bytes, _) = document(quirk);
        let tolerant = read_with(&bytes[..], in_2100(Mode::Tolerant));
        let expected = tolerant.summary.quirks.iter().any(|(quirk, _)| quirk.is_refused_when_strict());
        let strict = read_with(&bytes[..], in_2100(Mode::Strict));
        match strict.error {
            Some(ReadError::Quirk { quirk, .. }) => {
                assert!(quirk.is_refused_when_strict() && expected, "{quirk}")
            }
            Some(ReadError::BadEntry { .. }) => assert!(!tolerant.bad.is_empty(), "{quirk}"),
            Some(error) => panic!("{quirk}: {error}"),
            None => assert!(!expected, "{quirk}"),
        }
    }
}

#[test]
fn plain_document_has_no_quirk() {
    let reading = read(&resource_list(ONE));
    assert!(reading.summary.quirks.is_empty(), "{:?}", reading.summary.quirks);
    assert_eq!(reading.entries.len(), 1);
}

#[test]
fn change_list_of_zone_less_packages_is_read_as_intervals() {
    let packages = change_list(&format!(
        "{}{}",
        change(
            "w.tar.xz",
            r#"type="application/x-xz" from="2020-06-01T00:00:00" until="2020-06-08T00:00:00""#
        ),
        change(
            "d.tar.xz",
            r#"type="application/x-xz" from="2020-06-02T00:00:00" until="2020-06-02T00:00:00""#
        ),
    ));
    let reading = read(&packages);
    assert_eq!(reading.entries.len(), 2);
    assert_eq!(reading.count(Quirk::PackageInChangeList), 2);
    assert_eq!(reading.count(Quirk::ZoneLessTime), 4);
    assert_eq!(reading.count(Quirk::OverlappingIntervals), 1);
    assert_eq!(reading.count(Quirk::EmptyInterval), 1);
    assert_eq!(reading.count(Quirk::MissingChange), 0);
    assert!(reading.entries.iter().all(|entry| entry.metadata.change.is_none()));
}

#[test]
fn index_named_as_such_is_a_change_list_that_is_an_index() {
    let text = format!(
        r#"<sitemapindex {NAMESPACES}><rs:md capability="changelistindex" {FROM}/><sitemap><loc>http://e.org/1.xml</loc></sitemap></sitemapindex>"#
    );
    let header = read(&text).header.unwrap();
    assert_eq!(header.capability, Some(Capability::ChangeList));
    assert!(header.is_index());
}

#[test]
fn camel_case_relation_is_found_under_its_right_name() {
    let reading = read(&entry(r#"<rs:ln rel="describedBy" href="http://e.org/2"/>"#));
    assert_eq!(reading.entries[0].link("describedby").unwrap().href, "http://e.org/2");
}

#[test]
fn changes_at_one_instant_or_in_order_are_no_quirk() {
    let reading =
        read(&changes(&["2013-01-02T00:00:00Z", "2013-01-02T01:00:00+01:00", "2013-01-02T00:00:01Z"]));
    assert!(reading.summary.quirks.is_empty(), "{:?}", reading.summary.quirks);
}

#[test]
fn lastmod_is_the_time_of_a_change_when_there_is_no_other() {
    let reading = read(&change_list(
        r#"<url><loc>http://e.org/1</loc><lastmod>2013-01-02T00:00:00Z</lastmod><rs:md change="updated"/></url>"#,
    ));
    assert_eq!(reading.entries[0].change_time().unwrap().to_string(), "2013-01-02T00:00:00Z");
    assert_eq!(reading.count(Quirk::NoChangeTime), 0);
}

#[test]
fn further_capabilities_and_entries_of_a_source_description_without_one_are_no_fault() {
    let entries = r#"<url><loc>http://e.org/a</loc><rs:md capability="resourcelist-history"/></url>"#;
    let reading = read(&urlset(&format!(r#"<rs:md capability="capabilitylist"/>{entries}"#)));
    assert_eq!(reading.count(Quirk::UnknownCapability), 1);
    assert!(!reading.summary.quirks.casts_doubt());
    let reading = read(&urlset(&format!(r#"<rs:md capability="description"/>{ONE}"#)));
    assert!(reading.summary.quirks.is_empty(), "{:?}", reading.summary.quirks);
}

/// ARC-1 and ARC-2.
#[test]
fn archives_are_known_and_their_intervals_may_be_as_they_like() {
    let archive = r#"<url><loc>http://e.org/a</loc><rs:md capability="changelist-archive"/></url>"#;
    let again = archive.replace("/a<", "/b<");
    let reading = read(&urlset(&format!(r#"<rs:md capability="capabilitylist"/>{archive}{again}"#)));
    assert!(reading.summary.quirks.is_empty(), "{:?}", reading.summary.quirks);
    let entry =
        |name: &str, times: &str| format!("<url><loc>http://e.org/{name}</loc><rs:md {times}/></url>");
    let changes = [
        entry("2", r#"from="2013-01-02T00:00:00Z" until="2013-01-03T00:00:00Z""#),
        entry("1", r#"from="2013-01-01T00:00:00Z" until="2013-01-02T12:00:00Z""#),
    ];
    for (capability, entries) in [
        ("changelist-archive", changes.concat()),
        ("changedump-archive", changes.concat()),
        ("resourcelist-archive", entry("3", r#"at="2013-01-03T00:00:00Z""#)),
        ("resourcedump-archive", entry("4", r#"at="2013-01-03T00:00:00Z" completed="2013-01-04T00:00:00Z""#)),
    ] {
        let reading = read(&urlset(&format!(r#"<rs:md capability="{capability}"/>{entries}"#)));
        assert!(reading.summary.quirks.is_empty(), "{capability}: {:?}", reading.summary.quirks);
        assert!(reading.entries.iter().all(|entry| !entry.metadata.is_empty()));
    }
}

#[test]
fn a_lastmod_is_in_no_order_and_before_its_document_it_says_nothing_of_the_change() {
    let dated = |time: &str| {
        format!("<url><loc>http://e.org/1</loc><lastmod>{time}</lastmod><rs:md change=\"updated\"/></url>")
    };
    let within = ["2013-01-02T12:00:00Z", "2013-01-02T06:00:00Z", "2013-01-02T09:00:00Z"].map(dated);
    let reading = read(&change_list(&within.concat()));
    assert!(reading.summary.quirks.is_empty(), "{:?}", reading.summary.quirks);
    let before = [dated("2013-01-02T12:00:00Z"), dated("2000-01-01T00:00:00Z")].concat();
    let reading = read(&change_list(&before));
    assert_eq!((reading.count(Quirk::OutOfOrder), reading.count(Quirk::NoChangeTime)), (0, 1));
}

#[test]
fn foreign_elements_and_attributes_are_ignored() {
    let reading = read(&resource_list(
        r#"<x:note xmlns:x="urn:x"><url><loc>http://e.org/no</loc></url></x:note>
        <url xmlns:x="urn:x"><loc>http://e.org/1</loc><x:loc>http://e.org/no</x:loc>
        <rs:md length="5" x:length="6" unknown="7"/><x:a><x:b/></x:a></url>"#,
    ));
    assert_eq!(reading.locs(), ["http://e.org/1"]);
    assert_eq!(reading.entries[0].metadata.length, Some(5));
}

#[test]
fn namespace_declared_on_the_element_itself_is_known_there_and_only_there() {
    let reading = read(
        r#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
        <r:md xmlns:r="http://www.openarchives.org/rs/terms/" capability="resourcelist" at="2013-01-03"/>
        <url><loc>http://e.org/1</loc><r:md xmlns:r="http://www.openarchives.org/rs/terms/" length="5"/></url>
        <url><loc>http://e.org/2</loc><r:md length="5"/></url></urlset>"#,
    );
    let lengths: Vec<_> = reading.entries.iter().map(|entry| entry.metadata.length).collect();
    assert_eq!(lengths, [Some(5), None]);
    assert_eq!(reading.header.unwrap().capability, Some(Capability::ResourceList));
}

#[test]
fn second_document_of_gzip_members_is_read_as_one() {
    let text = resource_list(ONE);
    let (head, tail) = text.as_bytes().split_at(60);
    let reading = read_with(&[gzip(head), gzip(tail)].concat()[..], Options::default());
    assert_eq!(reading.entries.len(), 1);
    assert!(reading.summary.complete);
}

#[test]
fn relative_references_are_resolved_against_the_base() {
    let base = Some("http://e.org/sets/1/list.xml".parse().unwrap());
    let text = resource_list(
        r#"<rs:ln rel="up" href="../caps.xml"/><url><loc>a b</loc><rs:ln rel="via" href="//o.org/x"/></url>"#,
    );
    let reading = read_with(text.as_bytes(), Options { base, ..Options::default() });
    assert_eq!(reading.locs(), ["http://e.org/sets/1/a%20b"]);
    assert_eq!(reading.entries[0].links[0].href, "http://o.org/x");
    assert_eq!(reading.header.unwrap().links[0].href, "http://e.org/sets/caps.xml");
    assert_eq!(reading.summary.quirks.count(Quirk::RelativeUri), 3);
}

#[test]
fn documents_serialise_without_what_they_do_not_say() {
    let reading = read(&change_list(&change(
        "1",
        r#"change="updated" datetime="2013-01-02T00:00:00Z" type="text/html""#,
    )));
    assert_eq!(
        to_json(&reading.header.unwrap()),
        r#"{"root":"urlset","capability":"changelist","from":"2013-01-01T00:00:00Z"}"#
    );
    let line = to_json(&reading.entries[0]);
    assert!(
        line.starts_with(
            r#"{"loc":"http://e.org/1","change":"updated","datetime":"2013-01-02T00:00:00Z","type":"text/html","position":{"line":1,"#
        ),
        "{line}"
    );
    assert_eq!(to_json(&reading.summary), r#"{"entries":1,"bad":0,"complete":true,"quirks":{}}"#);
}

fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

#[test]
fn only_a_copy_with_another_digest_or_length_contradicts_its_entry() {
    let contradictions = |rel: &str, own: &str, linked: &str| {
        let link = format!(r#"<rs:ln rel="{rel}" href="http://e.org/2" {linked}/>"#);
        let reading = read(&entry(&format!("<rs:md {own}/>{link}")));
        reading.count(Quirk::LinkContradicts)
    };
    let (md5, sha) = ("md5:0aB1", "sha-256:ff00");
    let hash = |hashes: &str| format!(r#"hash="{hashes}""#);
    for (own, linked, count) in [
        (hash(md5), hash("md5:0Ab1"), 0),
        (hash(md5), hash("MD5:1234"), 1),
        (hash(md5), hash(sha), 0),
        (hash(&format!("{md5} {sha}")), hash("sha-256:00ff"), 1),
        (hash("nonsense"), hash("md5:1"), 0),
        (r#"length="3""#.to_owned(), r#"length="3""#.to_owned(), 0),
        (r#"length="3""#.to_owned(), r#"length="4""#.to_owned(), 1),
        (r#"type="a/b""#.to_owned(), r#"length="4""#.to_owned(), 0),
    ] {
        assert_eq!(contradictions("duplicate", &own, &linked), count, "{own} {linked}");
        assert_eq!(contradictions("alternate", &own, &linked), 0, "another resource: {own} {linked}");
    }
}
