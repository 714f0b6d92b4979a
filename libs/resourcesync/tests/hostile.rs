//! Hostile documents: they must not make the reader use much memory, guess, lose good entries, or fail
//! without a position.

mod common;

use std::io::{self, Read};

use common::{NAMESPACES, Reading, change, change_list, gzip, read, read_with, resource_list, urlset};
use resourcesync::{BadReason, LimitKind, Limits, Options, Quirk, ReadError, Reader};

const GOOD: &str = "<url><loc>http://e.org/good</loc></url>";

fn limited(document: impl Read, change: impl FnOnce(&mut Limits)) -> Reading {
    let mut options = Options::default();
    change(&mut options.limits);
    read_with(document, options)
}

fn limit(reading: &Reading) -> LimitKind {
    match &reading.error {
        Some(ReadError::Limit { limit, .. }) => *limit,
        other => panic!("expected a limit, got {other:?}"),
    }
}

/// The reason of the first entry, between two good ones that must be read all the same.
fn reason(document: impl Fn(&str) -> String, entry: &str) -> BadReason {
    let reading = read(&document(&format!("{GOOD}{entry}{GOOD}")));
    assert!(reading.error.is_none(), "{:?}", reading.error);
    assert_eq!(reading.locs(), ["http://e.org/good"; 2]);
    assert_eq!(reading.bad.len(), 1);
    reading.bad[0].reason.clone()
}

fn in_resource_list(content: &str) -> BadReason {
    reason(resource_list, &format!("<url>{content}</url>"))
}

/// A head, then one endless text.
fn endless(head: &str, repeated: &'static [u8]) -> impl Read {
    struct Repeat(&'static [u8], usize);
    impl Read for Repeat {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            for byte in buf.iter_mut() {
                *byte = self.0[self.1 % self.0.len()];
                self.1 += 1;
            }
            Ok(buf.len())
        }
    }
    io::Cursor::new(head.as_bytes().to_vec()).chain(Repeat(repeated, 0))
}

fn opened(content: &str) -> String {
    format!("<urlset {NAMESPACES}>{GOOD}{content}")
}

#[test]
fn endless_pieces_end_at_the_event_limit() {
    for (content, repeated) in [
        ("<url><loc>http://e.org/", &b"a"[..]),
        ("<!--", b"-"),
        ("<url><loc><![CDATA[", b"a"),
        ("<", b"a"),
        ("<url ", b"a='' "),
        ("<url a='", b"a"),
        ("<?pi ", b"a"),
        ("</", b"a"),
        ("&", b"a"),
        ("", b"\n"),
        ("<!DOCTYPE a [", b"<!ENTITY a 'b'>"),
    ] {
        let reading = limited(endless(&opened(content), repeated), |limits| limits.max_event_bytes = 100_000);
        assert_eq!(limit(&reading), LimitKind::EventBytes(100_000), "{content}");
        assert_eq!(reading.locs(), ["http://e.org/good"], "{content}");
    }
}

#[test]
fn event_limit_holds_to_the_byte() {
    let text = urlset(&format!("<!-- {} -->", "0123456789".repeat(20)));
    let length = text.find("-->").unwrap() + 3 - text.find("<!--").unwrap();
    let reading = |max| limited(text.as_bytes(), |limits| limits.max_event_bytes = max as u64);
    assert!(reading(length).error.is_none());
    assert_eq!(limit(&reading(length - 1)), LimitKind::EventBytes(length as u64 - 1));
}

#[test]
fn endless_depth_ends_at_its_limit() {
    let reading = read_with(endless(&opened(""), b"<a>"), Options::default());
    assert_eq!(limit(&reading), LimitKind::Depth(32));
}

#[test]
fn endless_header_ends_at_its_limit() {
    let head = format!("<urlset {NAMESPACES}>");
    let reading = read_with(endless(&head, b"<rs:ln rel='up' href='http://e.org/'/>"), Options::default());
    assert_eq!(limit(&reading), LimitKind::Links(1_000));
    let reading = limited(endless(&head, b"<rs:ln rel='up' href='http://e.org/'/>"), |limits| {
        limits.max_entry_bytes = 1_000;
    });
    assert_eq!(limit(&reading), LimitKind::HeaderBytes(1_000));
}

#[test]
fn what_inflates_beyond_the_ratio_ends_the_reading() {
    let document = resource_list(&GOOD.repeat(20_000));
    let compressed = gzip(document.as_bytes());
    let ratio = document.len() as u64 / compressed.len() as u64;
    let under = |most: u64, floor: u64| {
        limited(compressed.as_slice(), |limits| {
            limits.max_inflation = most;
            limits.inflation_floor_bytes = floor;
        })
    };
    assert!(under(ratio + 1, 0).error.is_none(), "an honest list");
    assert!(under(2, document.len() as u64).error.is_none(), "too small to do harm");
    let reading = under(ratio / 2, 100_000);
    assert_eq!(limit(&reading), LimitKind::Inflation(ratio / 2));
    assert!(!reading.summary.complete);
    let plain = limited(document.as_bytes(), |limits| limits.max_inflation = 0);
    assert!(plain.error.is_none(), "what is not compressed does not inflate");
}

#[test]
fn document_limit_counts_decompressed_bytes() {
    let document = resource_list(&GOOD.repeat(1_000));
    let exact =
        |max: usize, bytes: &[u8]| limited(bytes, |limits| limits.max_document_bytes = Some(max as u64));
    assert!(exact(document.len(), document.as_bytes()).error.is_none());
    let reading = exact(10_000, &gzip(document.as_bytes()));
    assert_eq!(limit(&reading), LimitKind::DocumentBytes(10_000));
    assert!(reading.entries.len() > 100 && !reading.summary.complete);
}

#[test]
fn attributes_of_the_root_are_limited() {
    let many: String = (0..65).map(|n| format!(" a{n}=''")).collect();
    assert_eq!(limit(&read(&format!("<urlset{many}></urlset>"))), LimitKind::Attributes(64));
}

#[test]
fn bad_entries_tell_their_reason_and_lose_nothing_else() {
    assert_eq!(in_resource_list("<lastmod>2013</lastmod>"), BadReason::NoLoc);
    assert_eq!(in_resource_list("<loc> </loc>"), BadReason::NoLoc);
    assert_eq!(
        in_resource_list("<loc>http://e.org/1</loc><loc>http://e.org/2</loc>"),
        BadReason::SeveralLocs
    );
    assert_eq!(
        in_resource_list("<loc>http://e.org/1</loc><rs:md length='1'/><rs:md length='2'/>"),
        BadReason::Conflict { field: "length" }
    );
    assert_eq!(
        in_resource_list("<loc>http://e.org/<b>1</b></loc>"),
        BadReason::MarkupInField { field: "loc" }
    );
    for forbidden in ["&#0;", "&#xFFFE;", "&#65535;", "\u{fffe}", "\u{ffff}"] {
        let loc = format!("<loc>http://e.org/{forbidden}</loc>");
        assert_eq!(in_resource_list(&loc), BadReason::NotText { field: "loc" }, "{forbidden:?}");
        let link = format!("<loc>http://e.org/1</loc><rs:ln rel='license' href='http://e.org/{forbidden}'/>");
        assert_eq!(in_resource_list(&link), BadReason::NotText { field: "href" }, "{forbidden:?}");
    }
    for character in ['\t', '\n', '\r', '\u{7f}', '\u{9b}', '\u{202e}', '\u{2067}'] {
        let loc = format!("<loc>http://e.org/&#{};x</loc>", u32::from(character));
        assert_eq!(in_resource_list(&loc), BadReason::ControlCharacter { character });
    }
    assert_eq!(
        in_resource_list("<loc>http://e.org/\u{9b}x</loc>"),
        BadReason::ControlCharacter { character: '\u{9b}' }
    );
    assert!(matches!(
        in_resource_list("<loc>http://e.org/1</loc><rs:md length=5/>"),
        BadReason::Attribute { .. }
    ));
    assert!(matches!(
        in_resource_list("<loc>http://e.org/1</loc><rs:md datetime='soon'/>"),
        BadReason::UnreadableTime { .. }
    ));
    assert!(matches!(
        reason(change_list, &change("1", "change='removed'")),
        BadReason::UnreadableChange { .. }
    ));
}

/// The links of an entry with this content, and how many were dropped.
fn kept_links(content: &str) -> (Vec<resourcesync::Link>, u64) {
    let document = resource_list(&format!("{GOOD}<url><loc>http://e.org/1</loc>{content}</url>{GOOD}"));
    let reading = read(&document);
    assert!(reading.error.is_none() && reading.bad.is_empty(), "{reading:?}");
    assert_eq!(reading.locs(), ["http://e.org/good", "http://e.org/1", "http://e.org/good"]);
    (reading.entries[1].links.clone(), reading.count(Quirk::LinksTruncated))
}

#[test]
fn links_beyond_a_limit_are_dropped_and_their_entry_stays_good() {
    let link = "<rs:ln rel='via' href='http://e.org/2'/>";
    let (kept, dropped) = kept_links(&link.repeat(1_001));
    let limits = Limits::default();
    let each = kept[0].size();
    assert_eq!(kept.len(), limits.max_link_bytes / each);
    assert_eq!(kept.len() as u64 + dropped, 1_001);
    let long = format!("<rs:ln rel='via' href='http://e.org/{}'/>", "a".repeat(2_048));
    let (kept, dropped) = kept_links(&format!("{link}{long}{link}"));
    assert_eq!((kept.len(), dropped), (2, 1), "a target that is too long takes only its own link along");
    let odd = format!("<rs:ln rel='via' href='http://e.org/2' x='{}' y='1'/>", "a".repeat(3_000));
    let (kept, dropped) = kept_links(&odd);
    assert_eq!((kept[0].other.keys().map(String::as_str).collect::<Vec<_>>(), dropped), (vec!["y"], 1));
}

#[test]
fn a_link_keeps_attributes_of_other_vocabularies_and_each_of_its_relations() {
    let (kept, dropped) = kept_links(
        "<rs:ln xmlns:x='http://x.test/' rel='http://x.test/score' href='http://e.org/s' x:weight='3' profile='a&amp;b' \
         empty=''/><rs:ln rel=' describedBy\n alternate' href='http://e.org/2' type='text/plain'/>",
    );
    assert_eq!(dropped, 0);
    let other: Vec<_> = kept[0].other.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(other, [("profile", "a&b"), ("x:weight", "3")]);
    let rels: Vec<_> = kept.iter().map(|link| link.rel.as_str()).collect();
    assert_eq!(rels, ["http://x.test/score", "describedby", "alternate"]);
    assert!(kept[1..].iter().all(|link| link.media_type.as_deref() == Some("text/plain")));
    let text = serde_json::to_string(&kept).unwrap();
    assert_eq!(serde_json::from_str::<Vec<resourcesync::Link>>(&text).unwrap(), kept);
}

#[test]
fn entries_beyond_a_limit_are_bad_and_keep_their_loc() {
    let loc = "<loc>http://e.org/1</loc>";
    let long = "a".repeat(40_000);
    let field = "hash";
    let limit = 32 * 1024;
    assert_eq!(
        in_resource_list(&format!("{loc}<rs:md hash='{long}'/>")),
        BadReason::FieldTooLong { field, limit }
    );
    let field = "loc";
    assert_eq!(in_resource_list(&format!("<loc>{long}</loc>")), BadReason::FieldTooLong { field, limit });
    let references = "&amp;".repeat(40_000);
    assert_eq!(
        in_resource_list(&format!("<loc>{references}</loc>")),
        BadReason::FieldTooLong { field, limit }
    );
    let attributes: String = (0..65).map(|n| format!(" a{n}=''")).collect();
    assert_eq!(
        in_resource_list(&format!("{loc}<rs:md{attributes}/>")),
        BadReason::TooManyAttributes { limit: 64 }
    );
    let comments = "<!-- -->".repeat(600_000);
    let reading = read(&resource_list(&format!("<url>{loc}{comments}</url>{GOOD}")));
    assert_eq!(reading.bad[0].reason, BadReason::EntryTooLong { limit: 4 * 1024 * 1024 });
    assert_eq!(reading.bad[0].loc.as_deref(), Some("http://e.org/1"));
    assert_eq!(reading.locs(), ["http://e.org/good"]);
}

#[test]
fn document_type_is_refused_where_it_stands() {
    let bomb = format!(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE urlset [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>{}",
        resource_list("<url><loc>&b;</loc></url>")
    );
    let error = read(&bomb).error.unwrap();
    assert!(matches!(error, ReadError::DoctypeRefused { .. }), "{error:?}");
    assert_eq!((error.position().line, error.position().column), (2, 1));
}

#[test]
fn entities_are_refused_in_text_and_attributes() {
    for content in [
        "<url><loc>http://e.org/&eacute;</loc></url>",
        "<url><loc>http://e.org/1</loc><rs:md hash='&file;'/></url>",
        "<rs:ln rel='up' href='&file;'/>",
        "<x><y>&file;</y></x>",
    ] {
        let error = read(&resource_list(content)).error.unwrap();
        assert!(matches!(error, ReadError::EntityRefused { .. }), "{content}: {error:?}");
    }
}

#[test]
fn web_pages_are_told_as_such() {
    for page in [
        "<!DOCTYPE html>\n<html><head><title>404</title></head><body><p>Not found</body></html>",
        "\n\n<html lang=en><body>Not found",
        "<!-- proxy --><HTML></HTML>",
        "<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\" \"http://www.w3.org/TR/html4/strict.dtd\"><html>",
    ] {
        let error = read(page).error.unwrap();
        assert!(matches!(error, ReadError::Html { .. }), "{page}: {error:?}");
    }
}

#[test]
fn other_things_than_xml_are_told_as_such() {
    for (bytes, told) in [
        (&b""[..], "an empty document"),
        (b" \n", "an empty document"),
        (b"{\"error\": \"unauthorized\"}", "JSON"),
        (b"Not found", "other text"),
        (b"PK\x03\x04....", "a ZIP package"),
        (b"%PDF-1.7 ...", "a PDF file"),
        (&[0xff, 0xfb, 0x90, 0x00], "other text or data"),
    ] {
        let error = read_with(bytes, Options::default()).error.unwrap();
        assert!(matches!(error, ReadError::NotXml { .. }), "{told}: {error:?}");
        assert!(error.to_string().contains(told), "{error}");
    }
}

#[test]
fn utf_16_is_refused_as_such() {
    let bytes: Vec<u8> = resource_list(GOOD).encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(matches!(read_with(&bytes[..], Options::default()).error, Some(ReadError::Encoding { .. })));
    let marked = [&[0xff, 0xfe], &bytes[..]].concat();
    assert!(matches!(read_with(&marked[..], Options::default()).error, Some(ReadError::Encoding { .. })));
}

#[test]
fn other_root_elements_are_refused_by_name() {
    for root in ["rss", "OAI-PMH", "x:urlset xmlns:x='urn:x'", "url"] {
        let error = read(&format!("<?xml version='1.0'?>\n<{root}></rss>")).error.unwrap();
        let name = root.split(' ').next().unwrap();
        assert!(matches!(&error, ReadError::UnknownRoot { name: found, .. } if found == name), "{error:?}");
    }
}

#[test]
fn truncated_document_gives_what_was_whole_and_says_where_it_ends() {
    let whole = resource_list(&format!("{GOOD}\n{GOOD}"));
    for length in whole.find(GOOD).unwrap() + GOOD.len()..whole.len() - 1 {
        let reading = read(&whole[..length]);
        assert!(matches!(reading.error, Some(ReadError::Truncated { .. })), "{length}: {:?}", reading.error);
        assert!(!reading.entries.is_empty() && !reading.summary.complete, "{length}");
        assert_eq!(reading.error.unwrap().position().byte, length as u64);
    }
}

#[test]
fn truncated_gzip_is_cut_short_and_damaged_gzip_is_damaged() {
    let entries: String =
        (0..20_000).map(|n| format!("<url><loc>http://e.org/{}</loc></url>", n * n % 9_973)).collect();
    let bytes = gzip(resource_list(&entries).as_bytes());
    let cut = read_with(&bytes[..bytes.len() / 2], Options::default());
    assert!(matches!(cut.error, Some(ReadError::Truncated { .. })), "{:?}", cut.error);
    assert!(cut.entries.len() > 1_000);
    let mut damaged = bytes;
    // The deflate block's header, behind ten bytes of gzip header: type 3 does not exist.
    damaged[10] = 0b111;
    let reading = read_with(&damaged[..], Options::default());
    assert!(matches!(reading.error, Some(ReadError::Gzip { .. })), "{:?}", reading.error);
    assert!(!reading.summary.complete);
}

#[test]
fn failing_stream_is_told_with_its_own_words_plain_or_gzip() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, "connection reset"))
        }
    }
    let plain = resource_list(GOOD);
    let compressed = gzip(plain.as_bytes());
    let half = compressed.len() / 2;
    for bytes in [&plain.as_bytes()[..plain.len() - 5], &compressed[..half]] {
        let error = read_with(bytes.chain(Broken), Options::default()).error.unwrap();
        assert!(matches!(error, ReadError::Io { .. }), "{error:?}");
        assert!(error.to_string().contains("connection reset"), "{error}");
    }
    assert!(matches!(Reader::new(Broken, Options::default()), Err(ReadError::Io { .. })));
}

#[test]
fn positions_count_lines_columns_and_bytes() {
    let document = urlset("\r\n\u{e9}\u{e9}<url/>\n\n  <url></url>\n");
    let reading = read(&document);
    let positions: Vec<_> =
        reading.bad.iter().map(|bad| (bad.position.line, bad.position.column, bad.position.byte)).collect();
    let first = document.find("<url/>").unwrap() as u64;
    assert_eq!(positions, [(2, 5, first), (4, 3, first + 10)]);
}

#[test]
fn lines_are_counted_over_many_buffers() {
    let reading = read(&resource_list(&format!("{GOOD}\n").repeat(20_000)));
    let last = reading.entries.last().unwrap().position;
    assert_eq!((last.line, last.column), (20_000, 1));
}

#[test]
fn malformed_header_ends_the_reading() {
    let error = read(&urlset("<rs:md capability='resourcelist' at=now/>")).error.unwrap();
    assert!(matches!(error, ReadError::Malformed { .. }), "{error:?}");
    let twice = urlset("<rs:md at='2013'/><rs:md at='2014'/>");
    assert!(matches!(read(&twice).error, Some(ReadError::Malformed { .. })));
}

#[test]
fn error_is_repeated_and_never_turns_into_an_end() {
    let text = opened("<url>");
    let mut reader = Reader::new(text.as_bytes(), Options::default()).unwrap();
    assert!(reader.next().unwrap().is_some());
    for _ in 0..3 {
        assert!(matches!(reader.next(), Err(ReadError::Truncated { .. })));
    }
    assert!(reader.header().is_err());
}

#[test]
fn end_stays_the_end() {
    let text = resource_list("");
    let mut reader = Reader::new(text.as_bytes(), Options::default()).unwrap();
    for _ in 0..3 {
        assert!(reader.next().unwrap().is_none());
    }
    assert!(reader.header().unwrap().links.is_empty());
    assert!(reader.summary().complete);
    assert!(read("<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'/>").summary.complete);
}

#[test]
fn bare_ampersands_are_kept_in_text_and_attributes() {
    let reading = read(&resource_list(
        "<url><loc>http://e.org/?a=1&b=2;c&amp;d</loc><rs:ln rel='via' href='http://e.org/?x&y=1'/></url>",
    ));
    assert_eq!(reading.locs(), ["http://e.org/?a=1&b=2;c&d"]);
    assert_eq!(reading.entries[0].links[0].href, "http://e.org/?x&y=1");
    assert_eq!(reading.count(Quirk::BareAmpersand), 2);
}

#[test]
fn character_data_sections_and_comments_inside_a_value_are_joined() {
    let reading = read(&resource_list("<url><loc>http://<!-- c --><![CDATA[e.org/?a&b]]>&#x31;</loc></url>"));
    assert_eq!(reading.locs(), ["http://e.org/?a&b1"]);
}
