//! robots.txt, as an origin sees it obeyed.

use std::pin::pin;
use std::time::Duration;

use futures::future::try_join_all;
use futures::poll;
use model::{Disposition, Origin, ProblemReason};
use secrets::Secret;
use testkit::scripted::{Reply, ScriptedServer};
use testkit::waiting::until;
use web::{
    Client, CrawlDelay, Credential, ErrorKind, GetRequest, RequestPurpose, RobotsFetch, RobotsPolicy,
    WebConfig,
};

use crate::support::{config, request};

fn client(robots: RobotsPolicy) -> Client {
    Client::new(WebConfig { robots, ..config() }).unwrap()
}

fn origin(url: &str) -> Origin {
    url.parse().unwrap()
}

async fn server(robots: Reply) -> ScriptedServer {
    let server = ScriptedServer::start().await.unwrap();
    server.always("/robots.txt", robots).always("/a", Reply::ok("abc")).always("/no", Reply::ok("abc"));
    server
}

fn asked_for_robots(server: &ScriptedServer) -> usize {
    server.requests_at("/robots.txt").len()
}

#[tokio::test]
async fn nothing_is_fetched_by_default_and_once_where_it_is_to_be_kept() {
    let server = server(Reply::ok("user-agent: *\ndisallow: /a")).await;
    client(RobotsPolicy::default()).get(request(&server.uri("/a"))).await.unwrap();
    assert_eq!(asked_for_robots(&server), 0);
    let client = client(RobotsPolicy::links_only());
    let requests = (0..4).map(|_| client.get(request(&server.uri("/a"))));
    let responses = try_join_all(requests).await.unwrap();
    let counted: u32 = responses.iter().map(web::Response::requests).sum();
    assert_eq!((asked_for_robots(&server), client.requests(), counted), (1, 5, 5), "each is counted once");
}

#[tokio::test]
async fn a_counting_client_counts_what_it_sent_without_a_robots_txt_that_came() {
    let hour = Duration::from_secs(3_600);
    let server = server(Reply::ok("")).await;
    server.always("/slow", Reply::ok("").delay(hour));
    let own = client(RobotsPolicy::obey()).counting();
    own.get(request(&server.uri("/a"))).await.unwrap();
    assert_eq!((own.requests(), own.own_requests()), (2, 1));
    let other = own.counting();
    tokio::select! {
        _ = other.get(request(&server.uri("/slow"))) => panic!("it waits for an answer"),
        () = until("the request came", || server.requests_at("/slow").len() == 1) => {}
    }
    assert_eq!((own.own_requests(), other.own_requests()), (1, 1), "it is not awaited any more");

    let silent = self::server(Reply::ok("").delay(hour)).await;
    let last = own.counting();
    tokio::select! {
        _ = last.get(request(&silent.uri("/a"))) => panic!("it waits for robots.txt"),
        () = until("robots.txt is requested", || asked_for_robots(&silent) == 1) => {}
    }
    assert_eq!(last.own_requests(), 1);
}

#[tokio::test]
async fn what_is_disallowed_is_refused_only_where_the_policy_says_so() {
    let server = server(Reply::ok("user-agent: thresher\ndisallow: /no")).await;
    client(RobotsPolicy::links_only()).get(request(&server.uri("/no"))).await.unwrap();
    let crawling = client(RobotsPolicy::obey());
    crawling.get(request(&server.uri("/a"))).await.unwrap();
    let error = crawling.get_with_retries(request(&server.uri("/no"))).await.unwrap_err();
    assert_eq!((error.kind(), error.requests()), (ErrorKind::Disallowed, 0), "{error}");
    assert!(error.to_string().contains("--robots ignore"), "{error}");
    assert_eq!((error.reason(), error.disposition()), (ProblemReason::Disallowed, Disposition::Refuse));
    assert_eq!(server.requests_at("/no").len(), 1);
    server.push("/a", Reply::status(302).header("location", "/no"));
    let error = crawling.get(request(&server.uri("/a"))).await.unwrap_err();
    assert_eq!((error.kind(), error.requests()), (ErrorKind::Disallowed, 1), "behind a redirect");
}

#[tokio::test]
async fn it_is_read_for_whoever_asks() {
    let server = server(Reply::ok("Sitemap: /list.xml\nuser-agent: *\ncrawl-delay: 7\ndisallow: /no")).await;
    let robots = client(RobotsPolicy::ignore()).robots(&origin(&server.url())).await.0;
    assert_eq!(robots.crawl_delay(), Some(Duration::from_secs(7)));
    assert_eq!(robots.sitemaps(), ["/list.xml"]);
    assert!(!robots.allows(&server.uri("/no").parse().unwrap()));
    assert_eq!(*robots.fetch(), RobotsFetch::Read);
}

#[tokio::test]
async fn where_there_is_none_everything_is_allowed() {
    for status in [401, 403, 404, 410] {
        let server = server(Reply::status(status).body("user-agent: *\ndisallow: /")).await;
        let client = client(RobotsPolicy::obey());
        client.get(request(&server.uri("/a"))).await.unwrap();
        client.get(request(&server.uri("/no"))).await.unwrap();
        let (robots, _) = client.robots(&origin(&server.url())).await;
        let RobotsFetch::Absent(why) = robots.fetch() else { panic!("{robots:?}") };
        assert!(why.contains(&status.to_string()), "{why}");
        assert_eq!(asked_for_robots(&server), 1);
    }
}

#[tokio::test]
async fn whoever_crawls_keeps_out_where_whoever_was_invited_may_go() {
    let server = server(Reply::ok("user-agent: *\ndisallow: /no")).await;
    let client = client(RobotsPolicy::links_only());
    let crawl = |path: &str| GetRequest { errand: RequestPurpose::Crawling, ..request(&server.uri(path)) };
    client.get(request(&server.uri("/no"))).await.unwrap();
    client.get(crawl("/a")).await.unwrap();
    assert_eq!(client.get(crawl("/no")).await.unwrap_err().kind(), ErrorKind::Disallowed);
}

#[tokio::test]
async fn where_it_cannot_be_had_only_the_invited_go_on_and_that_is_said() {
    for reply in
        [Reply::status(500), Reply::status(501), Reply::status(429), Reply::ok("disallow").cut_after(3)]
    {
        let server = server(reply).await;
        let client = client(RobotsPolicy::links_only());
        client.get(request(&server.uri("/no"))).await.unwrap();
        client.get(request(&server.uri("/no"))).await.unwrap();
        let crawl = GetRequest { errand: RequestPurpose::Crawling, ..request(&server.uri("/a")) };
        let error = client.get_with_retries(crawl).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RobotsUnreachable, "{error}");
        assert_eq!((error.reason(), error.requests()), (ProblemReason::Disallowed, 0));
        let (robots, requests) = client.robots(&origin(&server.url())).await;
        let RobotsFetch::Unreachable(why) = robots.fetch() else { panic!("{robots:?}") };
        assert!(why.contains("/robots.txt") && error.to_string().contains(why), "{error}");
        assert_eq!((asked_for_robots(&server), requests), (1, 0));
    }
}

#[tokio::test]
async fn one_that_leads_round_in_circles_is_none() {
    let server = server(Reply::status(302).header("location", "/robots.txt")).await;
    let client = client(RobotsPolicy::obey());
    client.get(request(&server.uri("/no"))).await.unwrap();
    let (robots, _) = client.robots(&origin(&server.url())).await;
    assert!(matches!(robots.fetch(), RobotsFetch::Absent(_)), "{robots:?}");
}

#[tokio::test]
async fn a_rest_that_robots_txt_begins_holds_for_the_request() {
    let server = server(Reply::status(503).header("retry-after", "600")).await;
    let client = client(RobotsPolicy::links_only());
    client.get(request(&server.uri("/a"))).await.unwrap();
    let error = client.get(request(&server.uri("/a"))).await.unwrap_err();
    assert_eq!((error.kind(), server.requests().len()), (ErrorKind::CoolingDown, 2));
}

#[tokio::test]
async fn no_more_than_the_limit_is_read() {
    let mut text = "user-agent: *\ndisallow: /no\n".to_owned();
    text.push_str(&"# nothing\n".repeat(60_000));
    let server = server(Reply::ok(format!("{text}disallow: /a\n"))).await;
    let robots = client(RobotsPolicy::ignore()).robots(&origin(&server.url())).await.0;
    assert!(robots.allows(&server.uri("/a").parse().unwrap()));
    assert!(!robots.allows(&server.uri("/no").parse().unwrap()));
}

#[tokio::test]
async fn redirects_are_followed_and_credentials_go_to_their_origin_only() {
    let [one, two] = [server(Reply::status(404)).await, server(Reply::status(404)).await];
    one.push("/robots.txt", Reply::status(301).header("location", two.uri("/theirs")));
    two.push("/theirs", Reply::ok("user-agent: *\ndisallow: /no"));
    let credentials = vec![Credential::bearer(origin(&one.url()), &Secret::new("sesame")).unwrap()];
    let client = Client::new(WebConfig { credentials, robots: RobotsPolicy::obey(), ..config() }).unwrap();
    let error = client.get(request(&one.uri("/no"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Disallowed);
    assert!(one.requests()[0].header("authorization").is_some());
    assert!(two.requests()[0].header("authorization").is_none());
    assert_eq!(asked_for_robots(&two), 0, "robots.txt needs no robots.txt");
}

#[tokio::test]
async fn requests_are_spaced_by_the_crawl_delay_up_to_the_longest() {
    let server = server(Reply::ok("user-agent: *\ncrawl-delay: 3600")).await;
    // The budget for waits between attempts does not limit the wait for a turn.
    let retry_budget = Duration::from_secs(1);
    let client =
        Client::new(WebConfig { robots: RobotsPolicy::links_only(), retry_budget, ..config() }).unwrap();
    client.robots(&origin(&server.url())).await;
    tokio::time::pause();
    let mut waiting = pin!(client.get(request(&server.uri("/a"))));
    assert!(poll!(&mut waiting).is_pending());
    tokio::time::advance(Duration::from_secs(45)).await;
    assert!(poll!(&mut waiting).is_pending());
    assert_eq!(client.requests(), 1, "robots.txt was a request too, and the next one came too soon");
    tokio::time::advance(Duration::from_secs(16)).await;
    assert!(poll!(&mut waiting).is_pending());
    assert_eq!(client.requests(), 2, "the longest crawl-delay is over");
}

#[tokio::test]
async fn a_crawl_delay_that_the_policy_ignores_spaces_nothing() {
    let server = server(Reply::ok("user-agent: *\ncrawl-delay: 3600")).await;
    let client = client(RobotsPolicy { crawl_delay: false, ..RobotsPolicy::obey() });
    client.get(request(&server.uri("/a"))).await.unwrap();
    assert_eq!(client.requests(), 2);
}

#[tokio::test]
async fn a_crawl_delay_is_told_once_with_what_is_kept_of_it() {
    let server = server(Reply::ok("user-agent: *\ncrawl-delay: 3600")).await;
    let longest = Duration::from_millis(1);
    let client = client(RobotsPolicy { crawl_delay_max: longest, ..RobotsPolicy::links_only() });
    let mut told = client.crawl_delays();
    client.get(request(&server.uri("/a"))).await.unwrap();
    client.get(request(&server.uri("/a"))).await.unwrap();
    let expected =
        CrawlDelay { origin: origin(&server.url()), asked: Duration::from_secs(3600), kept: longest };
    assert_eq!(told.borrow_and_update().as_ref(), Some(&expected));
    client.get(request(&server.uri("/a"))).await.unwrap();
    assert!(!told.has_changed().unwrap(), "it was told again");
}

#[tokio::test]
async fn an_origin_that_is_asked_once_is_not_asked_for_its_crawl_delay() {
    let server = server(Reply::ok("user-agent: *\ncrawl-delay: 0.001\ndisallow: /no")).await;
    let client = client(RobotsPolicy::links_only());
    client.get(request(&server.uri("/a"))).await.unwrap();
    assert_eq!(asked_for_robots(&server), 0);
    client.get(request(&server.uri("/a"))).await.unwrap();
    let paths: Vec<_> = server.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/a", "/robots.txt", "/a"]);
    let crawl = GetRequest { errand: RequestPurpose::Crawling, ..request(&server.uri("/no")) };
    let error = Client::new(WebConfig { robots: RobotsPolicy::links_only(), ..config() })
        .unwrap()
        .get(crawl)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Disallowed, "who crawls asks before the first request");
}

#[tokio::test]
async fn an_invitation_extends_to_the_site_of_the_entry_and_not_to_third_parties() {
    let server = server(Reply::ok("user-agent: *\ndisallow: /no")).await;
    let by_name = |path: &str| server.uri(path).replace("127.0.0.1", "localhost");
    let entered = |entry: &str| {
        let entry = Some(origin(entry));
        Client::new(WebConfig { robots: RobotsPolicy::links_only(), entry, ..config() }).unwrap()
    };
    // Other ports of one host are the same site.
    entered("http://127.0.0.1:81").get(request(&server.uri("/no"))).await.unwrap();
    let guest = entered("http://127.0.0.1:81");
    assert_eq!(guest.get(request(&by_name("/no"))).await.unwrap_err().kind(), ErrorKind::Disallowed);
    guest.get(request(&by_name("/a"))).await.unwrap();
    // A redirect of the entry's site is no invitation to another site either.
    server.push("/a", Reply::status(302).header("location", by_name("/no")));
    assert_eq!(guest.get(request(&server.uri("/a"))).await.unwrap_err().kind(), ErrorKind::Disallowed);
    // A Source's terms have the same effect.
    let all = client(RobotsPolicy::links_only());
    all.get(request(&by_name("/no"))).await.unwrap();
    let terms = web::Terms { entry: Some(origin("http://example.org")), ..web::Terms::default() };
    let one = all.on(terms).unwrap();
    assert_eq!(one.get(request(&by_name("/no"))).await.unwrap_err().kind(), ErrorKind::Disallowed);
}

#[tokio::test]
async fn a_third_party_that_does_not_answer_is_said_to_be_away() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let entry = Some(origin("http://example.org"));
    let guest = Client::new(WebConfig { robots: RobotsPolicy::links_only(), entry, ..config() }).unwrap();
    let error = guest.get(request(&format!("http://{free}/a"))).await.unwrap_err();
    assert_eq!(error.reason(), ProblemReason::Connect, "{error}");
    let broken = server(Reply::status(503)).await;
    let error = guest.get(request(&broken.uri("/a"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RobotsUnreachable, "{error}");
}
