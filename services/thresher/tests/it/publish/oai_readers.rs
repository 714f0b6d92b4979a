//! The OAI-PMH repository of all sets, for readers of some of them.

use model::SourceId;
use reqwest::Client;
use simulated_source::{RepositorySpec, SimulatedRepository};
use tempfile::TempDir;

use super::Served;
use crate::oai::Case;

/// Two repositories in one harvest: of 20 records, and of 12.
struct Two {
    case: Case,
    ids: [String; 2],
}

impl Two {
    async fn new() -> Self {
        let case = Case::in_step(RepositorySpec::default().records(20)).await;
        let second = RepositorySpec::default().seed(2).records(12).sets(0);
        let second = SimulatedRepository::start(second).await.unwrap();
        case.copy.sync_with(&second.base_url(), &["--view", "none"]).exits(0);
        let id = |url: &str| SourceId::of_entry(&url.parse().unwrap()).to_string();
        let ids = [id(&case.repository.base_url()), id(&second.base_url())];
        Self { case, ids }
    }
}

/// A reader: where it is, and its token.
#[derive(Debug, Clone, Copy)]
struct From(&'static str, Option<&'static str>);

/// Asks the repository of all sets by POST. Returns the status, and the answer.
#[expect(clippy::disallowed_methods, reason = "a small body of our own server")]
async fn ask(served: &Served, From(address, token): From, form: &str) -> (u16, String) {
    let client = Client::builder().no_proxy().build().unwrap();
    let request = client.post(format!("{}oai", served.base)).header("x-forwarded-for", address);
    let request = token.into_iter().fold(request, |request, token| request.bearer_auth(token));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let answer = request.body(form.to_owned()).send().await.unwrap();
    assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
    let shared = answer.headers().get("cache-control").map(|value| value.to_str().unwrap().to_owned());
    assert!(shared.is_none_or(|value| value.starts_with("private")), "caches may not share it");
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// All pages of the list of headers.
async fn list(served: &Served, from: From) -> String {
    let mut pages = String::new();
    let mut form = "verb=ListIdentifiers&metadataPrefix=oai_dc".to_owned();
    loop {
        let (status, page) = ask(served, from, &form).await;
        assert_eq!(status, 200, "{from:?}: {page}");
        pages.push_str(&page);
        let token = page.split_once("</resumptionToken>").and_then(|(before, _)| before.rsplit_once('>'));
        let Some((_, token)) = token.filter(|(_, token)| !token.is_empty()) else { return pages };
        form = format!("verb=ListIdentifiers&resumptionToken={token}");
    }
}

/// Checks that a reader finds the records of these sets, and none of others, whatever it asks.
async fn finds(served: &Served, two: &Two, from: From, expected: [bool; 2]) {
    let text = list(served, from).await;
    let counts = [20, 12].into_iter().zip(expected).filter(|(_, is_open)| *is_open).map(|(count, _)| count);
    assert_eq!(text.matches("<identifier>").count(), counts.sum::<usize>(), "{from:?}: {text}");
    let (_, sets) = ask(served, from, "verb=ListSets").await;
    for answer in [&text, &sets] {
        assert_eq!(two.ids.each_ref().map(|id| answer.contains(id.as_str())), expected, "{from:?}: {answer}");
    }
    for (id, is_open) in two.ids.iter().zip(expected) {
        let list = format!("verb=ListIdentifiers&metadataPrefix=oai_dc&set={id}");
        let (_, list) = ask(served, from, &list).await;
        assert_eq!(list.contains("noRecordsMatch"), !is_open, "{from:?}: {list}");
    }
    let item = two.case.repository.identifier(15);
    let item = format!("verb=GetRecord&metadataPrefix=oai_dc&identifier={item}");
    let (_, record) = ask(served, from, &item).await;
    assert_eq!(record.contains("idDoesNotExist"), !expected[0], "{from:?}: {record}");
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_find_the_sets_that_their_networks_and_tokens_open() {
    let two = Two::new().await;
    let [first, second] = &two.ids;
    let near = format!("{first}=10.2.0.0/16");
    let networks = ["--all-sources", "--allow-readers", &near, "--trusted-proxy", "127.0.0.0/8"];
    let mut served = Served::with(&two.case.copy, &networks);
    finds(&served, &two, From("10.2.0.1", None), [true, true]).await;
    finds(&served, &two, From("10.3.0.1", None), [false, true]).await;

    let folder = TempDir::with_prefix("tokens-").unwrap();
    let tokens = folder.path().join("tokens.yaml");
    let (one, all) = ("a-token-for-the-first-set", "a-token-for-all-of-the-sets");
    let text = format!("- {{name: one, token: {one}, sets: [{first}]}}\n- {{name: all, token: {all}}}\n");
    std::fs::write(&tokens, text).unwrap();
    let options = [&networks[..], &["--tokens", tokens.to_str().unwrap()]].concat();
    served.restart_with(&two.case.copy, &options);
    finds(&served, &two, From("10.2.0.1", Some(all)), [true, true]).await;
    finds(&served, &two, From("10.3.0.1", Some(all)), [false, true]).await;
    finds(&served, &two, From("10.2.0.1", Some(one)), [true, false]).await;
    let (status, text) = ask(&served, From("10.3.0.1", Some(one)), "verb=Identify").await;
    assert_eq!(status, 403, "of the first it is outside the network, of the second it has no token: {text}");
    let (status, text) = ask(&served, From("10.2.0.1", None), "verb=Identify").await;
    assert_eq!(status, 401, "{text}");

    // No reader finds both where each has networks of its own.
    let far = format!("{second}=10.3.0.0/16");
    let options = [&networks[..], &["--allow-readers", &far]].concat();
    served.restart_with(&two.case.copy, &options);
    finds(&served, &two, From("10.2.0.1", None), [true, false]).await;
    finds(&served, &two, From("10.3.0.1", None), [false, true]).await;
    let (status, text) = ask(&served, From("192.0.2.1", None), "verb=Identify").await;
    assert_eq!(status, 403, "{text}");
}
