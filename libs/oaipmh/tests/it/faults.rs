//! The faults of repositories in the wild, as far as the reader decides them: a test for each, named after its quirk.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use oaipmh::{
    BadReason, BaseUrl, Encoding, ErrorCode, Granularity, Item, Options, Quirk, ReadError, Request, Step,
    Token, TokenForm, Trail, Verb,
};

use super::common::{answer, header, list, read_strict, read_whole, read_with, record, records};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn identify(fields: &str) -> String {
    answer(&format!(
        "<Identify><repositoryName>R</repositoryName><baseURL>http://e.org/oai</baseURL>\
         <protocolVersion>2.0</protocolVersion><adminEmail>a@e.org</adminEmail>{fields}</Identify>"
    ))
}

#[test]
fn what_is_as_it_should_be_has_no_quirk_and_passes_strict_reading() {
    let page = list(&format!(
        "{}<resumptionToken expirationDate=\"2026-01-03T00:00:00Z\" completeListSize=\"5\" cursor=\"0\">a|b</resumptionToken>",
        records(1..=3)
    ));
    let reading = read_strict(&page);
    assert_eq!((reading.error.as_ref(), reading.quirks()), (None, vec![]));
    assert_eq!((reading.answer.items, reading.answer.bad, reading.answer.complete), (3, 0, true));
    let resumption = reading.answer.resumption.as_ref().unwrap();
    assert_eq!((resumption.complete_list_size, resumption.cursor), (Some(5), Some(0)));
    assert_eq!(resumption.token.as_ref().unwrap().as_str(), "a|b");
    assert!(reading.answer.has_more());
    assert_eq!(reading.answer.request.get("metadataPrefix"), Some("oai_dc"));
    assert!(reading.metadata(0).starts_with("<oai_dc:dc xmlns:dc="));
    assert_eq!(
        reading,
        super::common::read_chunks(
            page.as_bytes(),
            1,
            Options { strictness: oaipmh::Strictness::Strict, ..Options::default() }
        )
    );
}

#[test]
fn odd_granularity() {
    for (written, read) in [
        ("<granularity>yyyy-MM-dd</granularity>", Some(Granularity::Day)),
        ("<granularity>YYYY-MM-DDThh:mm:ss</granularity>", Some(Granularity::Second)),
        ("<granularity>days</granularity>", None),
        ("", None),
    ] {
        let reading = read_whole(identify(&format!(
            "<earliestDatestamp>2001-01-01T00:00:00Z</earliestDatestamp>{written}"
        )));
        let identify = reading.answer.identify.as_ref().unwrap();
        assert_eq!((identify.granularity, reading.quirks()), (read, vec!["odd-granularity"]), "{written}");
        // earliestDatestamp's form decides where nothing else does.
        assert_eq!(identify.usable_granularity(), read.unwrap_or(Granularity::Second));
    }
}

#[test]
fn datestamp_precision() {
    let page = list(&records(1..=2).replacen("00:00:00Z", "00:00:00.123Z", 1));
    let reading = read_whole(&page);
    assert_eq!((reading.records().len(), reading.quirks()), (2, vec!["datestamp-precision"]));
    let options = Options { granularity: Some(Granularity::Day), ..Options::default() };
    assert_eq!(read_with(&page, options).answer.quirks.count(Quirk::DatestampPrecision), 2);
}

#[test]
fn future_time() {
    let latest = "2025-12-31T23:00:00Z".parse().ok();
    let reading = read_with(list(&records(1..=2)), Options { latest, ..Options::default() });
    assert_eq!(reading.answer.quirks.count(Quirk::FutureTime), 2);
    assert!(reading.answer.quirks.casts_doubt() && reading.records().len() == 2);
}

#[test]
fn odd_response_date() {
    let page = list(&records(1..=1)).replace("02T00:00:00Z<", "02T02:00:00.5+02:00<");
    let reading = read_whole(page);
    assert_eq!(reading.quirks(), ["odd-response-date"]);
    let date = reading.answer.response_date.unwrap();
    assert_eq!(date.instant().to_string(), "2026-01-02T00:00:00.5Z");
}

#[test]
fn unreadable_datestamp() {
    let reading = read_whole(list(&records(1..=2).replacen("2026-01-01T00:00:00Z", "yesterday", 1)));
    assert_eq!((reading.records().len(), reading.quirks()), (2, vec!["unreadable-datestamp"]));
    assert_eq!(reading.records()[0].header.datestamp, None);
    assert!(reading.answer.quirks.casts_doubt());
}

/// Notes a page with these records and this token.
fn step(trail: &mut Trail, sent: Option<&str>, numbers: std::ops::RangeInclusive<u32>, token: &str) -> Step {
    let content = format!("{}<resumptionToken>{token}</resumptionToken>", records(numbers));
    trail.step(sent.and_then(Token::new).as_ref(), &read_whole(list(&content)).answer)
}

#[test]
fn token_loop() {
    let mut trail = Trail::default();
    assert_eq!(step(&mut trail, None, 1..=2, "a"), Step::Next);
    assert_eq!(step(&mut trail, Some("a"), 3..=4, "b"), Step::Next);
    assert_eq!(step(&mut trail, Some("b"), 3..=4, "b"), Step::Loop);
    // What was kept and read again knows it too.
    let text = serde_json::to_string(&trail).unwrap();
    let mut trail: Trail = serde_json::from_str(&text).unwrap();
    assert_eq!(step(&mut trail, Some("a"), 1..=2, "a"), Step::Loop);
}

#[test]
fn a_token_loop_longer_than_the_memory_of_pages_is_found() {
    let mut trail = Trail::default();
    let mut answer = read_whole(list(&records(1..=1))).answer;
    let mut found = None;
    for page in 0..5_000_u64 {
        let token = format!("page {}", page % 1_000);
        answer.resumption = Some(oaipmh::Resumption { token: Token::new(&token), ..Default::default() });
        if trail.step(None, &answer) == Step::Loop {
            found = Some(page);
            break;
        }
    }
    assert!(found.is_some_and(|page| page < 3_000), "{found:?}");
}

#[test]
fn unchanged_token() {
    let mut trail = Trail::default();
    assert_eq!(step(&mut trail, None, 1..=2, "same"), Step::Next);
    for page in 1..10 {
        let first = page * 2 + 1;
        assert_eq!(step(&mut trail, Some("same"), first..=first + 1, "same"), Step::UnchangedToken, "{page}");
    }
}

#[test]
fn token_after_end() {
    for token in ["<resumptionToken/>", "<resumptionToken>  \n </resumptionToken>", ""] {
        let reading = read_whole(list(&(records(1..=1) + token)));
        assert!(!reading.answer.has_more() && reading.answer.complete, "{token}");
    }
}

#[test]
fn token_not_exclusive_token_verbatim_and_encoded_token() {
    let base = BaseUrl::new("https://e.org/oai?repo=1".parse().unwrap()).unwrap();
    let url = |token: &str, form, prefix: Option<&str>| {
        let token = Token::new(token).unwrap();
        Request::Resume { verb: Verb::ListRecords, token, form, prefix: prefix.map(str::to_owned) }.url(&base)
    };
    let start = "https://e.org/oai?repo=1&verb=ListRecords&resumptionToken=";
    assert_eq!(url("a+b c!|", TokenForm::Encoded, None), format!("{start}a%2Bb%20c%21%7C"));
    assert_eq!(
        url("a", TokenForm::Encoded, Some("oai_dc")),
        "https://e.org/oai?repo=1&verb=ListRecords&resumptionToken=a&metadataPrefix=oai_dc"
    );
    assert_eq!(url("a+b!|:", TokenForm::Verbatim, None), format!("{start}a+b!|:"));
    assert_eq!(url("a b#", TokenForm::Verbatim, None), format!("{start}a%20b%23"));
    assert_eq!(url("a%7Cb", TokenForm::Decoded, None), format!("{start}a%7Cb"));
    assert_eq!(url("a%7Cb", TokenForm::Encoded, None), format!("{start}a%257Cb"));
}

#[test]
fn empty_page() {
    let page = answer("<ListRecords><resumptionToken>next</resumptionToken></ListRecords>");
    let reading = read_whole(page);
    assert_eq!((reading.quirks(), reading.answer.has_more()), (vec!["empty-page"], true));
    let mut trail = Trail::default();
    let mut page_answer = reading.answer;
    let mut steps = (0..=100).map(|page| {
        page_answer.resumption.as_mut().unwrap().token = Token::new(&page.to_string());
        trail.step(None, &page_answer)
    });
    assert!(steps.by_ref().take(100).all(|step| step == Step::Next));
    assert_eq!(steps.next(), Some(Step::TooManyEmptyPages));
}

#[test]
fn error_with_status() {
    // The status does not reach the reader: the body is an answer like any other.
    let reading = read_whole(answer("<error code=\"noRecordsMatch\">no \u{202e}records</error>"));
    assert_eq!((reading.quirks(), reading.error), (vec![], None));
    assert!(reading.answer.is_empty_result() && reading.answer.has_error(&ErrorCode::NoRecordsMatch));
    assert_eq!(reading.answer.errors[0].message, "no \u{fffd}records");
    let both = read_whole(answer("<error code=\"badArgument\"/><error code=\"unknownError\">x</error>"));
    assert_eq!(both.quirks(), ["unknown-error-code"]);
    assert_eq!(both.answer.errors.len(), 2);
    assert!(!both.answer.is_empty_result());
}

#[test]
fn challenged() {
    let pages = ["<!DOCTYPE html><html></html>", "<html><body>Wait</body></html>", "\n<!doctype HTML>"];
    for page in pages {
        let error = read_whole(page).error.unwrap();
        assert!(matches!(error, ReadError::Html { .. }), "{page}: {error}");
    }
    assert_eq!(read_whole("").error, Some(ReadError::Empty));
    assert_eq!(read_whole(" \n ").error, Some(ReadError::Empty));
    assert!(matches!(read_whole("Please wait").error, Some(ReadError::NotXml { .. })));
    assert!(matches!(read_whole("<rss/>").error, Some(ReadError::UnknownRoot { .. })));
}

#[test]
fn gzip_and_no_compression() {
    let page = list(&records(1..=50));
    let packed = gzip(page.as_bytes());
    let reading = read_whole(&packed);
    assert_eq!((reading.records().len(), reading.quirks(), reading.error), (50, vec!["gzip"], None));
    let cut = read_whole(&packed[..packed.len() / 2]);
    assert!(matches!(cut.error, Some(ReadError::Gzip { .. })), "{:?}", cut.error);
    let mut followed = packed.clone();
    followed.extend_from_slice(b"more");
    assert_eq!(read_whole(&followed).quirks(), ["gzip", "damaged-gzip-end"]);
}

#[test]
fn illegal_character() {
    let page = list(&records(1..=3).replace("Title 2", "Ti\u{b}tle\u{fffe}&#x1f; 2"));
    let reading = read_whole(&page);
    assert_eq!((reading.records().len(), reading.quirks()), (3, vec!["illegal-character"]));
    assert_eq!(reading.answer.quirks.count(Quirk::IllegalCharacter), 1);
    assert!(reading.metadata(1).contains("Ti\u{fffd}tle\u{fffd}\u{fffd} 2"));
    // In an identifier it would make another identifier.
    let reading = read_whole(list(&records(1..=3).replace("oai:e.org:2", "oai:e.org:\u{1}2")));
    let [bad] = &reading.bad()[..] else { panic!("{reading:?}") };
    assert!(
        matches!(bad.reason, BadReason::IllegalCharacter { field: "identifier", .. }) && bad.header.is_none()
    );
    assert_eq!(reading.records().len(), 2);
    let error = read_strict(&page).error.unwrap();
    assert!(error.to_string().starts_with("line 7, column 1, in record oai:e.org:2: "), "{error}");
}

#[test]
fn invalid_utf8() {
    let page = list(&records(1..=3));
    let page = page.replace("Title 2", "Caf\u{1} 2").into_bytes();
    let page: Vec<u8> = page.iter().map(|&byte| if byte == 1 { 0xe9 } else { byte }).collect();
    let reading = read_whole(&page);
    let [bad] = &reading.bad()[..] else { panic!("{reading:?}") };
    assert!(matches!(bad.reason, BadReason::NotUtf8 { .. }));
    assert_eq!(bad.header.as_ref().unwrap().identifier, "oai:e.org:2");
    assert_eq!((reading.records().len(), reading.quirks()), (2, vec!["invalid-utf8"]));
    for (label, title) in [("latin1", "Café 2"), ("windows-1251", "Cafй 2")] {
        let options = Options { encoding: Encoding::for_label(label.as_bytes()), ..Options::default() };
        let reading = read_with(&page, options);
        assert!(reading.metadata(1).contains(&format!("<dc:title>{title}</dc:title>")), "{label}");
        assert_eq!((reading.records().len(), reading.quirks()), (3, vec!["invalid-utf8"]));
    }
    // A blank ends no character of two bytes.
    let options = Options { encoding: Encoding::for_label(b"big5"), ..Options::default() };
    assert_eq!(read_with(&page, options).bad().len(), 1);
}

#[test]
fn undeclared_prefix() {
    let undeclared = records(1..=2).replace(" xmlns:dc=\"http://purl.org/dc/elements/1.1/\"", "");
    let reading = read_whole(list(&undeclared));
    assert_eq!((reading.records().len(), reading.quirks()), (2, vec!["undeclared-prefix"]));
    assert_eq!(reading.metadata(0), read_whole(list(&records(1..=2))).metadata(0));
    let unknown = read_whole(list(&records(1..=2).replacen("<dc:title>", "<own:note/><dc:title>", 1)));
    let [bad] = &unknown.bad()[..] else { panic!("{unknown:?}") };
    assert!(matches!(&bad.reason, BadReason::UndeclaredPrefix { prefix, .. } if prefix == "own"));
    assert_eq!(unknown.records().len(), 1);
}

#[test]
fn a_prefix_declared_on_any_element_around_it_stays_in_the_record() {
    let typed = r#"<dc:date xsi:type="dcterms:W3CDTF">2020</dc:date>"#;
    let declarations = r#"xmlns:dcterms="http://purl.org/dc/terms/" xmlns:unused="urn:unused" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance""#;
    let page = list(&record(1, typed));
    let with = |tag: &str| page.replacen(tag, &tag.replace('>', &format!(" {declarations}>")), 1);
    let inside = read_whole(page.replacen("<oai_dc:dc ", &format!("<oai_dc:dc {declarations} "), 1));
    for tag in ["<metadata>", "<record>", "<ListRecords>", "<dc:date>"] {
        if tag == "<dc:date>" {
            continue;
        }
        let reading = read_whole(with(tag));
        assert_eq!(reading.metadata(0), inside.metadata(0), "{tag}");
    }
    let root = page.replacen("<OAI-PMH ", &format!("<OAI-PMH {declarations} "), 1);
    assert_eq!(read_whole(root).metadata(0), inside.metadata(0));
    assert!(inside.metadata(0).contains("xmlns:dcterms=") && !inside.metadata(0).contains("unused"));
}

#[test]
fn inner_xml_declaration() {
    let page =
        list(&records(1..=1).replace("<metadata>", "<metadata><?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"));
    let reading = read_whole(page);
    assert_eq!((reading.records().len(), reading.quirks()), (1, vec!["inner-xml-declaration"]));
    assert_eq!(reading.metadata(0), read_whole(list(&records(1..=1))).metadata(0));
}

#[test]
fn cut_document() {
    let page = list(&records(1..=100));
    let cut = page.find("Title 57").unwrap();
    let reading = read_whole(&page[..cut]);
    assert!(matches!(reading.error, Some(ReadError::Truncated { .. })), "{:?}", reading.error);
    assert_eq!((reading.records().len(), reading.quirks()), (56, vec!["cut-document"]));
    assert!(!reading.answer.complete && reading.answer.quirks.casts_doubt());
}

#[test]
fn broken_record() {
    let whole = records(1..=5);
    let second = whole.find("Title 2").unwrap();
    let end = second + whole[second..].find("</record>\n").unwrap() + "</record>\n".len();
    // Cut in the middle, a tag that is not closed, one closed twice, a comment and CDATA without an end, a quote
    // without an end, an unescaped less-than.
    let cut = format!("{}{}", &whole[..second], &whole[end..]);
    let broken = [
        cut,
        whole.replace("Title 2", "<b>Title 2"),
        whole.replace("Title 2", "Title 2</dc:title></dc:title>"),
        whole.replace("Title 2</dc:title>", "Title 2</dc:titel>"),
        whole.replace("Title 2", "<!-- Title 2"),
        whole.replace("Title 2", "<![CDATA[ Title 2"),
        whole.replace("<dc:title>Title 2", "<dc:title lang=\"en>Title 2"),
        whole.replace("Title 2", "1 < 2 <2"),
        whole.replace("Title 2", "</record>"),
    ];
    for content in broken {
        let page = list(&(content + "<resumptionToken>next</resumptionToken>"));
        let reading = read_whole(&page);
        assert_eq!(reading.error, None, "{page}");
        let numbers: Vec<_> =
            reading.records().iter().map(|record| record.header.identifier.clone()).collect();
        assert_eq!(numbers, [1, 3, 4, 5].map(|number| format!("oai:e.org:{number}")), "{page}");
        let [bad] = &reading.bad()[..] else { panic!("{reading:?}") };
        assert_eq!(bad.header.as_ref().unwrap().identifier, "oai:e.org:2");
        assert_eq!(reading.quirks(), ["broken-record"], "{page}");
        assert!(reading.answer.has_more());
        assert!(matches!(
            read_strict(&page).error,
            Some(ReadError::BadRecord { record: Some(record), .. } | ReadError::Quirk { record: Some(record), .. })
                if record == "oai:e.org:2"
        ));
    }
}

#[test]
fn a_last_record_that_is_cut_does_not_hide_the_token() {
    for behind in ["<resumptionToken>next</resumptionToken>", ""] {
        let page =
            answer(&format!("<ListRecords>{}<record>{}{behind}</ListRecords>", records(1..=1), header(2)));
        let reading = read_whole(&page);
        assert_eq!((reading.error, reading.answer.bad, reading.answer.items), (None, 1, 2), "{page}");
        assert_eq!(reading.answer.has_more(), !behind.is_empty());
    }
}

#[test]
fn trailing_bytes() {
    for behind in ["<br />\n<b>Notice</b>", "Warning", "<![CDATA[x]]>", "<OAI-PMH/>", "<unfinished"] {
        let reading = read_whole(list(&records(1..=1)) + behind);
        assert_eq!((reading.error, reading.answer.complete), (None, true), "{behind}");
        assert_eq!(reading.answer.quirks.count(Quirk::TrailingBytes), 1, "{behind}");
    }
    assert_eq!(
        read_whole(list(&records(1..=1)) + "\n<!-- 0.1 s --><?end?>\n").answer.quirks.iter().count(),
        0
    );
}

#[test]
fn stray_text() {
    let page = list(&format!("Warning: date() in line 3\n{}", records(1..=2)));
    let reading = read_whole(page);
    assert_eq!((reading.records().len(), reading.quirks()), (2, vec!["stray-text"]));
}

#[test]
fn prefixed_oai_namespace() {
    let plain = list(&(records(1..=2) + "<resumptionToken>t</resumptionToken>"));
    let mut prefixed = plain.replace("xmlns=", "xmlns:o=");
    for name in [
        "OAI-PMH",
        "responseDate",
        "request",
        "ListRecords",
        "record",
        "header",
        "identifier",
        "datestamp",
        "metadata",
        "resumptionToken",
    ] {
        for end in [' ', '>'] {
            prefixed = prefixed.replace(&format!("<{name}{end}"), &format!("<o:{name}{end}"));
            prefixed = prefixed.replace(&format!("</{name}{end}"), &format!("</o:{name}{end}"));
        }
    }
    let reading = read_strict(&prefixed);
    assert_eq!((reading.error.as_ref(), reading.quirks()), (None, vec!["prefixed-oai-namespace"]));
    let expected = read_whole(&plain);
    assert_eq!(reading.metadata(1), expected.metadata(1));
    assert_eq!(reading.answer.resumption, expected.answer.resumption);
}

#[test]
fn odd_and_missing_oai_namespace() {
    let page = list(&records(1..=1));
    let odd =
        page.replace("http://www.openarchives.org/OAI/2.0/\"", "https://www.openarchives.org/OAI/2.0\"");
    assert_eq!(read_whole(odd).quirks(), ["odd-oai-namespace"]);
    let missing = page.replace(" xmlns=\"http://www.openarchives.org/OAI/2.0/\"", "");
    let reading = read_whole(missing);
    assert_eq!((reading.quirks(), reading.records().len()), (vec!["missing-oai-namespace"], 1));
    let old = page.replace("OAI/2.0/\"", "OAI/1.1/\"");
    assert!(matches!(read_whole(old).error, Some(ReadError::UnknownRoot { .. })));
}

#[test]
fn empty_metadata() {
    for metadata in ["<metadata/>", "<metadata>\n</metadata>", "<metadata><!-- none --></metadata>", ""] {
        let page = list(&format!("<record>{}{metadata}</record>{}", header(1), records(2..=2)));
        let reading = read_whole(page);
        let [bad] = &reading.bad()[..] else { panic!("{reading:?}") };
        assert_eq!(bad.reason, BadReason::EmptyMetadata);
        assert!(!bad.header.as_ref().unwrap().is_deleted(), "an empty record proves no deletion");
        assert_eq!((reading.records().len(), reading.quirks()), (1, vec!["empty-metadata"]));
    }
    let two = list(&records(1..=1).replace("</metadata>", "<x/></metadata>"));
    assert_eq!(read_whole(two).bad()[0].reason, BadReason::NotOneElement);
}

#[test]
fn deletes_in_first_list_and_deleted_and_live() {
    let deleted = |number| {
        format!("<record>{}</record>", header(number).replace("<header>", "<header status=\"deleted\">"))
    };
    let page = list(&(deleted(1) + &deleted(2) + &records(2..=2)));
    let reading = read_strict(&page);
    let states: Vec<_> = reading.records().iter().map(|record| record.header.is_deleted()).collect();
    assert_eq!((states, reading.quirks()), (vec![true, true, false], vec![]));
    assert!(reading.records()[0].metadata.is_none());
    let odd = read_whole(page.replacen("\"deleted\"", "\"Deleted\"", 1));
    assert_eq!((odd.quirks(), odd.records()[0].header.is_deleted()), (vec!["odd-status"], true));
    let both = records(1..=1).replace("<header>", "<header status=\"deleted\">");
    let both = read_whole(list(&both));
    assert_eq!((both.quirks(), both.records()[0].metadata.is_none()), (vec!["deleted-with-metadata"], true));
}

#[test]
fn set_ignored() {
    let page = answer(
        "<ListIdentifiers><header><identifier>a</identifier><datestamp>2026-01-01</datestamp>\
         <setSpec>a:b:c</setSpec><setSpec>x</setSpec><setSpec>x</setSpec></header></ListIdentifiers>",
    );
    let reading = read_strict(page.replace("verb=\"ListRecords\"", "verb=\"ListIdentifiers\""));
    let [header] = &reading.headers()[..] else { panic!("{reading:?}") };
    assert_eq!(header.sets, ["a:b:c", "x"]);
    assert_eq!(header.all_sets(), ["a:b:c", "a", "a:b", "x"]);
    assert!(header.is_in("a") && header.is_in("a:b") && header.is_in("x"));
    assert!(!header.is_in("a:b:c:d") && !header.is_in("a:bb") && !header.is_in(""));
}

#[test]
fn sets_and_formats_are_read_and_a_bad_one_costs_itself() {
    let sets = answer(
        "<ListSets><set><setSpec>a</setSpec><setName>A &amp; B</setName><setDescription><x xmlns=\"urn:x\"/>\
         </setDescription></set><set><setName>none</setName></set><set><setSpec>b</setSpec></set></ListSets>",
    );
    let reading = read_whole(sets);
    assert!(matches!(&reading.items[0], Item::Set(set) if set.spec == "a" && set.name == "A & B"));
    assert_eq!(reading.bad()[0].reason, BadReason::Missing("setSpec"));
    assert!(matches!(&reading.items[2], Item::Set(set) if set.spec == "b" && set.name.is_empty()));
    let formats = answer(
        "<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix><schema>s</schema>\
         <metadataNamespace>n</metadataNamespace></metadataFormat></ListMetadataFormats>",
    );
    let reading = read_whole(formats);
    assert!(
        matches!(&reading.items[0], Item::Format(format) if format.prefix == "oai_dc" && format.namespace == "n")
    );
}

#[test]
fn missing_verb_element_and_error_beside_list() {
    assert_eq!(read_whole(answer("")).quirks(), ["missing-verb-element"]);
    let both = answer(&format!("<error code=\"badArgument\"/><ListRecords>{}</ListRecords>", records(1..=1)));
    assert_eq!(read_whole(both).quirks(), ["error-beside-list"]);
    let dateless = list(&records(1..=1)).replace("<responseDate>2026-01-02T00:00:00Z</responseDate>\n", "");
    assert_eq!(read_whole(dateless).quirks(), ["missing-response-date"]);
}

#[test]
fn an_answer_to_another_request_is_told() {
    let reading = read_whole(list(&records(1..=1)));
    let ours = Request::list_records(oaipmh::Selection::all("oai_dc"), Granularity::Second);
    assert_eq!(reading.answer.check_echo(&ours), Ok(()));
    let other = Request::list_records(oaipmh::Selection::all("mets"), Granularity::Second);
    assert_eq!(reading.answer.check_echo(&other).unwrap_err().argument, "metadataPrefix");
    let resumed = Request::resume(Verb::ListRecords, Token::new("t").unwrap());
    assert_eq!(reading.answer.check_echo(&resumed), Ok(()));
    assert!(reading.answer.check_echo(&Request::ListSets).is_err());
}
