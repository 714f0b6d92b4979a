//! Whole jobs, over real HTTP: server behaviours, and the results of the job.

use std::ops::Range;
use std::sync::Arc;

use bus::{HandlerResult, MemoryBus};
use fetcher::{Fetcher, FetcherConfig};
use fixity::{Computed, Sha256};
use fleet::Credentials;
use model::{
    Assurance, Bitstream, Declaration, Failure, FetchItem, FetchJob, FetchedResult, JobId, Location, Origin,
    ProblemReason, Robots, RunId, Seq, StoredBitstream, SystemClock, Terms, Validators, VerifyJob,
};
use secrets::Vars;
use store::Store;
use testkit::scripted::{Reply, ScriptedServer};
use web::{Client, WebConfig};

const LARGE: usize = 300_000;

/// A fetcher with its server and its store.
struct Case {
    server: ScriptedServer,
    store: Store,
    config: FetcherConfig,
}

impl Case {
    async fn new() -> Self {
        let server = ScriptedServer::start().await.expect("a free port on loopback");
        Self { server, store: Store::in_memory(), config: FetcherConfig::default() }
    }

    fn item(&self, path: &str) -> FetchItem {
        let uri = self.server.uri(path).parse().expect("an http URI");
        FetchItem {
            uri,
            seq: Seq::new(1),
            declaration: Declaration::default(),
            listed_until: None,
            held: Validators::default(),
            repair: false,
            held_type: None,
            from: None,
            patch: None,
        }
    }

    fn job(&self, items: Vec<FetchItem>) -> FetchJob {
        let origin = Origin::of(&items[0].uri.to_url()).expect("a URL with a host");
        let source = "case".parse().expect("a source id");
        FetchJob { id: JobId::fresh(), source, run: RunId::fresh(), origin, terms: Terms::default(), items }
    }

    fn fetcher(&self) -> Fetcher {
        let client = Client::new(WebConfig::default()).expect("a client");
        let bus = Arc::new(MemoryBus::new(4));
        let clock = Arc::new(SystemClock);
        Fetcher::new(client, self.store.clone(), bus, clock, self.config.clone())
    }

    async fn fetch(&self, items: Vec<FetchItem>) -> VerifyJob {
        self.fetcher().fetch(&self.job(items)).await.expect("a store in memory does not fail")
    }

    async fn fetch_one(&self, path: &str) -> (FetchedResult, u64) {
        let mut job = self.fetch(vec![self.item(path)]).await;
        (job.items.remove(0).result, job.requests)
    }

    /// The stored bytes, hashed again while they are read.
    async fn bytes(&self, stored: &StoredBitstream) -> bytes::Bytes {
        let bitstream = Bitstream {
            location: stored.location.clone(),
            computed: stored.computed.clone(),
            assurance: Assurance::None,
            media_type: None,
            encoding: None,
            validators: Validators::default(),
            final_url: None,
            stored_at: "2026-01-01T00:00:00Z".parse().expect("a timestamp"),
        };
        self.store.read_verified(&bitstream).await.expect("what was stored can be read")
    }
}

fn stored(result: FetchedResult) -> StoredBitstream {
    match result {
        FetchedResult::Stored(stored) => Arc::unwrap_or_clone(stored),
        other => panic!("not stored: {other:?}"),
    }
}

fn failed(result: FetchedResult) -> Failure {
    match result {
        FetchedResult::Failed(failure) => failure,
        other => panic!("not failed: {other:?}"),
    }
}

fn large() -> Vec<u8> {
    (0..LARGE).map(|n| (n / 7 % 251) as u8).collect()
}

#[tokio::test]
async fn small_bodies_of_a_job_travel_in_one_pack() {
    let case = Case::new().await;
    let items: Vec<FetchItem> = (0..3)
        .map(|n| {
            let path = format!("/{n}");
            case.server.push(&path, Reply::ok(format!("body {n}")).header("content-type", "text/plain"));
            case.item(&path)
        })
        .collect();
    let job = case.fetch(items).await;
    assert_eq!(job.requests, 3);
    let mut packs = Vec::new();
    for (n, fetched) in job.items.into_iter().enumerate() {
        let stored = stored(fetched.result);
        assert_eq!(case.bytes(&stored).await, format!("body {n}"));
        assert_eq!(stored.media_type.as_deref(), Some("text/plain"));
        match stored.location {
            Location::Pack { pack, .. } => packs.push(pack),
            other => panic!("not in a pack: {other:?}"),
        }
    }
    packs.dedup();
    assert_eq!(packs.len(), 1);
}

#[tokio::test]
async fn without_packs_each_body_is_an_object_of_its_own() {
    let mut case = Case::new().await;
    case.config.pack_threshold_bytes = 0;
    case.server.push("/a", Reply::ok("abc"));
    let stored = stored(case.fetch_one("/a").await.0);
    assert_eq!(stored.location, Location::Object { sha256: Sha256::of(b"abc") });
    assert_eq!(case.bytes(&stored).await, "abc");
}

#[tokio::test]
async fn a_large_body_that_breaks_off_is_taken_up_where_it_stopped() {
    let case = Case::new().await;
    let body = large();
    let whole = Reply::ok(body.clone()).header("etag", "\"v1\"").cut_after(200_000);
    let range = format!("bytes 200000-{}/{LARGE}", LARGE - 1);
    let rest = Reply::status(206).body(body[200_000..].to_vec()).header("content-range", range);
    case.server.push("/a", whole).push("/a", rest.header("etag", "\"v1\""));
    let (result, requests) = case.fetch_one("/a").await;
    let stored = stored(result);
    assert_eq!(requests, 2);
    assert_eq!(stored.computed, Computed::of(&body));
    assert_eq!(case.bytes(&stored).await, body);
    let again = &case.server.requests_at("/a")[1];
    assert_eq!(again.header("range"), Some("bytes=200000-"));
    assert_eq!(again.header("if-range"), Some("\"v1\""));
}

/// A part of a body.
fn part(body: &[u8], bytes: Range<usize>, etag: &str) -> Reply {
    let range = format!("bytes {}-{}/{}", bytes.start, bytes.end - 1, body.len());
    Reply::status(206).body(body[bytes].to_vec()).header("content-range", range).header("etag", etag)
}

#[tokio::test]
async fn a_part_that_is_not_all_of_the_rest_does_not_pass_for_the_whole() {
    for (resumes, has_length) in [(3, true), (2, false), (1, true)] {
        let mut case = Case::new().await;
        case.config.max_resumes = resumes;
        let body = large();
        let whole = Reply::ok(body.clone()).header("etag", "\"v1\"").cut_after(200_000);
        case.server.push("/a", if has_length { whole } else { whole.without_length() });
        case.server.push("/a", part(&body, 200_000..250_000, "\"v1\""));
        case.server.push("/a", part(&body, 250_000..LARGE, "\"v1\""));
        let (result, requests) = case.fetch_one("/a").await;
        if resumes == 1 {
            assert_eq!((failed(result).reason, requests), (ProblemReason::Interrupted, 2));
            continue;
        }
        assert_eq!((stored(result).computed, requests), (Computed::of(&body), 3));
        assert_eq!(case.server.requests_at("/a")[2].header("range"), Some("bytes=250000-"));
    }
}

#[tokio::test]
async fn a_part_of_another_version_is_never_put_behind_what_came() {
    let (old, new) = (large(), vec![7_u8; LARGE]);
    let rest = || 200_000..LARGE;
    let range = format!("bytes 200000-{}/{LARGE}", LARGE - 1);
    let untagged = Reply::status(206).body(new[200_000..].to_vec()).header("content-range", range);
    for odd in [
        part(&new, rest(), "\"v2\""),
        part(&new[..LARGE - 1], 200_000..LARGE - 1, "\"v1\""),
        part(&new, rest(), "\"v1\"").header("content-encoding", "gzip"),
        part(&new, 200_001..LARGE, "\"v1\""),
        untagged,
        Reply::status(416),
    ] {
        let case = Case::new().await;
        case.server.push("/a", Reply::ok(old.clone()).header("etag", "\"v1\"").cut_after(200_000));
        case.server.push("/a", odd).push("/a", Reply::ok(new.clone()).header("etag", "\"v2\""));
        let (result, requests) = case.fetch_one("/a").await;
        let stored = stored(result);
        assert_eq!((stored.computed, requests), (Computed::of(&new), 3));
        assert_eq!(stored.validators.etag.as_deref(), Some("\"v2\""));
        assert_eq!(case.server.requests_at("/a")[2].header("range"), None);
    }
}

#[tokio::test]
async fn without_any_length_of_the_whole_a_part_is_not_taken_for_the_rest() {
    let case = Case::new().await;
    let body = large();
    let whole = || Reply::ok(body.clone()).header("etag", "\"v1\"");
    let part = Reply::status(206).body(body[200_000..250_000].to_vec()).header("etag", "\"v1\"");
    case.server.push("/a", whole().cut_after(200_000).without_length());
    case.server.push("/a", part.header("content-range", "bytes 200000-249999/*")).push("/a", whole());
    assert_eq!(stored(case.fetch_one("/a").await.0).computed, Computed::of(&body));
}

#[tokio::test]
async fn a_resumed_body_is_described_by_its_first_response() {
    const MODIFIED: &str = "Fri, 02 Jan 2026 03:04:05 GMT";
    let case = Case::new().await;
    let body = large();
    let whole = Reply::ok(body.clone()).header("etag", "\"v1\"").header("last-modified", MODIFIED);
    let whole = whole.header("content-type", "application/x-tar").header("content-encoding", "gzip");
    case.server.push("/a", whole.cut_after(200_000)).push("/a", part(&body, 200_000..LARGE, "\"v1\""));
    let stored = stored(case.fetch_one("/a").await.0);
    assert_eq!(stored.computed, Computed::of(&body));
    assert_eq!(stored.media_type.as_deref(), Some("application/x-tar"));
    assert_eq!(stored.encoding.as_deref(), Some("gzip"));
    assert_eq!(stored.validators.last_modified.as_deref(), Some(MODIFIED));
    assert_eq!(stored.modified, Some("2026-01-02T03:04:05Z".parse().unwrap()));
}

#[tokio::test]
async fn a_page_in_place_of_content_that_breaks_off_and_is_resumed_is_no_content() {
    for (html, reason) in [
        (CHALLENGE, ProblemReason::Challenged),
        ("<!DOCTYPE html><title>A landing page</title>", ProblemReason::UnexpectedHtml),
    ] {
        let case = Case::new().await;
        let html = format!("{html}{}", " ".repeat(4_000));
        case.server.push("/a", page(&html).header("etag", "\"v1\"").cut_after(2_048));
        case.server.push("/a", part(html.as_bytes(), 2_048..html.len(), "\"v1\""));
        let media_type = Some("application/pdf".to_owned());
        let declaration = Declaration { media_type, ..Declaration::default() };
        let mut job = case.fetch(vec![FetchItem { declaration, ..case.item("/a") }]).await;
        assert_eq!(failed(job.items.remove(0).result).reason, reason);
        case.server.assert_followed();
    }
}

#[tokio::test]
async fn a_body_that_has_changed_since_it_broke_off_is_begun_anew() {
    let case = Case::new().await;
    case.server.push("/a", Reply::ok(large()).header("etag", "\"v1\"").cut_after(200_000));
    case.server.push("/a", Reply::ok("another version").header("etag", "\"v2\""));
    let stored = stored(case.fetch_one("/a").await.0);
    assert_eq!(case.bytes(&stored).await, "another version");
}

#[tokio::test]
async fn without_a_strong_validator_a_broken_body_is_a_failure_that_may_be_tried_again() {
    let case = Case::new().await;
    case.server.push("/a", Reply::ok(large()).header("etag", "W/\"v1\"").cut_after(200_000));
    let failure = failed(case.fetch_one("/a").await.0);
    assert_eq!(failure.reason, ProblemReason::Interrupted);
    case.server.assert_followed();
}

#[tokio::test]
async fn a_server_that_asks_for_patience_is_not_asked_for_the_rest_of_the_job() {
    let case = Case::new().await;
    case.server.push("/a", Reply::status(429).header("retry-after", "30"));
    let job = case.fetch(vec![case.item("/a"), case.item("/b"), case.item("/c")]).await;
    let results: Vec<FetchedResult> = job.items.into_iter().map(|fetched| fetched.result).collect();
    assert!(matches!(&results[0], FetchedResult::Failed(f) if f.reason == ProblemReason::Throttled));
    assert_eq!(results[1..], [FetchedResult::Deferred, FetchedResult::Deferred]);
    case.server.assert_followed();
}

#[tokio::test]
async fn what_a_server_says_of_many_resources_never_exceeds_a_message() {
    const ITEMS: usize = 500;
    let case = Case::new().await;
    let paths: Vec<String> = (0..ITEMS).map(|n| format!("/{n}")).collect();
    for path in &paths {
        // Each takes two bytes in JSON, so all of them together take a MiB.
        case.server.push(path, Reply::ok("a").header("etag", "\"".repeat(1024)));
    }
    let job = case.fetch(paths.iter().map(|path| case.item(path)).collect()).await;
    let bytes = model::encode(&job).len();
    assert!(bytes <= bus::MAX_PAYLOAD, "{bytes}");
    assert!(bytes > bus::MAX_PAYLOAD / 2, "{bytes}: most of a message is used");
    let stored = job.items.iter().take_while(|item| matches!(item.result, FetchedResult::Stored(_))).count();
    assert!((100..ITEMS).contains(&stored), "{stored}");
    assert!(job.items[stored..].iter().all(|item| item.result == FetchedResult::Deferred));
    assert_eq!(case.server.requests().len(), stored + 1, "the one that did not fit was the last request");
}

#[tokio::test]
async fn what_one_resource_does_leaves_the_others_alone() {
    let case = Case::new().await;
    case.server.push("/a", Reply::status(404)).push("/b", Reply::status(500)).push("/c", Reply::ok("c"));
    let job = case.fetch(vec![case.item("/a"), case.item("/b"), case.item("/c")]).await;
    let mut results = job.items.into_iter().map(|fetched| fetched.result);
    assert_eq!(failed(results.next().unwrap()).reason, ProblemReason::HttpClientError);
    assert_eq!(failed(results.next().unwrap()).reason, ProblemReason::HttpServerError);
    assert_eq!(case.bytes(&stored(results.next().unwrap())).await, "c");
}

#[tokio::test]
async fn a_held_version_that_is_still_current_is_not_sent_again() {
    let case = Case::new().await;
    case.server.push("/a", Reply::status(304));
    let held = Validators { etag: Some("\"v1\"".into()), last_modified: None };
    let job = case.fetch(vec![FetchItem { held, ..case.item("/a") }]).await;
    assert_eq!(job.items[0].result, FetchedResult::NotModified);
    assert_eq!(case.server.requests()[0].header("if-none-match"), Some("\"v1\""));
}

#[tokio::test]
async fn when_its_time_is_over_a_job_gives_the_rest_back() {
    let mut case = Case::new().await;
    case.config.max_job_seconds = 0;
    let job = case.fetch(vec![case.item("/a"), case.item("/b")]).await;
    assert!(job.items.iter().all(|fetched| fetched.result == FetchedResult::Deferred));
    assert_eq!(job.requests, 0);
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_and_leaves_no_object() {
    let mut case = Case::new().await;
    case.config.max_body_bytes = 1_000;
    case.server.push("/a", Reply::ok(large()));
    let failure = failed(case.fetch_one("/a").await.0);
    assert_eq!(failure.reason, ProblemReason::TooLarge);
    assert!(failure.message.contains("1000 bytes"), "{}", failure.message);
}

#[tokio::test]
async fn declared_algorithms_are_computed_beside_sha_256() {
    let case = Case::new().await;
    case.server.push("/a", Reply::ok("abc"));
    let digests = fixity::parse_hashes("md5:900150983cd24fb0d6963f7d28e17f72").known;
    let declaration = Declaration { digests: digests.clone(), ..Declaration::default() };
    let mut job = case.fetch(vec![FetchItem { declaration, ..case.item("/a") }]).await;
    let stored = stored(job.items.remove(0).result);
    assert_eq!(stored.computed.get(fixity::Algorithm::Md5), digests.first());
    assert_eq!(stored.computed.sha256(), Sha256::of(b"abc"));
}

#[tokio::test]
async fn a_job_is_asked_for_as_its_source_wants_and_waits_for_a_credential_that_is_not_there() {
    let case = Case::new().await;
    case.server.always("/a", Reply::ok("abc"));
    let credential =
        format!(r#"{{"partner": {{"origin": "{}", "bearer": {{"env": "TOKEN"}}}}}}"#, case.server.url());
    let credentials =
        Credentials::read(&serde_json::from_str(&credential).unwrap(), &Vars::from([("TOKEN", "sesame")]))
            .unwrap();
    let fetcher = case.fetcher();
    let contact = Some("mailto:partner@example.org".to_owned());
    let terms = Terms { contact, credential: Some("partner".to_owned()), ..Terms::default() };
    let job = model::encode(&FetchJob { terms, ..case.job(vec![case.item("/a")]) });
    let later = fetcher.work(job.clone().into()).await;
    assert!(matches!(&later, HandlerResult::Later { why, .. } if why.contains("\"partner\"")), "{later:?}");
    assert!(case.server.requests().is_empty(), "nothing is asked without it");

    assert_eq!(fetcher.knowing(credentials).work(job.into()).await, HandlerResult::Done);
    let seen = &case.server.requests()[0];
    assert_eq!(seen.header("authorization"), Some("Bearer sesame"));
    assert!(seen.header("user-agent").unwrap().ends_with("(+mailto:partner@example.org)"));
}

#[tokio::test]
async fn a_third_partys_robots_txt_binds_and_that_of_the_entrys_site_does_not() {
    for (entry, asked) in [("http://127.0.0.1:81", 1), ("http://example.org", 0)] {
        let case = Case::new().await;
        case.server.always("/a", Reply::ok("abc"));
        case.server.always("/robots.txt", Reply::ok("user-agent: *\ndisallow: /"));
        let robots = Some(Robots::LinksOnly);
        let terms = Terms { robots, entry: Some(entry.parse().unwrap()), ..Terms::default() };
        let job = model::encode(&FetchJob { terms, ..case.job(vec![case.item("/a")]) });
        assert_eq!(case.fetcher().work(job.into()).await, HandlerResult::Done);
        assert_eq!(case.server.requests_at("/a").len(), asked, "{entry}");
    }
}

fn page(body: &str) -> Reply {
    Reply::ok(body.to_owned()).header("content-type", "text/html; charset=utf-8")
}

const CHALLENGE: &str =
    "<!DOCTYPE html><title>Just a moment...</title><script>window._cf_chl_opt={}</script>";

#[tokio::test]
async fn after_a_challenge_the_origin_rests_and_what_is_left_is_deferred() {
    let case = Case::new().await;
    case.server.push("/a", page(CHALLENGE));
    let fetcher = case.fetcher();
    let job = case.job(vec![case.item("/a"), case.item("/b")]);
    let done = fetcher.fetch(&job).await.expect("a store in memory does not fail");
    let [a, b] = <[_; 2]>::try_from(done.items).expect("two items");
    let failure = failed(a.result);
    assert_eq!(failure.reason, ProblemReason::Challenged);
    let hour = jiff::SignedDuration::from_hours(1);
    assert_eq!(failure.disposition, model::Disposition::Retry { after: Some(hour) });
    assert!(failure.evidence.user_agent.is_some_and(|agent| agent.starts_with("thresher/")));
    assert_eq!(b.result, FetchedResult::Deferred);
    assert!(case.server.requests_at("/b").is_empty());
}

#[tokio::test]
async fn html_is_unexpected_only_where_another_type_was_declared_or_held() {
    let typed =
        |media_type: &str| Declaration { media_type: Some(media_type.to_owned()), ..Declaration::default() };
    let html = "<!DOCTYPE html><title>A landing page</title>";
    for (declaration, held_type, accept_html, is_taken) in [
        (Declaration::default(), None, false, true),
        (typed("text/html"), Some("application/pdf"), false, true),
        (typed("application/octet-stream"), None, false, true),
        (Declaration { length: Some(html.len() as u64), ..typed("application/pdf") }, None, false, true),
        (typed("application/pdf"), None, true, true),
        (typed("application/pdf"), None, false, false),
        (Declaration::default(), Some("application/pdf"), false, false),
    ] {
        let case = Case::new().await;
        case.server.push("/a", page(html));
        let told = format!("{declaration:?} {held_type:?} {accept_html}");
        let held_type = held_type.map(str::to_owned);
        let mut job = case.job(vec![FetchItem { declaration, held_type, ..case.item("/a") }]);
        job.terms.accept_html = accept_html;
        let mut done = case.fetcher().fetch(&job).await.expect("a store in memory does not fail");
        match done.items.remove(0).result {
            FetchedResult::Stored(_) => assert!(is_taken, "{told}"),
            result => {
                assert_eq!(failed(result).reason, ProblemReason::UnexpectedHtml, "{told}");
                assert!(!is_taken, "{told}");
            }
        }
    }
}

#[tokio::test]
async fn bytes_of_a_declared_digest_are_content_and_the_origin_does_not_rest() {
    let case = Case::new().await;
    case.server.push("/a", page(CHALLENGE).header("cf-mitigated", "challenge"));
    case.server.push("/b", Reply::ok("b"));
    let digests = Computed::of(CHALLENGE.as_bytes()).digests().to_vec();
    let declaration = Declaration { digests, ..Declaration::default() };
    let job = case.fetch(vec![FetchItem { declaration, ..case.item("/a") }, case.item("/b")]).await;
    for item in job.items {
        stored(item.result);
    }
}

#[tokio::test]
async fn a_declared_encoding_is_asked_for_and_what_came_is_labelled() {
    let case = Case::new().await;
    case.server.push("/a", Reply::ok("gzipped").header("content-encoding", "GZIP"));
    case.server.push("/b", Reply::ok("plain").header("content-encoding", "identity"));
    let declaration = Declaration { encoding: Some("gzip".to_owned()), ..Declaration::default() };
    let job = case.fetch(vec![FetchItem { declaration, ..case.item("/a") }, case.item("/b")]).await;
    let encodings: Vec<_> = job.items.into_iter().map(|item| stored(item.result).encoding).collect();
    assert_eq!(encodings, [Some("gzip".to_owned()), None]);
    let asked = |path| case.server.requests_at(path)[0].header("accept-encoding").map(str::to_owned);
    assert_eq!((asked("/a"), asked("/b")), (Some("gzip".to_owned()), None));
}
