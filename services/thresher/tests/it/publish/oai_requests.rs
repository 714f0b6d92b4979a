//! The OAI-PMH repository beside a published set: what it answers to single requests.

use model::{ResourceUri, SourceId};
use oaipmh::{
    Answer, DeletedRecord, ErrorCode, Granularity, Item, Options, Record, RecordHeader, StatelessToken,
    Strictness,
};
use reqwest::{Client, Method, Response, StatusCode};
use simulated_source::{RepositorySpec, SimulatedRepository, SourceSpec};
use tempfile::TempDir;
use testkit::waiting::{found, until};

use super::{Served, a_second_passes};
use crate::common::{Destination, source};
use crate::oai::Case;

/// A repository that is asked.
pub(super) struct Repository {
    url: String,
    client: Client,
}

impl Repository {
    pub(super) fn of(served: &Served) -> Self {
        Self { url: served.oai(), client: Client::builder().no_proxy().build().unwrap() }
    }

    /// The answer to a query, which is as the protocol says.
    pub(super) async fn ask(&self, query: &str) -> (Vec<Item>, Answer) {
        let response = self.client.get(format!("{}?{query}", self.url)).send().await.unwrap();
        read(query, response).await
    }

    async fn post(&self, form: &str) -> (Vec<Item>, Answer) {
        let request = self.client.post(&self.url).header("content-type", "application/x-www-form-urlencoded");
        read(form, request.body(form.to_owned()).send().await.unwrap()).await
    }

    /// The code of the error that a query is answered with.
    async fn refused(&self, query: &str) -> ErrorCode {
        let (_, answer) = self.ask(query).await;
        let [error] = &answer.errors[..] else { panic!("{query}: {answer:?}") };
        assert!(!error.message.is_empty());
        error.code.clone()
    }

    /// The headers of a list of one page.
    async fn headers(&self, query: &str) -> Vec<RecordHeader> {
        let (items, answer) = self.ask(query).await;
        assert!(answer.resumption.is_none() && answer.errors.is_empty(), "{query}: {answer:?}");
        let header = |item| match item {
            Item::Header(header) => *header,
            Item::Record(record) => record.header,
            other => panic!("{query}: {other:?}"),
        };
        items.into_iter().map(header).collect()
    }
}

#[expect(clippy::disallowed_methods, reason = "a small body of our own server")]
async fn read(query: &str, response: Response) -> (Vec<Item>, Answer) {
    assert_eq!(response.status(), StatusCode::OK, "{query}");
    assert_eq!(response.headers()["content-type"], "text/xml; charset=utf-8");
    let options = Options {
        strictness: Strictness::Strict,
        granularity: Some(Granularity::Second),
        ..Options::default()
    };
    let (items, answer, end) = oaipmh::read(&response.bytes().await.unwrap(), options);
    end.unwrap_or_else(|error| panic!("{query}: {error}"));
    assert!(answer.complete && answer.quirks.is_empty(), "{query}: {answer:?}");
    (items, answer)
}

/// 30 records in 4 sets, of which three changed and two were deleted a day later: some seconds later here.
async fn case() -> Case {
    let case = Case::in_step(RepositorySpec::default().records(30)).await;
    a_second_passes().await;
    case.repository.advance(2 * 86_400);
    [1, 2, 3].into_iter().for_each(|index| case.repository.update(index));
    [4, 5].into_iter().for_each(|index| case.repository.delete(index));
    case.sync(&[]).exits(0);
    case
}

#[tokio::test(flavor = "multi_thread")]
async fn each_verb_is_answered_by_get_and_by_post() {
    let case = case().await;
    let served = Served::start(&case.copy);
    let repository = Repository::of(&served);

    let (_, answer) = repository.ask("verb=Identify").await;
    assert_eq!(answer.request.base_url, served.oai());
    let identify = answer.identify.expect("a description");
    assert_eq!(identify.base_url, served.oai());
    assert_eq!(identify.granularity, Some(Granularity::Second));
    assert_eq!(identify.deleted_record, Some(DeletedRecord::Persistent));
    assert_eq!(identify.admin_emails, ["postmaster@127.0.0.1"]);
    assert!(identify.repository_name.ends_with(" (copy)"), "{identify:?}");
    let earliest = identify.earliest_datestamp.expect("a time").instant();

    let (formats, _) = repository.ask("verb=ListMetadataFormats").await;
    let [Item::Format(format)] = &formats[..] else { panic!("{formats:?}") };
    assert_eq!(
        (&*format.prefix, &*format.namespace),
        ("oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc/")
    );
    let item = case.repository.identifier(7);
    let (formats, _) = repository.ask(&format!("verb=ListMetadataFormats&identifier={item}")).await;
    assert_eq!(formats.len(), 1);

    let (sets, _) = repository.ask("verb=ListSets").await;
    let specs: Vec<&str> = sets
        .iter()
        .map(|item| if let Item::Set(set) = item { &*set.spec } else { panic!("{item:?}") })
        .collect();
    for spec in ["group", "group:0", "group:3"] {
        assert!(specs.contains(&spec), "{specs:?}");
    }

    let all = "verb=ListIdentifiers&metadataPrefix=oai_dc";
    let headers = repository.headers(all).await;
    assert_eq!(headers.len(), 30);
    assert_eq!(headers.iter().filter(|header| header.is_deleted()).count(), 2);
    assert!(headers.iter().all(|header| header.datestamp.expect("a time").instant() >= earliest));
    let records = repository.headers("verb=ListRecords&metadataPrefix=oai_dc").await;
    assert_eq!(records, headers);
    let (items, answer) = repository.post(all).await;
    assert_eq!((items.len(), answer.request.get("verb")), (30, Some("ListIdentifiers")));

    for (index, is_deleted) in [(1, false), (4, true), (20, false)] {
        let item = case.repository.identifier(index);
        let query = format!("verb=GetRecord&metadataPrefix=oai_dc&identifier={item}");
        let (items, _) = repository.ask(&query).await;
        let [Item::Record(record)] = &items[..] else { panic!("{items:?}") };
        let listed = headers.iter().find(|header| header.identifier == item).expect("it is listed");
        assert_eq!((&record.header, record.metadata.is_none()), (listed, is_deleted));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_and_sets_select_exactly() {
    let case = case().await;
    let served = Served::start(&case.copy);
    let repository = Repository::of(&served);
    let all = repository.headers("verb=ListIdentifiers&metadataPrefix=oai_dc").await;
    let last = all.last().and_then(|header| header.datestamp).expect("a time").instant();
    let first = all.first().and_then(|header| header.datestamp).expect("a time").instant();
    assert!(first < last);
    let time = |time| Granularity::Second.format(time);
    let listed = async |arguments: &str| {
        repository.headers(&format!("verb=ListIdentifiers&metadataPrefix=oai_dc&{arguments}")).await
    };
    let at = |header: &RecordHeader| Granularity::Second.floor(header.datestamp.unwrap().instant());
    for (from, until) in
        [(Some(last), None), (None, Some(first)), (Some(first), Some(first)), (Some(first), Some(last))]
    {
        let from_text = from.map(|from| format!("from={}", time(from)));
        let until_text = until.map(|until| format!("until={}", time(until)));
        let arguments: Vec<String> = from_text.into_iter().chain(until_text).collect();
        let found = listed(&arguments.join("&")).await;
        let (from, until) = (
            from.map(|time| Granularity::Second.floor(time)),
            until.map(|time| Granularity::Second.floor(time)),
        );
        let is_in = |header: &&RecordHeader| {
            from.is_none_or(|from| at(header) >= from) && until.is_none_or(|until| at(header) <= until)
        };
        assert_eq!(found, all.iter().filter(is_in).cloned().collect::<Vec<_>>(), "{arguments:?}");
    }
    let day = Granularity::Day.format(last);
    assert!(!listed(&format!("from={day}&until={day}")).await.is_empty());
    for set in ["group", "group:1"] {
        let found = listed(&format!("set={set}")).await;
        assert_eq!(
            found,
            all.iter().filter(|header| header.is_in(set)).cloned().collect::<Vec<_>>(),
            "{set}"
        );
        assert!(!found.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_cannot_be_answered_get_the_errors_of_the_protocol() {
    let case = case().await;
    let served = Served::start(&case.copy);
    let repository = Repository::of(&served);
    let (known, gone) = (case.repository.identifier(1), case.repository.identifier(4));
    let list = "verb=ListRecords&metadataPrefix=oai_dc";
    for (query, code) in [
        (String::new(), ErrorCode::BadVerb),
        ("verb=Nothing".to_owned(), ErrorCode::BadVerb),
        ("verb=Identify&verb=Identify".to_owned(), ErrorCode::BadVerb),
        ("verb=Identify&set=a".to_owned(), ErrorCode::BadArgument),
        ("verb=ListRecords".to_owned(), ErrorCode::BadArgument),
        (format!("{list}&set="), ErrorCode::BadArgument),
        (format!("{list}&from=yesterday"), ErrorCode::BadArgument),
        (format!("{list}&from=2026-01-01&until=2026-01-01T00:00:00Z"), ErrorCode::BadArgument),
        (format!("{list}&from=2026-01-02&until=2026-01-01"), ErrorCode::BadArgument),
        (format!("{list}&resumptionToken=x"), ErrorCode::BadArgument),
        (format!("{list}&set=%01"), ErrorCode::BadArgument),
        ("verb=ListRecords&metadataPrefix=mets".to_owned(), ErrorCode::CannotDisseminateFormat),
        (format!("{list}&until=1990-01-01"), ErrorCode::NoRecordsMatch),
        (format!("{list}&from=2990-01-01"), ErrorCode::NoRecordsMatch),
        (format!("{list}&set=group:99"), ErrorCode::NoRecordsMatch),
        (format!("{list}&set=gro"), ErrorCode::NoRecordsMatch),
        ("verb=ListRecords&resumptionToken=x".to_owned(), ErrorCode::BadResumptionToken),
        ("verb=ListSets&resumptionToken=x".to_owned(), ErrorCode::BadResumptionToken),
        ("verb=GetRecord&metadataPrefix=oai_dc".to_owned(), ErrorCode::BadArgument),
        ("verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:none:1".to_owned(), ErrorCode::IdDoesNotExist),
        (
            format!("verb=GetRecord&metadataPrefix=mets&identifier={known}"),
            ErrorCode::CannotDisseminateFormat,
        ),
        ("verb=ListMetadataFormats&identifier=oai:none:1".to_owned(), ErrorCode::IdDoesNotExist),
        (format!("verb=ListMetadataFormats&identifier={gone}"), ErrorCode::NoMetadataFormats),
    ] {
        assert_eq!(repository.refused(&query).await, code, "{query}");
    }
    // What was not understood is not repeated.
    let (_, answer) = repository.ask("verb=Identify&set=a").await;
    assert!(answer.request.arguments.is_empty());
    let (_, answer) = repository.ask("verb=ListRecords&resumptionToken=x").await;
    assert_eq!(answer.request.get("resumptionToken"), Some("x"));

    let client = Client::builder().no_proxy().build().unwrap();
    let put = client.request(Method::PUT, served.oai()).send().await.unwrap();
    assert_eq!(
        (put.status(), &put.headers()["allow"]),
        (StatusCode::METHOD_NOT_ALLOWED, &"GET, HEAD, POST".parse().unwrap())
    );
    let json =
        client.post(served.oai()).header("content-type", "application/json").body("{}").send().await.unwrap();
    assert_eq!(json.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let form = client.post(served.oai()).header("content-type", "application/x-www-form-urlencoded");
    let long = form.body("a".repeat(100_000)).send().await.unwrap();
    assert_eq!(long.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_hold_through_kills_and_those_of_others_are_refused() {
    let case = Case::in_step(RepositorySpec::default().records(300)).await;
    let mut served = Served::start(&case.copy);
    let page = "verb=ListRecords&metadataPrefix=oai_dc&set=group";
    let (items, answer) = Repository::of(&served).ask(page).await;
    let resumption = answer.resumption.expect("300 records are two pages");
    assert_eq!((items.len(), resumption.cursor, &resumption.expires), (250, Some(0), &None));
    let token = resumption.token.expect("a token");
    let rest = format!("verb=ListRecords&resumptionToken={}", token.as_str());
    let (first, answer) = Repository::of(&served).ask(&rest).await;
    let last = answer.resumption.expect("the last page of several says so");
    assert_eq!((first.len(), last.token, last.cursor), (50, None, Some(250)));
    served.restart(&case.copy);
    assert_eq!(Repository::of(&served).ask(&rest).await.0, first);

    let read = StatelessToken::decode(&token).expect("a token without state");
    let changed = |change: &dyn Fn(&mut StatelessToken)| {
        let mut token = read.clone();
        change(&mut token);
        token.encode()
    };
    let other_verb = format!("verb=ListIdentifiers&resumptionToken={}", token.as_str());
    let other_position = changed(&|token| token.after.push('0'));
    let other_format = changed(&|token| token.selection.prefix = "mets".to_owned());
    let cut = &token.as_str()[..token.as_str().len() - 9];
    let repository = Repository::of(&served);
    assert_eq!(repository.refused(&other_verb).await, ErrorCode::BadResumptionToken);
    for bad in [other_position.as_str(), other_format.as_str(), cut, "a.b"] {
        let query = format!("verb=ListRecords&resumptionToken={bad}");
        assert_eq!(repository.refused(&query).await, ErrorCode::BadResumptionToken, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_record_is_shown_as_deleted_and_harvesters_are_told() {
    let case = Case::in_step(RepositorySpec::default().records(20)).await;
    let folder = TempDir::with_prefix("takedown-").unwrap();
    let withdrawn = folder.path().join("withdrawn.txt");
    std::fs::write(&withdrawn, "# nothing yet\n").unwrap();
    let served = Served::with(&case.copy, &["--takedown", withdrawn.to_str().unwrap()]);
    let ours = served.oai();
    let second = Destination::directory();
    second.sync(&ours).exits(0);
    assert_eq!(second.present().len(), 20);

    let uri: ResourceUri = case.uri(3).parse().unwrap();
    std::fs::write(&withdrawn, format!("{uri}\n")).unwrap();
    let item = case.repository.identifier(3);
    let query = format!("verb=GetRecord&metadataPrefix=oai_dc&identifier={item}");
    let repository = Repository::of(&served);
    found("it is shown as deleted", async || {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        let (items, _) = repository.ask(&query).await;
        matches!(&items[..], [Item::Record(record)] if record.metadata.is_none()).then_some(())
    })
    .await;
    let copied = uri.as_str().replace(&case.repository.base_url(), &ours);
    until("the second copy has deleted it", || {
        second.sync(&ours).exits(0);
        second.state(&copied).as_deref() == Some("deleted")
    })
    .await;
    std::fs::write(&withdrawn, "").unwrap();
    until("the second copy has it again", || {
        second.sync(&ours).exits(0);
        second.state(&copied).as_deref() == Some("present")
    })
    .await;
    assert_eq!(second.present().len(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_of_records_are_beside_others_and_tokens_open_what_they_name() {
    let case = Case::in_step(RepositorySpec::default().records(20)).await;
    let other = source(SourceSpec::default().resources(5)).await;
    case.copy.sync_with(&other.well_known(), &["--view", "none"]).exits(0);
    let id = |url: &str| SourceId::of_entry(&url.parse().unwrap()).as_str().to_owned();
    let (records, files) = (id(&case.repository.base_url()), id(&other.well_known()));
    let folder = TempDir::with_prefix("tokens-").unwrap();
    let tokens = folder.path().join("tokens.yaml");
    let (one, all) = ("a-token-for-the-files-set", "a-token-for-all-of-the-sets");
    let text = format!("- {{name: one, token: {one}, sets: [{files}]}}\n- {{name: all, token: {all}}}\n");
    std::fs::write(&tokens, text).unwrap();
    let served = Served::with(&case.copy, &["--all-sources", "--tokens", tokens.to_str().unwrap()]);
    let client = Client::builder().no_proxy().build().unwrap();
    let status = async |set: &str, token: &str| {
        let request = client.get(format!("{}{set}/oai?verb=Identify", served.base));
        let request = if token.is_empty() { request } else { request.bearer_auth(token) };
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(
        (status(&records, one).await, status(&records, all).await, status(&records, "").await),
        (403, 200, 401)
    );
    assert_eq!((status(&files, one).await, status(&files, "").await), (404, 401));
    // Above the sets: what a token does not open is not there.
    let all_sets = client.get(format!("{}oai?verb=Identify", served.base));
    let above = async |token: &str| all_sets.try_clone().unwrap().bearer_auth(token).send().await.unwrap();
    assert_eq!((above(one).await.status().as_u16(), above(all).await.status().as_u16()), (404, 200));
    assert_eq!(all_sets.try_clone().unwrap().send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_are_sets_of_the_repository_of_all() {
    let case = Case::in_step(RepositorySpec::default().records(300)).await;
    let second =
        SimulatedRepository::start(RepositorySpec::default().seed(2).records(20).sets(0)).await.unwrap();
    case.copy.sync_with(&second.base_url(), &["--view", "none"]).exits(0);
    let id = |url: &str| SourceId::of_entry(&url.parse().unwrap()).as_str().to_owned();
    let (large, small) = (id(&case.repository.base_url()), id(&second.base_url()));
    let served = Served::with(&case.copy, &["--all-sources"]);
    let all = Repository::of(&served);
    let (_, answer) = all.ask("verb=Identify").await;
    assert_eq!(answer.identify.unwrap().repository_name, "Copies of 2 repositories");
    let (sets, _) = all.ask("verb=ListSets").await;
    let has = |spec: &str| sets.iter().any(|item| matches!(item, Item::Set(set) if set.spec == spec));
    assert!(has(&large) && has(&small) && has(&format!("{large}:group:1")), "{sets:?}");
    let listed = async |first: String| {
        let mut found = Vec::new();
        let mut query = first;
        loop {
            let (items, answer) = all.ask(&query).await;
            for item in items {
                let Item::Record(record) = item else { panic!("{item:?}") };
                found.push(record.header.sets);
            }
            let Some(token) = answer.resumption.and_then(|resumption| resumption.token) else { return found };
            query = format!("verb=ListRecords&resumptionToken={}", token.as_str());
        }
    };
    let list = "verb=ListRecords&metadataPrefix=oai_dc";
    let found = listed(list.to_owned()).await;
    assert_eq!(found.len(), 320);
    assert_eq!(found.iter().filter(|sets| **sets == [small.clone()]).count(), 20);
    assert_eq!(listed(format!("{list}&set={large}")).await.len(), 300);
    assert_eq!(listed(format!("{list}&set={small}")).await.len(), 20);
    let of_group = listed(format!("{list}&set={large}:group:1")).await;
    assert!(!of_group.is_empty() && of_group.len() < 300);
    assert!(of_group.iter().all(|sets| *sets == [format!("{large}:group:1")]), "{of_group:?}");
    let item = case.repository.identifier(200);
    let (items, _) = all.ask(&format!("verb=GetRecord&metadataPrefix=oai_dc&identifier={item}")).await;
    let is_it = |record: &Record| record.header.sets.iter().all(|set| set.starts_with(&large));
    assert!(matches!(&items[..], [Item::Record(record)] if is_it(record)), "{items:?}");
}
