//! What a hostile repository may send: each limit has a name, and ends one record or the reading.

use oaipmh::{BadReason, LimitKind, Limits, Options, ReadError};

use super::common::{answer, header, list, read_chunks, read_whole, read_with, record, records};

fn narrow(change: impl FnOnce(&mut Limits)) -> Options {
    let mut limits = Limits::default();
    change(&mut limits);
    Options { limits, ..Options::default() }
}

/// Reads a page whose second record of three is beyond a limit.
fn reason(second: &str, change: impl FnOnce(&mut Limits)) -> BadReason {
    let page = list(&(records(1..=1) + second + &records(3..=3)));
    let options = narrow(change);
    let reading = read_with(&page, options.clone());
    assert_eq!((reading.error.as_ref(), reading.records().len()), (None, 2), "{page}");
    assert_eq!(read_chunks(page.as_bytes(), 7, options), reading);
    let [bad] = &reading.bad()[..] else { panic!("{reading:?}") };
    bad.reason.clone()
}

#[test]
fn each_limit_of_a_record_costs_that_record() {
    let long = "x".repeat(1_000);
    assert_eq!(
        reason(&record(2, &long), |limits| limits.max_record_bytes = 900),
        BadReason::RecordBytes(900)
    );
    assert_eq!(reason(&record(2, &long), |limits| limits.max_text_bytes = 900), BadReason::TextBytes(900));
    let attribute = format!("<dc:title a=\"{long}\"/>");
    assert_eq!(
        reason(&record(2, &attribute), |limits| limits.max_text_bytes = 900),
        BadReason::TextBytes(900)
    );
    let named = record(2, "").replace("oai:e.org:2", &long);
    assert_eq!(
        reason(&named, |limits| limits.max_field_bytes = 900),
        BadReason::FieldBytes { field: "identifier", limit: 900 }
    );
    let deep = format!("{}{}", "<a>".repeat(20), "</a>".repeat(20));
    assert_eq!(reason(&record(2, &deep), |limits| limits.max_depth = 20), BadReason::Depth(20));
    let many: String = (0..20).map(|number| format!(" a{number}=\"\"")).collect();
    let many = record(2, &format!("<a{many}/>"));
    assert_eq!(reason(&many, |limits| limits.max_attributes = 10), BadReason::Attributes(10));
    let sets: String = (0..20).map(|number| format!("<setSpec>{number}</setSpec>")).collect();
    let sets = record(2, "").replace("</header>", &format!("{sets}</header>"));
    assert_eq!(reason(&sets, |limits| limits.max_sets_per_record = 10), BadReason::Sets(10));
    let abouts =
        record(2, "").replace("</record>", &format!("{}</record>", "<about><a/></about>".repeat(20)));
    assert_eq!(reason(&abouts, |limits| limits.max_abouts = 10), BadReason::Abouts(10));
}

#[test]
fn a_record_far_beyond_the_limit_is_not_held_and_the_next_one_is_read() {
    let inside = "<record><a/></record> </record> <header/> ".repeat(2_000);
    let reason =
        reason(&record(2, &format!("<![CDATA[{inside}]]>")), |limits| limits.max_record_bytes = 2_000);
    assert_eq!(reason, BadReason::RecordBytes(2_000));
}

#[test]
fn entities_and_doctypes_are_refused() {
    let entity = record(2, "<dc:title>caf&eacute;</dc:title>");
    assert!(matches!(reason(&entity, |_| {}), BadReason::Entity { name, .. } if name == "eacute"));
    let doctype = record(2, "<!DOCTYPE a [<!ENTITY b \"c\">]>");
    assert!(matches!(reason(&doctype, |_| {}), BadReason::Doctype { .. } | BadReason::Malformed { .. }));
    let page =
        list(&records(1..=1)).replace("<OAI-PMH", "<!DOCTYPE OAI-PMH SYSTEM \"http://e.org/x.dtd\"><OAI-PMH");
    assert!(matches!(read_whole(page).error, Some(ReadError::DoctypeRefused { .. })));
}

#[test]
fn limits_of_the_answer_end_the_reading_and_keep_what_came_before() {
    let page = list(&(records(1..=10) + "<resumptionToken>0123456789</resumptionToken>"));
    let ends = |change: fn(&mut Limits)| {
        let options = narrow(change);
        let reading = read_with(&page, options.clone());
        assert_eq!(read_chunks(page.as_bytes(), 5, options), reading);
        match reading.error {
            Some(ReadError::Limit { limit, .. }) => (limit, reading.items.len()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ends(|limits| limits.max_items = 4), (LimitKind::Items(4), 4));
    assert_eq!(ends(|limits| limits.max_token_bytes = 9), (LimitKind::TokenBytes(9), 10));
    assert_eq!(ends(|limits| limits.max_page_bytes = 1_000).0, LimitKind::PageBytes(1_000));
    let errors = answer(&"<error code=\"badVerb\"/>".repeat(101));
    let error = read_whole(errors).error;
    assert!(matches!(error, Some(ReadError::Limit { limit: LimitKind::Errors(100), .. })), "{error:?}");
    let long = answer(&format!("<!-- {} -->", "x".repeat(2 << 20)));
    let error = read_whole(long).error;
    assert!(matches!(error, Some(ReadError::Limit { limit: LimitKind::ElementBytes(_), .. })), "{error:?}");
}

#[test]
fn what_inflates_too_much_is_not_read_on() {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(list("").as_bytes()).unwrap();
    encoder.write_all(&vec![b' '; 20 << 20]).unwrap();
    let packed = encoder.finish().unwrap();
    let error = read_whole(&packed).error;
    assert!(matches!(error, Some(ReadError::Limit { limit: LimitKind::Inflation(500), .. })), "{error:?}");
}

#[test]
fn many_comments_without_an_end_are_searched_once_each() {
    // Searched anew from each, this would take minutes.
    let broken: String = (0..20_000).map(|number| format!("<record>{}<!-- ", header(number))).collect();
    let reading = read_whole(list(&broken));
    assert_eq!(reading.answer.bad, 20_000);
    let cdata: String = (0..20_000).map(|number| format!("<record>{}<![CDATA[ ", header(number))).collect();
    assert_eq!(read_whole(list(&cdata)).answer.bad, 20_000);
}

#[test]
fn many_references_and_blanks_in_a_value_are_read_in_one_pass() {
    let blanks = "&#32;".repeat(200_000);
    let page = list(&records(1..=1).replace("oai:e.org:1", &format!("{blanks}1")));
    let reading = read_whole(&page);
    let [bad] = &reading.bad()[..] else { panic!("{reading:?}") };
    assert!(matches!(bad.reason, BadReason::FieldBytes { .. }), "{:?}", bad.reason);
    let page = answer(&format!("<error code=\"badVerb\">{blanks}</error>"));
    assert_eq!(read_whole(page).error, None);
}

#[test]
fn declarations_that_would_multiply_are_refused() {
    let long = "u".repeat(1_025);
    assert_eq!(
        reason(&record(2, &format!("<a xmlns=\"{long}\"/>")), |_| {}),
        BadReason::FieldBytes { field: "namespace", limit: 1_024 }
    );
    let nested: String = (0..90)
        .map(|depth| {
            let declared: String = (0..9).map(|number| format!(" xmlns:p{depth}-{number}=\"u\"")).collect();
            format!("<a{declared}>")
        })
        .collect();
    let nested = record(2, &format!("{nested}{}", "</a>".repeat(90)));
    assert_eq!(reason(&nested, |_| {}), BadReason::Declarations(512));
    let beside: String =
        (0..600).map(|number| format!("<p{number}:a xmlns:p{number}=\"u{number}\"/>")).collect();
    assert_eq!(reason(&record(2, &beside), |_| {}), BadReason::Declarations(512));
    // The default namespace of many elements is declared on each.
    let uri = "u".repeat(1_000);
    let many = format!("<p:x xmlns:p=\"urn:p\" xmlns=\"{uri}\">{}</p:x>", "<a/>".repeat(1_000));
    let reason = reason(&record(2, &many), |limits| limits.max_record_bytes = 10_000);
    assert_eq!(reason, BadReason::RecordBytes(10_000));
}

#[test]
fn a_long_tag_in_tiny_chunks_is_read_in_little_time() {
    // Searched anew with each byte, this would take minutes.
    let value = "x".repeat(300_000);
    let page = list(&(record(1, &format!("<dc:title a=\"{value}\"/>")) + &records(2..=2)));
    let reading = read_chunks(page.as_bytes(), 1, Options::default());
    assert_eq!((reading.error.as_ref(), reading.records().len()), (None, 2));
}
