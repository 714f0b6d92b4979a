//! Requests, pasted URLs, windows and stateless tokens.

use jiff::Timestamp;
use oaipmh::{
    BaseUrl, ErrorCode, Granularity, Pasted, ProtocolError, Request, Selection, StatelessToken, Token, Verb,
    Window,
};

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
fn the_uri_of_a_record_leads_back_to_it() {
    for base in [base("https://e.org/cgi?db=1"), base("https://e.org/oai")] {
        for (identifier, prefix) in [("oai:e.org:1~a", "oai_dc"), ("é&metadataPrefix=a b+", "marc:21")] {
            let uri = base.record_uri(identifier, prefix);
            let found = base.record_of(&uri);
            assert_eq!(found, Some((identifier.to_owned(), prefix.to_owned())), "{uri}");
        }
        let uri = base.record_uri("a:b", "oai_dc");
        for other in [uri.replace("%3A", ":"), format!("{uri}&x=1"), uri.replace("e.org", "f.org")] {
            assert_eq!(base.record_of(&other), None, "{other}");
        }
        let selection = Selection { set: Some("a:b c".to_owned()), ..Selection::all("oai_dc") };
        let list = Request::list_records(selection, Granularity::Day).url(&base);
        assert_eq!(base.set_of(&list).as_deref(), Some("a:b c"));
        let list = Request::list_records(Selection::all("oai_dc"), Granularity::Day).url(&base);
        assert_eq!(base.set_of(&list), None);
        assert_eq!(base.set_of("https://f.org/oai?verb=ListRecords&set=a"), None);
    }
}

#[test]
fn a_request_is_received_as_it_was_sent() {
    let window = Window::between(time("2026-01-01T00:00:00Z"), time("2026-01-02T03:04:05Z"));
    let selection = Selection { prefix: "oai_dc".to_owned(), set: Some("a:b c".to_owned()), window };
    for request in [
        Request::Identify,
        Request::ListSets,
        Request::ListMetadataFormats { identifier: None },
        Request::ListMetadataFormats { identifier: Some("oai:e/1".to_owned()) },
        Request::list_records(selection.clone(), Granularity::Second),
        Request::list_identifiers(selection, Granularity::Second),
        Request::resume(Verb::ListSets, Token::new("a+b/c").unwrap()),
        Request::get_record("é&=", "oai_dc"),
    ] {
        let arguments: Vec<(String, String)> =
            request.arguments().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(Request::received(&arguments), Ok(request));
    }
}

#[test]
fn a_day_that_ends_a_window_is_in_it_whole() {
    let pairs =
        [("verb", "ListRecords"), ("metadataPrefix", "a"), ("from", "2026-01-01"), ("until", "2026-01-01")];
    let Request::List { selection, .. } = received(&pairs).unwrap() else { panic!("a list") };
    assert_eq!(selection.window, Window::between(time("2026-01-01T00:00:00Z"), time("2026-01-01T23:59:59Z")));
}

fn received(pairs: &[(&str, &str)]) -> Result<Request, ProtocolError> {
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Request::received(&pairs)
}

#[test]
fn requests_that_are_none_are_refused_as_the_protocol_says() {
    let list = ("verb", "ListRecords");
    let prefix = ("metadataPrefix", "oai_dc");
    for (pairs, code) in [
        (vec![], ErrorCode::BadVerb),
        (vec![("verb", "listrecords")], ErrorCode::BadVerb),
        (vec![("verb", "Identify"), ("verb", "Identify")], ErrorCode::BadVerb),
        (vec![("verb", "Identify"), ("x", "1")], ErrorCode::BadArgument),
        (vec![list], ErrorCode::BadArgument),
        (vec![list, prefix, prefix], ErrorCode::BadArgument),
        (vec![list, prefix, ("set", "")], ErrorCode::BadArgument),
        (vec![list, prefix, ("set", "\u{1}")], ErrorCode::BadArgument),
        (vec![list, prefix, ("from", "2026-1-1")], ErrorCode::BadArgument),
        (vec![list, prefix, ("from", "2026-01-01T00:00:00.5Z")], ErrorCode::BadArgument),
        (vec![list, prefix, ("from", "2026-01-02"), ("until", "2026-01-01")], ErrorCode::BadArgument),
        (
            vec![list, prefix, ("from", "2026-01-01"), ("until", "2026-01-01T00:00:00Z")],
            ErrorCode::BadArgument,
        ),
        (vec![list, prefix, ("resumptionToken", "x")], ErrorCode::BadArgument),
        (vec![("verb", "GetRecord"), prefix], ErrorCode::BadArgument),
        (vec![("verb", "GetRecord"), ("identifier", "a")], ErrorCode::BadArgument),
    ] {
        assert_eq!(received(&pairs).map_err(|error| error.code), Err(code), "{pairs:?}");
    }
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
