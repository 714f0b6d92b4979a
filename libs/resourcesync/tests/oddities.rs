//! Odd documents of real sources, one test per deviation, named after its number. Each test checks every
//! entry, the counted quirks, and that strict mode refuses the document, with the position.
//!
//! Missing numbers only appear across documents or in a server's responses. Harvests of all of them are
//! tested with the command line, in its own tests of the same names.

mod common;

use common::{NAMESPACES, Reading, change, change_list, gzip, read, read_with, resource_list, urlset};
use resourcesync::{Capability, Mode, Options, Quirk, ReadError, Zone};

/// Every entry was returned and the document's end was reached.
#[track_caller]
fn whole(document: &str, entries: usize) -> Reading {
    let reading = read(document);
    assert!(reading.error.is_none() && reading.summary.complete, "{:?}", reading.error);
    assert!(reading.bad.is_empty(), "{:?}", reading.bad);
    assert_eq!(reading.entries.len(), entries);
    reading
}

/// Exactly these quirks were counted, this often.
#[track_caller]
fn counted(reading: &Reading, expected: &[(Quirk, u64)]) {
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(reading.summary.quirks.iter().collect::<Vec<_>>(), expected);
}

/// Strict mode refuses the document for this quirk, with its position.
#[track_caller]
fn refused_for(document: &str, quirk: Quirk) {
    let strict = read_with(document.as_bytes(), Options { mode: Mode::Strict, ..Options::default() });
    match strict.error {
        Some(ReadError::Quirk { quirk: found, position }) => {
            assert_eq!(found, quirk, "{position}");
            assert!(position.line >= 1 && position.column >= 1);
        }
        other => panic!("{other:?}"),
    }
}

fn times(reading: &Reading) -> Vec<String> {
    reading.entries.iter().filter_map(|entry| entry.change_time()).map(|time| time.to_string()).collect()
}

#[test]
fn oddity_01_change_list_of_dump_packages_without_change_or_time() {
    let document = change_list(&format!(
        "{}{}",
        change("2020-06-01.tar.xz", r#"length="2312""#),
        change("2020-06-02.tar.xz", r#"length="4101""#)
    ));
    let reading = whole(&document, 2);
    assert!(reading.entries.iter().all(|entry| entry.metadata.change.is_none()), "no change is invented");
    assert!(reading.entries.iter().all(|entry| entry.change_time().is_none()), "no time is invented");
    assert!(reading.header.as_ref().unwrap().link("up").is_none());
    counted(&reading, &[(Quirk::PackageInChangeList, 2)]);
    assert!(reading.summary.quirks.casts_doubt());
    refused_for(&document, Quirk::PackageInChangeList);
}

#[test]
fn oddity_02_packages_are_xz_archives_of_many_gigabytes() {
    let package = r#"type="application/x-xz" length="37000000000""#;
    let listed = whole(&change_list(&change("all?format=xz", package)), 1);
    assert_eq!(listed.entries[0].metadata.length, Some(37_000_000_000));
    counted(&listed, &[(Quirk::PackageInChangeList, 1)]);
    let dump =
        urlset(&format!(r#"<rs:md capability="resourcedump" at="2020"/>{}"#, change("all.tar.xz", package)));
    let dumped = whole(&dump, 1);
    assert_eq!(dumped.entries[0].metadata.media_type.as_deref(), Some("application/x-xz"));
    counted(&dumped, &[]);
}

#[test]
fn oddity_03_times_without_zone_with_microseconds_or_a_space() {
    let document = change_list(
        &["2020-03-18 01:20:10", "2020-06-02T00:00:00", "2020-06-02T20:36:26.441694"]
            .map(|time| change("1", &format!(r#"change="updated" datetime="{time}""#)))
            .concat(),
    );
    let reading = whole(&document, 3);
    assert_eq!(
        times(&reading),
        ["2020-03-18T01:20:10Z", "2020-06-02T00:00:00Z", "2020-06-02T20:36:26.441694Z"]
    );
    assert!(reading.entries.iter().all(|entry| entry.change_time().unwrap().zone() == Zone::Missing));
    counted(&reading, &[(Quirk::ZoneLessTime, 3), (Quirk::SpaceForT, 1)]);
    assert!(reading.summary.quirks.casts_doubt());
    refused_for(&document, Quirk::ZoneLessTime);
}

#[test]
fn oddity_04_packages_out_of_order_with_overlapping_and_empty_intervals() {
    let document = change_list(
        &[
            ("week.tar.xz", "2020-06-01T00:00:00Z", "2020-06-08T00:00:00Z"),
            ("day.tar.xz", "2020-06-03T00:00:00Z", "2020-06-04T00:00:00Z"),
            ("none.tar.xz", "2020-06-02T00:00:00Z", "2020-06-02T00:00:00Z"),
        ]
        .map(|(name, from, until)| change(name, &format!(r#"from="{from}" until="{until}""#)))
        .concat(),
    );
    let reading = whole(&document, 3);
    counted(
        &reading,
        &[
            (Quirk::PackageInChangeList, 3),
            (Quirk::OverlappingIntervals, 2),
            (Quirk::EmptyInterval, 1),
            (Quirk::OutOfOrder, 1),
        ],
    );
}

#[test]
fn oddity_05_colons_and_doubly_encoded_names_in_uris_are_kept_as_written() {
    let uris = ["http://e.org/oai:e.org:1:2.pdf", "http://e.org/aHR0cDovL2Uub3JnLzE%3D%3D.pdf"];
    let entries = uris.map(|uri| format!(r#"<url><loc>{uri}</loc><rs:md length="5"/></url>"#)).concat();
    let reading = whole(&resource_list(&entries), 2);
    assert_eq!(reading.locs(), uris);
    counted(&reading, &[]);
}

#[test]
fn oddity_06_blanks_round_loc_camel_case_relations_and_paths_with_a_slash() {
    let document = urlset(
        r#"<rs:md capability="resourcedump-manifest" at="2020-06-01"/>
        <url><loc>
            http://e.org/1
        </loc><rs:md path="/57d/1.pdf"/><rs:ln rel="describedBy" href="http://e.org/1.json" path="57d/1.json"/></url>"#,
    );
    let reading = whole(&document, 1);
    let entry = &reading.entries[0];
    assert_eq!(reading.header.as_ref().unwrap().capability, Some(Capability::ResourceDumpManifest));
    assert_eq!((entry.loc.as_str(), entry.metadata.path.as_deref()), ("http://e.org/1", Some("/57d/1.pdf")));
    assert_eq!(entry.link("describedby").unwrap().path.as_deref(), Some("57d/1.json"));
    counted(&reading, &[(Quirk::WhitespaceInLoc, 1), (Quirk::RelationCase, 1)]);
}

#[test]
fn oddity_07_change_list_sorted_newest_first() {
    let document = change_list(
        &["2020-06-03", "2020-06-02", "2020-06-01"]
            .map(|day| change(day, &format!(r#"change="updated" datetime="{day}T00:00:00Z""#)))
            .concat(),
    );
    let reading = whole(&document, 3);
    assert_eq!(
        reading.locs(),
        ["http://e.org/2020-06-03", "http://e.org/2020-06-02", "http://e.org/2020-06-01"]
    );
    counted(&reading, &[(Quirk::OutOfOrder, 2), (Quirk::NewestFirst, 1)]);
    assert!(reading.summary.quirks.casts_doubt());
}

#[test]
fn oddity_08_open_change_list_whose_times_stand_in_lastmod() {
    let document = urlset(
        r#"<rs:md capability="changelist" from="2020-06-01T00:00:00Z"/>
        <url><loc>http://e.org/1</loc><lastmod>2020-06-01T00:00:00Z</lastmod><rs:md change="created"/></url>"#,
    );
    let reading = whole(&document, 1);
    let header = reading.header.as_ref().unwrap();
    assert_eq!((header.from, header.until), ("2020-06-01T00:00:00Z".parse().ok(), None));
    assert_eq!(reading.entries[0].metadata.datetime, None);
    assert_eq!(times(&reading), ["2020-06-01T00:00:00Z"]);
    counted(&reading, &[]);
    let timeless = whole(&change_list(&change("1", r#"change="created""#)), 1);
    assert_eq!(timeless.entries[0].change_time(), None);
    counted(&timeless, &[(Quirk::NoChangeTime, 1)]);
}

#[test]
fn oddity_13_more_than_fifty_thousand_entries_in_one_file() {
    let document = |entries: u32| {
        resource_list(&(0..entries).map(|n| change(&n.to_string(), "length='5'")).collect::<String>())
    };
    counted(&whole(&document(50_000), 50_000), &[]);
    let more = document(50_003);
    counted(&whole(&more, 50_003), &[(Quirk::TooManyEntries, 1)]);
    refused_for(&more, Quirk::TooManyEntries);
}

#[test]
fn oddity_14_metadata_before_loc() {
    let reading = whole(&resource_list(r#"<url><rs:md length="5"/><loc>http://e.org/1</loc></url>"#), 1);
    assert_eq!(reading.entries[0].metadata.length, Some(5));
    counted(&reading, &[(Quirk::MetadataBeforeLoc, 1)]);
}

#[test]
fn oddity_15_deltas_and_files_of_deletions_in_a_resource_list_are_resources_like_others() {
    let entries =
        ["full.xml.gz", "delta-1.xml.gz", "deletes-1.del.txt"].map(|name| change(name, "length='5'"));
    let reading = whole(&resource_list(&entries.concat()), 3);
    assert!(reading.entries.iter().all(|entry| entry.metadata.change.is_none()), "no deletion is invented");
    counted(&reading, &[]);
}

#[test]
fn oddity_16_entries_with_no_metadata_at_all() {
    let reading = whole(&resource_list("<url><loc>http://e.org/1.xml</loc></url>"), 1);
    assert!(reading.entries[0].metadata.is_empty());
    counted(&reading, &[(Quirk::EntryWithoutMetadata, 1)]);
}

#[test]
fn oddity_17_urlset_used_as_index() {
    let part = change("part1.xml", r#"capability="resourcelist" at="2020-06-01T00:00:00Z""#);
    let document = resource_list(&part);
    let reading = whole(&document, 1);
    assert!(!reading.header.as_ref().unwrap().is_index(), "only the root element makes an index");
    assert_eq!(reading.entries[0].metadata.capability, Some(Capability::ResourceList));
    counted(&reading, &[(Quirk::UrlsetAsIndex, 1)]);
    assert!(reading.summary.quirks.casts_doubt());
    refused_for(&document, Quirk::UrlsetAsIndex);

    let changes = whole(&change_list(&change("day1.xml", r#"from="2020-06-01" until="2020-06-02""#)), 1);
    assert_eq!(changes.entries[0].metadata.change, None);
    counted(&changes, &[(Quirk::UrlsetAsIndex, 1)]);

    let url_in_index = format!(
        r#"<sitemapindex {NAMESPACES}><rs:md capability="resourcelist" at="2020-06-01"/>{part}</sitemapindex>"#
    );
    counted(&whole(&url_in_index, 1), &[(Quirk::WrongEntryElement, 1)]);
}

#[test]
fn oddity_20_several_resource_lists_in_one_capability_list() {
    let list = |entries: [(&str, &str); 3]| {
        let entries = entries.map(|(name, kind)| change(name, &format!(r#"capability="{kind}""#)));
        urlset(&format!(r#"<rs:md capability="capabilitylist"/>{}"#, entries.concat()))
    };
    let document = list([("1.xml", "resourcelist"), ("2.xml", "changelist"), ("3.xml", "resourcelist")]);
    let reading = whole(&document, 3);
    assert_eq!(reading.locs(), ["http://e.org/1.xml", "http://e.org/2.xml", "http://e.org/3.xml"]);
    counted(&reading, &[(Quirk::RepeatedCapability, 1)]);
    assert!(!reading.summary.quirks.casts_doubt(), "nothing is unclear: all of them together are the set's");
    refused_for(&document, Quirk::RepeatedCapability);
    let once = list([("1.xml", "resourcelist"), ("2.xml", "changelist"), ("3.xml", "resourcedump")]);
    counted(&whole(&once, 3), &[]);
    let description =
        document.replace("capabilitylist", "description").replace("resourcelist", "capabilitylist");
    counted(&whole(&description.replace("changelist", "capabilitylist"), 3), &[]);
}

#[test]
fn oddity_21_dump_of_one_package_for_each_record() {
    let packages: String =
        (0..100).map(|n| change(&format!("{n}.zip"), r#"type="application/zip" length="900""#)).collect();
    let document = urlset(&format!(r#"<rs:md capability="resourcedump" at="2020-06-01"/>{packages}"#));
    counted(&whole(&document, 100), &[]);
}

#[test]
fn oddity_23_digest_under_another_algorithms_name_is_kept_as_written() {
    let hash = "sha-256:1584abdf8ebdc9802ac0c6a7402c03b6";
    let reading = whole(&resource_list(&change("1", &format!("hash='{hash}'"))), 1);
    assert_eq!(reading.entries[0].metadata.hash.as_deref(), Some(hash));
    counted(&reading, &[]);
}

#[test]
fn oddity_27_capability_named_changelistindex() {
    let document = format!(
        r#"<sitemapindex {NAMESPACES}><rs:md capability="changelistindex" from="2020-06-01"/>
        <sitemap><loc>http://e.org/1.xml</loc><rs:md from="2020-06-01" until="2020-06-02"/></sitemap></sitemapindex>"#
    );
    let reading = whole(&document, 1);
    let header = reading.header.as_ref().unwrap();
    assert_eq!((header.capability.as_ref(), header.is_index()), (Some(&Capability::ChangeList), true));
    counted(&reading, &[(Quirk::OddCapabilityName, 1)]);
    refused_for(&document, Quirk::OddCapabilityName);
    let listed = change("index.xml", r#"capability="changelistindex""#);
    let list = whole(&urlset(&format!(r#"<rs:md capability="capabilitylist"/>{listed}"#)), 1);
    assert_eq!(list.entries[0].metadata.capability, Some(Capability::ChangeList));
    counted(&list, &[(Quirk::OddCapabilityName, 1)]);
}

#[test]
fn oddity_28_empty_describedby_links() {
    let links = r#"<rs:ln rel="describedby" href=""/><rs:ln rel="describedby"/><rs:ln rel="up" href="http://e.org/c"/>"#;
    let document = urlset(&format!(
        r#"{links}<rs:md capability="resourcelist" at="2020"/><url><loc>http://e.org/1</loc>{links}</url>"#
    ));
    let reading = whole(&document, 1);
    assert_eq!(reading.header.as_ref().unwrap().links.len(), 1);
    assert_eq!(reading.entries[0].links.len(), 1);
    counted(&reading, &[(Quirk::LinkWithoutTarget, 4), (Quirk::EmptyValue, 2)]);
}

#[test]
fn oddity_29_digests_in_base64_or_of_odd_length_are_kept_as_written() {
    let hashes = ["md5:kAFQmDzST7DWlj99KOF/cg==", "sha-256:h986gT_t_87HTkjHYE76G558hY-jdfgy76t55sadJUYT"];
    let entries: String =
        hashes.iter().zip(["1", "2"]).map(|(hash, name)| change(name, &format!("hash='{hash}'"))).collect();
    let reading = whole(&resource_list(&entries), 2);
    let read: Vec<_> = reading.entries.iter().filter_map(|entry| entry.metadata.hash.as_deref()).collect();
    assert_eq!(read, hashes);
    counted(&reading, &[]);
}

#[test]
fn oddity_30_urn_digests_relative_targets_and_unknown_relations() {
    let document = resource_list(
        r#"<url><loc>http://e.org/sets/1</loc><rs:md hash="urn:sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5"/>
        <rs:ln rel="content" href="files/1.pdf"/></url>"#,
    );
    let unresolved = whole(&document, 1);
    assert_eq!(unresolved.entries[0].link("content").unwrap().href, "files/1.pdf");
    counted(&unresolved, &[(Quirk::RelativeUri, 1)]);
    let base = Some("http://e.org/sets/list.xml".parse().unwrap());
    let reading = read_with(document.as_bytes(), Options { base, ..Options::default() });
    let entry = &reading.entries[0];
    assert_eq!(entry.link("content").unwrap().href, "http://e.org/sets/files/1.pdf");
    assert_eq!(entry.metadata.hash.as_deref(), Some("urn:sha1:VGMT4NSHA2AWVOR6EVYXQUGCNSONBWE5"));
    counted(&reading, &[(Quirk::RelativeUri, 1)]);
}

#[test]
fn oddity_31_offset_in_at_unclosed_links_and_lists_without_any_metadata() {
    let offset = urlset(r#"<rs:md capability="resourcelist" at="2020-06-01T01:00:00+01:00"/>"#);
    let reading = whole(&offset, 0);
    assert_eq!(reading.header.as_ref().unwrap().at, "2020-06-01T00:00:00Z".parse().ok());
    counted(&reading, &[]);

    let unclosed = format!(
        "<urlset {NAMESPACES}>\n  <rs:md capability=\"resourcelist\" at=\"2020\"/>\n  <rs:ln rel=\"up\" href=\"http://e.org/c\">\n  {}\n</urlset>",
        change("1", "length='5'")
    );
    let error = read(&unclosed).error.unwrap();
    assert!(matches!(error, ReadError::Malformed { .. }), "{error:?}");
    assert_eq!((error.position().line, error.position().column), (5, 1));
    assert!(error.to_string().contains("</rs:ln>"), "{error}");
    let in_entry = resource_list(&format!(
        "{}\n<url><loc>http://e.org/2</loc><rs:ln rel=\"via\" href=\"http://e.org/3\"></url>",
        change("1", "length='5'")
    ));
    let reading = read(&in_entry);
    assert_eq!(reading.locs(), ["http://e.org/1"], "what stands before it stays valid");
    let error = reading.error.unwrap();
    assert!(matches!(error, ReadError::Malformed { .. }), "{error:?}");
    assert_eq!(error.position().line, 2);

    let plain = r#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://e.org/1</loc></url></urlset>"#;
    let reading = whole(plain, 1);
    assert_eq!(reading.header.as_ref().unwrap().capability, None);
    counted(&reading, &[(Quirk::NoCapability, 1)]);
    assert!(reading.summary.quirks.casts_doubt());
}

#[test]
fn oddity_32_change_file_named_by_a_link_and_list_of_one_virtual_file() {
    let document = resource_list(
        r#"<url><loc>http://e.org/dataset.nq</loc><rs:md type="application/n-quads"/>
        <rs:ln rel="describedby" href="http://e.org/changes.nqud"/></url>"#,
    );
    let reading = whole(&document, 1);
    assert_eq!(reading.entries[0].links[0].href, "http://e.org/changes.nqud");
    assert_eq!(reading.entries[0].metadata.length, None);
    counted(&reading, &[]);
}

#[test]
fn oddity_33_newline_or_byte_order_mark_before_the_prolog() {
    let list = resource_list(&change("1", "length='5'"));
    let blank = format!("\r\n<?xml version=\"1.0\" encoding=\"UTF-8\"?>{list}");
    counted(&whole(&blank, 1), &[(Quirk::BlankBeforeProlog, 1)]);
    refused_for(&blank, Quirk::BlankBeforeProlog);
    counted(&whole(&format!("\u{feff}{list}"), 1), &[(Quirk::ByteOrderMark, 1)]);
    let both = format!("\u{feff}{blank}");
    counted(&whole(&both, 1), &[(Quirk::ByteOrderMark, 1), (Quirk::BlankBeforeProlog, 1)]);
}

#[test]
fn oddity_34_gzip_under_any_name_is_told_by_its_bytes() {
    let reading =
        read_with(&gzip(resource_list(&change("1", "length='5'")).as_bytes())[..], Options::default());
    assert_eq!(reading.locs(), ["http://e.org/1"]);
    counted(&reading, &[(Quirk::Gzip, 1)]);
}

#[test]
fn oddity_35_sitemap_namespace_misspelt_missing_prefixed_or_old() {
    let right = "http://www.sitemaps.org/schemas/sitemap/0.9";
    let list = resource_list(&change("1", "length='5'"));
    for odd in [
        "https://www.sitemaps.org/schemas/sitemap/0.9",
        "http://www.sitemaps.org/schemas/sitemap/0.9/",
        "http://www.google.com/schemas/sitemap/0.84",
    ] {
        let reading = whole(&list.replace(right, odd), 1);
        assert_eq!(reading.entries[0].metadata.length, Some(5), "{odd}");
        counted(&reading, &[(Quirk::OddSitemapNamespace, 1)]);
    }
    let missing = list.replace(&format!("xmlns=\"{right}\""), "");
    counted(&whole(&missing, 1), &[(Quirk::MissingSitemapNamespace, 1)]);
    let prefixed = list
        .replace("xmlns=", "xmlns:sit=")
        .replace("urlset", "sit:urlset")
        .replace("url>", "sit:url>")
        .replace("loc>", "sit:loc>");
    counted(&whole(&prefixed, 1), &[(Quirk::PrefixedSitemapNamespace, 1)]);
}

#[test]
fn oddity_36_loc_of_another_vocabulary_is_not_the_entrys() {
    let reading = whole(
        &resource_list(
            r#"<url xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"><loc>http://e.org/1</loc>
            <rs:md length="5"/><image:image><image:loc>http://e.org/1.png</image:loc></image:image></url>"#,
        ),
        1,
    );
    assert_eq!(reading.locs(), ["http://e.org/1"]);
    counted(&reading, &[(Quirk::ForeignLoc, 1)]);
}

#[test]
fn oddity_37_truncated_file_gives_its_whole_entries_and_is_not_complete() {
    let list = resource_list(&format!("{}\n{}", change("1", "length='5'"), change("2", "length='5'")));
    let reading = read(&list[..list.len() - 30]);
    assert_eq!(reading.locs(), ["http://e.org/1"]);
    assert!(!reading.summary.complete, "nothing may be concluded from what is absent");
    let error = reading.error.unwrap();
    assert!(matches!(error, ReadError::Truncated { .. }), "{error:?}");
    assert_eq!(error.position().line, 2);
}

#[test]
fn oddity_38_web_page_instead_of_a_list() {
    for page in [
        "<!DOCTYPE html>\n<html><body><h1>Moved</h1></body></html>",
        "<html><head><meta http-equiv=refresh content=0></head></html>",
    ] {
        let reading = read(page);
        assert!(matches!(reading.error, Some(ReadError::Html { .. })), "{:?}", reading.error);
        assert!(!reading.summary.complete && reading.entries.is_empty());
    }
}
