//! Credentials, as two origins see them.

use model::Origin;
use secrets::Secret;
use testkit::scripted::{Reply, ScriptedServer};
use web::{Client, Credential, ErrorKind, WebConfig};

use crate::support::{config, request};

const SECRET: &str = "open-sesame";

fn origin(server: &ScriptedServer) -> Origin {
    server.url().parse().unwrap()
}

fn client(credentials: Vec<Credential>) -> Client {
    Client::new(WebConfig { credentials, ..config() }).unwrap()
}

fn bearer(server: &ScriptedServer) -> Credential {
    Credential::bearer(origin(server), &Secret::new(SECRET)).unwrap()
}

async fn two_servers() -> [ScriptedServer; 2] {
    [ScriptedServer::start().await.unwrap(), ScriptedServer::start().await.unwrap()]
}

#[tokio::test]
async fn a_credential_goes_to_its_origin_and_to_no_other_port_of_the_host() {
    let [ours, other] = two_servers().await;
    ours.always("/a", Reply::ok("abc"));
    other.always("/a", Reply::ok("abc"));
    let key = Credential::header(origin(&ours), "X-Api-Key", &Secret::new(SECRET)).unwrap();
    let client = client(vec![bearer(&ours), key]);
    client.get(request(&ours.uri("/a"))).await.unwrap();
    client.get(request(&other.uri("/a"))).await.unwrap();
    let seen = &ours.requests()[0];
    assert_eq!(seen.header("authorization"), Some("Bearer open-sesame"));
    assert_eq!(seen.header("x-api-key"), Some(SECRET));
    let seen = &other.requests()[0];
    assert_eq!((seen.header("authorization"), seen.header("x-api-key")), (None, None));
}

#[tokio::test]
async fn a_redirect_that_leaves_the_origin_drops_it_and_one_that_comes_back_finds_it_again() {
    let [ours, other] = two_servers().await;
    ours.push("/a", Reply::status(302).header("location", other.uri("/b")));
    other.push("/b", Reply::status(302).header("location", ours.uri("/c")));
    ours.push("/c", Reply::status(307).header("location", "/d"));
    ours.push("/d", Reply::ok("abc"));
    client(vec![bearer(&ours)]).get(request(&ours.uri("/a"))).await.unwrap();
    let sent = |server: &ScriptedServer| -> Vec<_> {
        server.requests().iter().map(|seen| seen.header("authorization").map(str::to_owned)).collect()
    };
    let ours_saw = sent(&ours);
    assert_eq!(ours_saw.len(), 3);
    assert!(ours_saw.iter().all(|header| header.as_deref() == Some("Bearer open-sesame")), "{ours_saw:?}");
    assert_eq!(sent(&other), [None]);
}

#[tokio::test]
async fn each_of_two_origins_gets_its_own() {
    let [one, two] = two_servers().await;
    one.push("/a", Reply::status(302).header("location", two.uri("/b")));
    two.push("/b", Reply::ok("abc"));
    let basic = Credential::basic(origin(&two), "me", &Secret::new("word")).unwrap();
    client(vec![bearer(&one), basic]).get(request(&one.uri("/a"))).await.unwrap();
    assert_eq!(one.requests()[0].header("authorization"), Some("Bearer open-sesame"));
    assert_eq!(two.requests()[0].header("authorization"), Some("Basic bWU6d29yZA=="));
}

#[tokio::test]
async fn the_operators_credential_wins_over_one_that_a_url_carries() {
    let [ours, _] = two_servers().await;
    ours.always("/a", Reply::ok("abc"));
    let url = ours.uri("/a").replace("http://", "http://stranger:word@");
    client(vec![bearer(&ours)]).get(request(&url)).await.unwrap();
    assert_eq!(ours.requests()[0].header("authorization"), Some("Bearer open-sesame"));
}

#[tokio::test]
async fn user_and_password_of_a_url_are_sent_to_its_server_and_not_where_it_sends_us_on_to() {
    let [ours, other] = two_servers().await;
    ours.push("/a", Reply::status(302).header("location", other.uri("/b")));
    other.push("/b", Reply::ok("abc"));
    let url = ours.uri("/a").replace("http://", "http://Aladdin:open%20sesame@");
    client(vec![]).get(request(&url)).await.unwrap();
    let seen = &ours.requests()[0];
    assert_eq!(seen.header("authorization"), Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
    assert_eq!((seen.path.as_str(), seen.header("host")), ("/a", ours.url().strip_prefix("http://")));
    assert_eq!(other.requests()[0].header("authorization"), None);
}

#[tokio::test]
async fn neither_errors_nor_the_client_show_it() {
    let [ours, other] = two_servers().await;
    ours.always("/refused", Reply::status(401).header("www-authenticate", "Bearer"));
    ours.always("/circle", Reply::status(302).header("location", "/circle"));
    ours.always("/left", Reply::status(302).header("location", other.uri("/gone")));
    other.always("/gone", Reply::status(404));
    let client = client(vec![bearer(&ours)]);
    for path in ["/refused", "/circle", "/left"] {
        let error = client.get(request(&ours.uri(path))).await.unwrap_err();
        let shown = format!("{error} {error:?} {:?} {client:?}", error.to_failure());
        assert!(!shown.contains(SECRET), "{shown}");
    }
    let two = WebConfig { credentials: vec![bearer(&ours), bearer(&ours)], ..config() };
    let error = Client::new(two).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Builder);
    assert!(!format!("{error} {error:?}").contains(SECRET), "{error}");
}

#[tokio::test]
async fn who_sent_it_and_is_not_let_in_is_told_to_check_it() {
    let [ours, other] = two_servers().await;
    for server in [&ours, &other] {
        server.always("/a", Reply::status(403));
        server.always("/odd", Reply::status(500));
    }
    let client = client(vec![bearer(&ours)]);
    for (server, path, expected) in [
        (&ours, "/a", "403 Forbidden, though the credential for it was sent"),
        (&ours, "/odd", "500 Internal Server Error, though the credential for it was sent"),
        (&other, "/a", "name what you get for this origin in a --credentials file"),
    ] {
        let error = client.get(request(&server.uri(path))).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let error = client.get(request(&other.uri("/odd"))).await.unwrap_err();
    assert!(!error.to_string().contains("was sent"), "{error}");
}

#[tokio::test]
async fn cookies_are_neither_kept_nor_sent() {
    let [ours, _] = two_servers().await;
    let cookie = |reply: Reply| reply.header("set-cookie", "session=1; Path=/");
    ours.push("/a", cookie(Reply::status(302).header("location", "/b")));
    ours.push("/b", cookie(Reply::ok("abc")));
    ours.push("/c", Reply::ok("abc"));
    let client = client(vec![]);
    client.get(request(&ours.uri("/a"))).await.unwrap();
    client.get(request(&ours.uri("/c"))).await.unwrap();
    let seen = ours.requests();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|request| request.header("cookie").is_none()), "{seen:?}");
}
