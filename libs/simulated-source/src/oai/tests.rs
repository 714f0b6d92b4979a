//! The repository as the crate that harvests it reads it: the two were written independently.

use std::collections::BTreeSet;

use oaipmh::{
    Answer, BaseUrl, ErrorCode, Granularity, Item, Options, Quirk, RecordHeader, Request, Selection, Step,
    Token, TokenForm, Trail, Verb, Window, read,
};

use super::fault::RepositoryFault as Fault;
use super::inner::Inner;
use super::respond::{Reply, respond};
use super::spec::{Deletions, RepositorySpec, Unit};
use crate::change::Changes;

const SITE: &str = "http://sim.example.org";

fn repository(spec: RepositorySpec) -> Inner {
    let inner = Inner::new(spec);
    inner.set_site(SITE.to_owned());
    inner
}

/// Sends a request, and reads the answer.
fn ask(inner: &Inner, request: &Request) -> (Vec<Item>, Answer) {
    let base = BaseUrl::new(format!("{SITE}/oai").parse().unwrap()).unwrap();
    let url = request.url(&base);
    let (_, raw) = url.split_once('?').unwrap();
    let arguments: Vec<_> = form_urlencoded::parse(raw.as_bytes())
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    match respond(inner, &mut inner.changing(), &arguments, raw) {
        Reply::Xml(text, _) => {
            let (items, answer, end) = read(&super::answer::latin1(text.clone()), Options::default());
            assert_eq!(end, Ok(()), "{text}");
            (items, answer)
        }
        Reply::Html(status) | Reply::Status(status) => panic!("{url} failed with {status}"),
    }
}

fn list(verb: Verb, set: Option<&str>, window: Window, granularity: Granularity) -> Request {
    let selection = Selection { prefix: "oai_dc".to_owned(), set: set.map(str::to_owned), window };
    Request::List { verb, selection, granularity }
}

/// Reads a list to its end: its headers, its pages, and the last answer.
fn harvest_by(inner: &Inner, first: Request, form: TokenForm) -> (Vec<RecordHeader>, Vec<Answer>) {
    let mut request = first;
    let (mut headers, mut pages, mut trail) = (Vec::new(), Vec::new(), Trail::default());
    let mut sent: Option<Token> = None;
    loop {
        let (items, answer) = ask(inner, &request);
        headers.extend(items.into_iter().filter_map(|item| match item {
            Item::Record(record) => Some(record.header),
            Item::Header(header) => Some(*header),
            Item::Bad(bad) => bad.header,
            _ => None,
        }));
        let step = trail.step(sent.as_ref(), &answer);
        sent = answer.resumption.as_ref().and_then(|resumption| resumption.token.clone());
        pages.push(answer);
        let Some(token) = sent.clone().filter(|_| matches!(step, Step::Next | Step::UnchangedToken)) else {
            return (headers, pages);
        };
        request = Request::Resume { verb: request.verb(), token, form, prefix: None };
    }
}

fn harvest(inner: &Inner, first: Request) -> (Vec<RecordHeader>, Vec<Answer>) {
    harvest_by(inner, first, TokenForm::Encoded)
}

fn everything(inner: &Inner) -> (Vec<RecordHeader>, Vec<Answer>) {
    harvest(inner, list(Verb::ListRecords, None, Window::ALL, Granularity::Second))
}

fn distinct(headers: &[RecordHeader]) -> usize {
    headers.iter().map(|header| &header.identifier).collect::<BTreeSet<_>>().len()
}

fn small() -> RepositorySpec {
    RepositorySpec::default().records(95).page_size(10)
}

#[test]
fn a_list_has_every_record_once_in_pages_without_a_quirk() {
    let inner = repository(small().deleted_every(10));
    let (headers, pages) = everything(&inner);
    assert_eq!((headers.len(), distinct(&headers), pages.len()), (95, 95, 10));
    assert_eq!(headers.iter().filter(|header| header.is_deleted()).count(), 9);
    assert!(pages.iter().all(|page| page.quirks.is_empty() && page.complete && page.bad == 0));
    let sizes: Vec<_> =
        pages.iter().map(|page| page.resumption.as_ref().unwrap().complete_list_size).collect();
    assert_eq!(sizes, [Some(95); 10]);
    let (identifiers, _) =
        harvest(&inner, list(Verb::ListIdentifiers, None, Window::ALL, Granularity::Second));
    assert_eq!(identifiers, headers);
}

#[test]
fn every_verb_answers_and_echoes_its_request() {
    let inner = repository(small().files(2));
    let requests = [
        Request::Identify,
        Request::ListSets,
        Request::ListMetadataFormats { identifier: None },
        Request::get_record("oai:sim.example.org:7", "mets"),
    ];
    let counts = requests.map(|request| {
        let (items, answer) = ask(&inner, &request);
        assert!(answer.quirks.is_empty() && answer.errors.is_empty(), "{answer:?}");
        assert_eq!((answer.verb, answer.check_echo(&request)), (Some(request.verb()), Ok(())));
        items.len()
    });
    assert_eq!(counts, [0, 5, 2, 1]);
    let (_, answer) = ask(&inner, &Request::Identify);
    let identify = answer.identify.unwrap();
    assert!(identify.is_supported() && identify.granularity == Some(Granularity::Second));
    assert_eq!(identify.earliest_datestamp.unwrap().to_string(), "2025-12-31T08:10:00Z");
}

#[test]
fn wrong_arguments_have_the_errors_of_the_protocol() {
    let inner = repository(small());
    let fails = |raw: &str| {
        let arguments: Vec<_> =
            form_urlencoded::parse(raw.as_bytes()).map(|(name, value)| (name.into(), value.into())).collect();
        match respond(&inner, &mut inner.changing(), &arguments, raw) {
            Reply::Xml(text, 200) => read(text.as_bytes(), Options::default()).1.errors[0].code.clone(),
            _ => panic!("{raw}"),
        }
    };
    for (raw, code) in [
        ("", ErrorCode::BadVerb),
        ("verb=listrecords", ErrorCode::BadVerb),
        ("verb=Identify&verb=Identify", ErrorCode::BadVerb),
        ("verb=Identify&set=a", ErrorCode::BadArgument),
        ("verb=ListRecords", ErrorCode::BadArgument),
        ("verb=ListRecords&metadataPrefix=oai_dc&set=", ErrorCode::BadArgument),
        ("verb=ListRecords&metadataPrefix=oai_dc&from=2026", ErrorCode::BadArgument),
        ("verb=ListRecords&metadataPrefix=oai_dc&from=2026-01-02&until=2026-01-01", ErrorCode::BadArgument),
        (
            "verb=ListRecords&metadataPrefix=oai_dc&from=2026-01-02&until=2026-01-03T00:00:00Z",
            ErrorCode::BadArgument,
        ),
        ("verb=ListRecords&metadataPrefix=mods", ErrorCode::CannotDisseminateFormat),
        ("verb=ListRecords&metadataPrefix=oai_dc&from=2026-01-02", ErrorCode::NoRecordsMatch),
        ("verb=ListRecords&metadataPrefix=oai_dc&set=none", ErrorCode::NoRecordsMatch),
        ("verb=ListRecords&resumptionToken=x", ErrorCode::BadResumptionToken),
        ("verb=ListRecords&resumptionToken=x&metadataPrefix=oai_dc", ErrorCode::BadArgument),
        ("verb=GetRecord&identifier=x&metadataPrefix=oai_dc", ErrorCode::IdDoesNotExist),
    ] {
        assert_eq!(fails(raw), code, "{raw}");
    }
    let without_sets = repository(small().sets(0));
    assert!(ask(&without_sets, &Request::ListSets).1.has_error(&ErrorCode::NoSetHierarchy));
}

#[test]
fn dates_and_sets_select_and_changes_show_in_the_window_of_their_time() {
    let inner = repository(small());
    let before = inner.changing().world.now().timestamp();
    let changed = inner.changing().world.change(Changes { create: 2, update: 3, delete: 4 });
    let since = list(Verb::ListRecords, None, Window::since(before), Granularity::Second);
    let (headers, _) = harvest(&inner, since);
    let found: BTreeSet<_> = headers.iter().map(|header| header.identifier.clone()).collect();
    assert_eq!(found, changed.iter().map(|index| inner.identifier(*index)).collect());
    assert_eq!(headers.iter().filter(|header| header.is_deleted()).count(), 4);
    let (all, _) = harvest(&inner, list(Verb::ListIdentifiers, Some("group"), Window::ALL, Granularity::Day));
    let (one, _) =
        harvest(&inner, list(Verb::ListIdentifiers, Some("group:1"), Window::ALL, Granularity::Day));
    assert_eq!(all.len(), 97);
    assert!(one.len() == 24 && one.iter().all(|header| header.is_in("group:1")));
    // Both bounds are inclusive, to the second and to the day.
    let stamp = all[5].datestamp.unwrap().instant();
    let (exact, _) = harvest(
        &inner,
        list(Verb::ListIdentifiers, None, Window::between(stamp, stamp), Granularity::Second),
    );
    assert_eq!(exact.len(), 1);
}

#[test]
fn deletions_follow_the_policy() {
    for (deletions, shown) in [(Deletions::No, 90), (Deletions::Transient, 95), (Deletions::Persistent, 95)] {
        let inner = repository(small().deletions(deletions));
        for index in 0..5 {
            inner.changing().world.delete(index * 7);
        }
        assert_eq!(everything(&inner).0.len(), shown, "{deletions:?}");
        inner.changing().world.forget_deletions();
        assert_eq!(everything(&inner).0.len(), 90, "{deletions:?}");
    }
}

#[test]
fn days_are_days() {
    let inner = repository(small().unit(Unit::Day).seconds_apart(86_400));
    let (headers, pages) = harvest(&inner, list(Verb::ListRecords, None, Window::ALL, Granularity::Day));
    assert!(pages.iter().all(|page| page.quirks.is_empty()));
    assert_eq!(headers[0].datestamp.unwrap().to_string().len(), 10);
    let until = headers[9].datestamp.unwrap().instant();
    let window = Window { from: None, until: Some(until) };
    assert_eq!(harvest(&inner, list(Verb::ListIdentifiers, None, window, Granularity::Day)).0.len(), 10);
}

/// What a full list shows under a fault: headers, distinct records, pages.
fn under(fault: Fault) -> (usize, usize, usize, Vec<Quirk>) {
    let inner = repository(small().deleted_every(10));
    inner.changing().faults.set(fault);
    let (headers, pages) = everything(&inner);
    let mut quirks = oaipmh::Quirks::default();
    pages.iter().for_each(|page| quirks.merge(&page.quirks));
    (headers.len(), distinct(&headers), pages.len(), quirks.iter().map(|(quirk, _)| quirk).collect())
}

#[test]
fn each_fault_shows_as_it_is_meant() {
    for (fault, expected) in [
        (Fault::TokenMissing(3), (40, 40, 4, vec![])),
        // The first page comes once with the token before its repetition shows.
        (Fault::TokenLoop(2), (50, 30, 5, vec![])),
        (Fault::UnchangedToken, (95, 95, 10, vec![])),
        (Fault::TokenAdvances, (95, 95, 10, vec![])),
        (Fault::OffsetTokens, (95, 95, 10, vec![])),
        (Fault::RepeatedRecord, (104, 95, 10, vec![])),
        (Fault::EmptyPages(2), (95, 95, 28, vec![Quirk::EmptyPage])),
        (Fault::TokenAfterEnd { error: false }, (95, 95, 11, vec![Quirk::EmptyPage])),
        (Fault::TokenAfterEnd { error: true }, (95, 95, 11, vec![])),
        (Fault::DeletedAndLive, (104, 95, 10, vec![])),
        (Fault::PromisedDeletesMissing, (86, 86, 9, vec![])),
        (Fault::IllegalCharacters(7), (95, 95, 10, vec![Quirk::IllegalCharacter])),
        (Fault::Latin1(7), (95, 95, 10, vec![Quirk::InvalidUtf8])),
        // One of them is cut in its header.
        (Fault::BrokenRecord(7), (94, 94, 10, vec![Quirk::BrokenRecord])),
        (Fault::InnerXmlDeclaration(7), (95, 95, 10, vec![Quirk::InnerXmlDeclaration])),
        (Fault::EmptyMetadata(7), (95, 95, 10, vec![Quirk::EmptyMetadata])),
        (Fault::UndeclaredPrefix(7), (95, 95, 10, vec![])),
        (Fault::EnvelopeNamespaces, (95, 95, 10, vec![])),
        (Fault::Prefixed, (95, 95, 10, vec![Quirk::PrefixedOaiNamespace])),
        (Fault::TrailingBytes, (95, 95, 10, vec![Quirk::TrailingBytes])),
        (Fault::FractionalDatestamps, (95, 95, 10, vec![Quirk::DatestampPrecision])),
        (Fault::OddResponseDate, (95, 95, 10, vec![Quirk::OddResponseDate])),
        (Fault::TokenVerbatim, (10, 10, 2, vec![])),
        (Fault::EncodedToken, (10, 10, 2, vec![])),
    ] {
        assert_eq!(under(fault.clone()), expected, "{fault:?}");
    }
}

#[test]
fn tokens_in_their_odd_forms_lead_on() {
    for (fault, form) in
        [(Fault::TokenVerbatim, TokenForm::Verbatim), (Fault::EncodedToken, TokenForm::Decoded)]
    {
        let inner = repository(small());
        inner.changing().faults.set(fault.clone());
        let first = list(Verb::ListRecords, None, Window::ALL, Granularity::Second);
        // The characters of a token that a query can hold unencoded.
        assert_eq!(harvest_by(&inner, first, form).0.len(), 95, "{fault:?}");
    }
}

#[test]
fn expired_tokens_are_refused() {
    let inner = repository(small());
    let (_, answer) = ask(&inner, &list(Verb::ListRecords, None, Window::ALL, Granularity::Second));
    let token = answer.resumption.unwrap().token.unwrap();
    let next = Request::resume(Verb::ListRecords, token);
    assert!(ask(&inner, &next).1.errors.is_empty());
    inner.changing().tokens.expire();
    assert!(ask(&inner, &next).1.has_error(&ErrorCode::BadResumptionToken));
}

#[test]
fn offset_tokens_skip_a_record_for_each_that_leaves_the_window() {
    let inner = repository(small());
    inner.changing().faults.set(Fault::OffsetTokens);
    let until = inner.changing().world.now().timestamp();
    let mut request =
        list(Verb::ListRecords, None, Window { from: None, until: Some(until) }, Granularity::Second);
    let mut headers = Vec::new();
    for page in 0.. {
        let (items, answer) = ask(&inner, &request);
        headers.extend(items.into_iter().filter_map(|item| match item {
            Item::Record(record) => Some(record.header),
            _ => None,
        }));
        if page == 2 {
            for index in 0..5 {
                inner.changing().world.update(index);
            }
        }
        let Some(token) = answer.resumption.and_then(|resumption| resumption.token) else { break };
        request = Request::resume(Verb::ListRecords, token);
    }
    assert_eq!(distinct(&headers), 90);
}

#[test]
fn metadata_are_the_same_in_lists_and_alone_wherever_they_are_declared() {
    let inner = repository(small().files(1));
    let document = |items: &[Item], at: usize| match &items[at] {
        Item::Record(record) => record.metadata.as_ref().unwrap().document.clone(),
        other => panic!("{other:?}"),
    };
    let all = list(Verb::ListRecords, None, Window::ALL, Granularity::Second);
    let listed = document(&ask(&inner, &all).0, 3);
    let alone = document(&ask(&inner, &Request::get_record(inner.identifier(3), "oai_dc")).0, 0);
    assert_eq!(listed, alone);
    inner.changing().faults.set(Fault::EnvelopeNamespaces);
    let enveloped = document(&ask(&inner, &all).0, 3);
    // Only xsi:schemaLocation stands on the root where it declares its prefixes.
    assert!(enveloped.contains("Record 3, version 0") && !enveloped.contains("xsi"));
    let mets = Request::get_record(inner.identifier(3), "mets");
    let limits = oaipmh::Limits::default();
    let (one, other) = (document(&ask(&inner, &mets).0, 0), document(&ask(&inner, &mets).0, 0));
    assert_ne!(one, other, "CREATEDATE is the time of the answer");
    assert_eq!(oaipmh::comparison_digest(&one, &limits), oaipmh::comparison_digest(&other, &limits));
}
