//! Requests, pasted URLs, windows and stateless tokens.

use jiff::Timestamp;
use oaipmh::{BaseUrl, Granularity, Pasted, Request, Selection, StatelessToken, Token, Verb, Window};

fn base(text: &str) -> BaseUrl {
    BaseUrl::new(text.parse().unwrap()).unwrap()
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn every_verb_has_its_url() {
    let base = base("https://e.org/cgi?db=1#top");
    let window = Window::between(time("2026-01-01T00:00:00Z"), time("2026-01-02T03:04:05Z"));
    let selection = Selection { prefix: "oai_dc".to_owned(), set: Some("a:b c".to_owned()), window };
    for (request, query) in [
        (Request::Identify, "verb=Identify"),
        (Request::ListSets, "verb=ListSets"),
        (Request::ListMetadataFormats { identifier: None }, "verb=ListMetadataFormats"),
        (
            Request::ListMetadataFormats { identifier: Some("oai:e/1".to_owned()) },
            "verb=ListMetadataFormats&identifier=oai%3Ae%2F1",
        ),
        (
            Request::list_records(Selection::all("mets"), Granularity::Day),
            "verb=ListRecords&metadataPrefix=mets",
        ),
        (
            Request::list_identifiers(selection.clone(), Granularity::Second),
            "verb=ListIdentifiers&metadataPrefix=oai_dc&set=a%3Ab%20c&from=2026-01-01T00%3A00%3A00Z&until=2026-01-02T03%3A04%3A05Z",
        ),
        (
            Request::list_records(selection, Granularity::Day),
            "verb=ListRecords&metadataPrefix=oai_dc&set=a%3Ab%20c&from=2026-01-01&until=2026-01-02",
        ),
        (
            Request::get_record("é&=", "oai_dc"),
            "verb=GetRecord&identifier=%C3%A9%26%3D&metadataPrefix=oai_dc",
        ),
    ] {
        assert_eq!(request.url(&base), format!("https://e.org/cgi?db=1&{query}"));
    }
    assert_eq!(
        base.record_uri("oai:e.org:1~a", "oai_dc"),
        "https://e.org/cgi?db=1&verb=GetRecord&identifier=oai%3Ae.org%3A1~a&metadataPrefix=oai_dc"
    );
}

#[test]
fn no_argument_is_empty() {
    let selection = Selection { prefix: "oai_dc".to_owned(), set: Some(String::new()), window: Window::ALL };
    let url = Request::list_records(selection, Granularity::Day).url(&base("https://e.org/oai"));
    assert_eq!(url, "https://e.org/oai?verb=ListRecords&metadataPrefix=oai_dc");
}

#[test]
fn a_pasted_url_is_reduced_to_its_base_url() {
    let pasted = |text: &str| Pasted::read(&text.parse().unwrap()).unwrap();
    let found = pasted(
        "https://e.org/cgi?db=a%20b&verb=listrecords&MetadataPrefix=mets&set=x:y&from=2026-01-01&until=2026-02-01T00:00:00Z&resumptionToken=t#x",
    );
    assert_eq!(found.base, base("https://e.org/cgi?db=a%20b"));
    assert_eq!(found.verb, Some(Verb::ListRecords));
    assert_eq!((found.prefix.as_deref(), found.set.as_deref()), (Some("mets"), Some("x:y")));
    assert_eq!(found.window, Window::between(time("2026-01-01T00:00:00Z"), time("2026-02-01T00:00:00Z")));
    assert!(found.had_token);

    assert_eq!(pasted("https://e.org/oai?verb=Identify").base, base("https://e.org/oai"));
    let record = pasted("https://e.org/oai?verb=GetRecord&identifier=oai%3Ae%2F1&metadataPrefix=oai_dc");
    assert_eq!(record.identifier.as_deref(), Some("oai:e/1"));

    // Without a verb nothing shows that these arguments are the protocol's.
    let plain = pasted("https://e.org/browse?set=7&from=home");
    assert_eq!((plain.verb, plain.base.as_str()), (None, "https://e.org/browse?set=7&from=home"));
    assert_eq!(pasted("https://e.org/oai?verb=Explode").verb, None);
    assert!(Pasted::read(&"ftp://e.org/oai?verb=Identify".parse().unwrap()).is_err());
}

#[test]
fn a_window_is_split_down_to_its_units_without_gap_and_overlap() {
    let (earliest, now) = (time("2026-01-01T00:00:00Z"), time("2026-01-11T12:00:00Z"));
    let mut left = vec![Window::ALL];
    let mut units = Vec::new();
    while let Some(window) = left.pop() {
        match window.split(Granularity::Day, earliest, now) {
            Some((earlier, later)) => left.extend([later, earlier]),
            None => units.push(window),
        }
    }
    assert_eq!(units.len(), 11);
    assert_eq!((units[0].from, units[10].until), (None, None), "open ends stay open");
    for pair in units.windows(2) {
        assert_eq!(pair[1].from.unwrap().as_second() - pair[0].until.unwrap().as_second(), 86_400);
    }
    let second = Window::between(earliest, earliest);
    assert_eq!(second.split(Granularity::Second, earliest, now), None);
    assert!(second.contains(earliest, Granularity::Second) && !second.contains(now, Granularity::Second));
    assert!(second.contains(time("2026-01-01T23:59:59Z"), Granularity::Day));
}

#[test]
fn times_are_written_in_their_granularity() {
    let before = time("1969-12-31T23:59:59.5Z");
    assert_eq!(Granularity::Second.format(before), "1969-12-31T23:59:59Z");
    assert_eq!(Granularity::Day.format(before), "1969-12-31");
    assert_eq!(Granularity::parse("2026-01-02"), Some((time("2026-01-02T00:00:00Z"), Granularity::Day)));
    for text in ["2026", "2026-01", "2026-01-02T03:04Z", "2026-01-02T03:04:05", "2026-13-01", ""] {
        assert_eq!(Granularity::parse(text), None, "{text}");
    }
}

#[test]
fn a_stateless_token_comes_back_and_a_forged_one_does_not() {
    let token = StatelessToken {
        verb: Verb::ListRecords,
        selection: Selection {
            prefix: "oai_dc".to_owned(),
            set: Some("a:é".to_owned()),
            window: Window::since(time("2026-01-01T00:00:00Z")),
        },
        after: "oai:e.org:1&2".to_owned(),
        delivered: 100,
        made: time("2026-01-02T00:00:00Z"),
    };
    let text = token.encode();
    assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'));
    assert_eq!(StatelessToken::decode(&Token::new(&text).unwrap()), Some(token));
    for forged in ["x", "dj1MaXN0UmVjb3Jkcw", &text[..text.len() - 8], &"A".repeat(20_000)] {
        assert_eq!(StatelessToken::decode(&Token::new(forged).unwrap()), None, "{forged}");
    }
}

#[test]
fn a_token_shows_its_beginning_only() {
    let token = Token::new(" 0123456789abcdefSECRET ").unwrap();
    assert_eq!(
        (token.as_str(), token.to_string()),
        ("0123456789abcdefSECRET", "0123456789abcdef…".to_owned())
    );
    assert!(!format!("{token:?}").contains("SECRET"));
    assert_eq!(Token::new(" \n"), None);
}
