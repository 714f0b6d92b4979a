//! The rules of W3C Linked Data Notifications for receivers (LDN-1, LDN-2, LDN-5), each checked on a real gateway over
//! HTTP.

use crate::common::api::{ADMIN, READ, send};
use crate::common::ldn::{JSON_LD, ORIGIN, REGISTRY, REPOSITORY, added, fleet, gateway, left, post, update};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::scripted::ScriptedServer;

const ENTRY: &str = "https://repo.example.org/.well-known/resourcesync";
const PDF: &str = "https://repo.example.org/a.pdf";
const INBOX: &str = "http://www.w3.org/ns/ldp#inbox";
const CONTAINS: &str = "http://www.w3.org/ns/ldp#contains";
const CONSTRAINED_BY: &str = "http://www.w3.org/ns/ldp#constrainedBy";

/// LDN 3.1: "a Link header with a rel value of http://www.w3.org/ns/ldp#inbox", or the same property in an RDF body; one inbox of each resource.
#[tokio::test]
async fn a_target_advertises_its_one_inbox_by_link_header_and_in_its_body() {
    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, "").await;
    let source = added(&api, ENTRY).await;
    for (target, inbox) in [
        ("/ldn".to_owned(), "/ldn/inbox".to_owned()),
        (format!("/ldn/sources/{source}"), format!("/ldn/sources/{source}/inbox")),
    ] {
        let inbox = format!("{}{inbox}", api.base);
        let stranger = api.with(None);
        for method in [Method::HEAD, Method::GET] {
            let answer = send(stranger.request(method, &target)).await.is(StatusCode::OK);
            assert_eq!(answer.link(INBOX).as_ref(), Some(&inbox));
            let advertised =
                answer.headers.get_all("link").iter().filter(|link| link.to_str().unwrap().contains(INBOX));
            assert_eq!(advertised.count(), 1);
        }
        let body = stranger.get(&target).await;
        assert_eq!(
            (body.header("content-type"), &body.json()[INBOX]["@id"]),
            (JSON_LD, &inbox.clone().into())
        );
        assert_eq!(body.json()["@id"], format!("{}{target}", api.base));
    }
    // Clients of the API find it there too.
    let read = api.get(&format!("/v1/sources/{source}")).await.is(StatusCode::OK);
    assert_eq!(read.link(INBOX), Some(format!("{}/ldn/sources/{source}/inbox", api.base)));
}

/// LDN 3.3: "the receiver MUST respond with status code 201 Created and the Location header set to the URL from which the notification data can
/// be retrieved".
#[tokio::test]
async fn post_is_answered_with_201_and_the_location_of_the_notification() {
    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, "").await;
    let source = added(&api, ENTRY).await;
    for inbox in ["/ldn/inbox".to_owned(), format!("/ldn/sources/{source}/inbox")] {
        let created = left(&api, &inbox, &update(PDF)).await.is(StatusCode::CREATED);
        let at = created.path(&api, "location");
        assert!(at.starts_with(&format!("{inbox}/")), "{at}");
        assert_eq!(api.get(&at).await.is(StatusCode::OK).json(), update(PDF));
    }
}

/// LDN 3.3: "Receivers MUST accept notifications where the request body is JSON-LD, with the Content-Type: application/ld+json, which MAY include a
/// profile URI".
#[tokio::test]
async fn json_ld_is_accepted_with_and_without_a_profile_and_under_its_other_names() {
    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, "").await;
    for media_type in [
        JSON_LD,
        "application/ld+json; profile=\"https://www.w3.org/ns/activitystreams\"",
        "application/ld+json;profile=\"http://example.org/profile\";charset=utf-8",
        "application/activity+json",
        "application/json",
    ] {
        let request = post(&api, "/ldn/inbox", media_type, update(PDF)).bearer_auth(REPOSITORY);
        let created = send(request).await.is(StatusCode::CREATED);
        let read = api.get(&created.path(&api, "location")).await.is(StatusCode::OK);
        assert_eq!(read.json(), update(PDF), "{media_type}");
    }
}

/// LDN 3.3: "Receivers … SHOULD advertise the content types they accept with an Accept-Post header in response to an OPTIONS request".
#[tokio::test]
async fn options_tell_what_may_be_posted_and_other_content_types_are_refused_with_it() {
    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, "").await;
    let options = send(api.with(None).request(Method::OPTIONS, "/ldn/inbox")).await.is(StatusCode::OK);
    assert_eq!(
        options.header("accept-post"),
        "application/ld+json, application/activity+json, application/json"
    );
    assert_eq!(options.header("allow"), "GET, HEAD, OPTIONS, POST");
    for other in
        ["text/turtle", "text/html", "application/xhtml+xml", "application/x-www-form-urlencoded", ""]
    {
        let request = post(&api, "/ldn/inbox", other, "<> <urn:x> <urn:y> .").bearer_auth(REPOSITORY);
        let refused = send(request).await.is(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        assert_eq!(refused.header("content-type"), "application/problem+json");
        assert_eq!(refused.header("accept-post"), options.header("accept-post"), "{other}");
    }
    for method in [Method::PUT, Method::DELETE, Method::PATCH] {
        send(api.request(method, "/ldn/inbox")).await.is(StatusCode::METHOD_NOT_ALLOWED);
    }
}

/// LDN 3.3.1: "A successful GET request on the Inbox MUST return a HTTP 200 OK with the URIs of notifications … The Inbox URL MUST use the predicate
/// http://www.w3.org/ns/ldp#contains"; "The JSON-LD content type MUST be available". Pages are ours.
#[tokio::test]
async fn get_of_an_inbox_lists_its_notifications_as_ldp_contains_in_pages() {
    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, "").await;
    let source = added(&api, ENTRY).await;
    let inbox = format!("/ldn/sources/{source}/inbox");
    let mut posted = Vec::new();
    for n in 0..7 {
        let created = left(&api, &inbox, &update(&format!("{PDF}?{n}"))).await.is(StatusCode::CREATED);
        posted.push(created.header("location").to_owned());
    }
    left(&api, "/ldn/inbox", &update(PDF)).await.is(StatusCode::CREATED);
    let mut listed = Vec::new();
    let mut next = Some(format!("{}{inbox}?limit=3", api.base));
    while let Some(page) = next {
        let page = page.strip_prefix(&api.base).expect("it is of this gateway").to_owned();
        let request =
            api.request(Method::GET, &page).header("accept", "text/turtle;q=0.9, application/ld+json");
        let answer = send(request).await.is(StatusCode::OK);
        assert_eq!(answer.header("content-type"), JSON_LD);
        assert_eq!(answer.link("type").as_deref(), Some("http://www.w3.org/ns/ldp#Resource"));
        let body = answer.json();
        assert_eq!(body["@context"]["contains"]["@id"], CONTAINS);
        assert_eq!(body["@id"], format!("{}{inbox}", api.base));
        let contains = body["contains"].as_array().expect("a list").clone();
        assert!(contains.len() <= 3);
        listed.extend(contains.iter().map(|iri| iri.as_str().unwrap().to_owned()));
        next = answer.link("next");
        assert_eq!(body["next"].as_str(), next.as_deref());
    }
    assert_eq!(listed, posted);
    for wrong in ["limit=0", "limit=1001", "after=x", "x=y"] {
        api.get(&format!("{inbox}?{wrong}")).await.is(StatusCode::BAD_REQUEST);
    }
}

/// LDN 3.3.1: "A successful GET request on the notification URI MUST return a HTTP 200 OK", as JSON-LD. The response
/// equals the notification as sent.
#[tokio::test]
async fn get_of_a_notification_gives_back_what_was_posted_byte_for_byte() {
    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, "").await;
    let odd = "{ \"@id\" : \"\",\n\t\"http://example.org/says\": [\"gr\u{fc}\u{df}e\", 1.50, \"\\u00e9\"] }";
    let created =
        send(post(&api, "/ldn/inbox", JSON_LD, odd).bearer_auth(REPOSITORY)).await.is(StatusCode::CREATED);
    let at = created.path(&api, "location");
    let read = api.get(&at).await.is(StatusCode::OK);
    assert_eq!(
        (String::from_utf8(read.body.clone()).unwrap().as_str(), read.header("content-type")),
        (odd, JSON_LD)
    );
    assert_eq!(read.header("x-content-type-options"), "nosniff");
    let mark = at.rsplit_once('-').unwrap().1;
    for wrong in
        [at.replace(mark, "0000000000000000"), "/ldn/inbox/x".to_owned(), "/ldn/inbox/1-00".to_owned()]
    {
        let refused = api.get(&wrong).await.is(StatusCode::NOT_FOUND);
        assert_eq!(refused.header("content-type"), "application/problem+json");
    }
}

/// HEAD gets the response of GET, without a body (RFC 9110, 9.3.2).
#[tokio::test]
async fn head_of_an_inbox_and_of_a_notification_is_answered_like_get() {
    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, "").await;
    let created = left(&api, "/ldn/inbox", &update(PDF)).await.is(StatusCode::CREATED);
    for path in ["/ldn/inbox".to_owned(), created.path(&api, "location"), "/ldn/constraints".to_owned()] {
        let (get, head) =
            (api.get(&path).await, send(api.request(Method::HEAD, &path)).await.is(StatusCode::OK));
        assert!(head.body.is_empty());
        for header in ["content-type", "content-length", "etag", "accept-post"] {
            assert_eq!(head.header(header), get.header(header), "{header} of {path}");
        }
    }
}

/// LDN 3.3: "Receivers enforcing constraints on notifications SHOULD fail to process the notification if the
/// constraints are not met and return the appropriate 4xx error code". The inbox announces them by ldp:constrainedBy.
#[tokio::test]
async fn what_meets_no_constraint_is_refused_with_a_problem_and_the_constraints_are_announced() {
    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, "body_bytes: 4100, per_second: 1000").await;
    let deep = format!("{}1{}", "[".repeat(30), "]".repeat(30));
    let many = json!({"type": "Update", "object": vec![1; 1_990]}).to_string();
    let large = json!({"type": "Update", "summary": "a".repeat(5_000)}).to_string();
    for (body, status, why) in [
        ("{", 400, "no JSON"),
        ("\u{feff}{}", 400, "no JSON"),
        ("{}", 422, "says anything"),
        ("[]", 422, "says anything"),
        ("\"hello\"", 422, "says anything"),
        ("{\"@id\": \"\"}", 422, "says anything"),
        ("{\"type\": \"Update\", \"type\": \"Delete\"}", 422, "stands twice"),
        (deep.as_str(), 422, "deep"),
        (large.as_str(), 413, "4100 bytes"),
    ] {
        let refused = send(post(&api, "/ldn/inbox", JSON_LD, body).bearer_auth(REPOSITORY)).await;
        assert_eq!(
            (refused.status, refused.header("content-type")),
            (status, "application/problem+json"),
            "{body}"
        );
        let problem = refused.json();
        assert!(problem["detail"].as_str().unwrap().contains(why), "{problem}");
        assert_eq!(problem["instance"], "/ldn/inbox");
        assert_eq!(refused.link(CONSTRAINED_BY), Some(format!("{}/ldn/constraints", api.base)));
    }
    // The most values that are allowed have fewer than these bytes: the number of values and that of bytes are separate
    // limits.
    assert!(many.len() < 4_100);
    send(post(&api, "/ldn/inbox", JSON_LD, many).bearer_auth(REPOSITORY)).await.is(StatusCode::CREATED);
    let more = json!({"type": "Update", "object": vec![1; 1_999]}).to_string();
    let refused = send(post(&api, "/ldn/inbox", JSON_LD, more).bearer_auth(REPOSITORY)).await;
    assert!(
        refused.is(StatusCode::UNPROCESSABLE_ENTITY).json()["detail"]
            .as_str()
            .unwrap()
            .contains("2000 values")
    );
    let inbox = api.get("/ldn/inbox").await.is(StatusCode::OK);
    assert_eq!(inbox.json()["constrainedBy"], format!("{}/ldn/constraints", api.base));
    assert_eq!(inbox.json()["contains"].as_array().map(Vec::len), Some(1), "what is refused is not kept");
    let page = api.with(None).get("/ldn/constraints").await.is(StatusCode::OK);
    assert!(String::from_utf8(page.body).unwrap().contains("at most 4100 bytes"));
}

/// LDN 3.3.2: "Receivers SHOULD verify the sender of the notification"; Security: their credentials come before any other error.
#[tokio::test]
async fn senders_are_verified_before_anything_else_is_told() {
    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, "").await;
    let source = added(&api, ENTRY).await;
    let (there, nowhere) =
        (format!("/ldn/sources/{source}/inbox"), "/ldn/sources/nowhere-1/inbox".to_owned());
    let reviewed = json!({"type": "Announce", "origin": {"id": format!("{ORIGIN}/system")}, "object": PDF});
    let foreign =
        json!({"type": "Announce", "origin": {"id": "https://elsewhere.example.com"}, "object": PDF});
    for inbox in [&there, &nowhere] {
        for unknown in ["a token of nobody at all", ADMIN] {
            let request = post(&api, inbox, JSON_LD, &reviewed).bearer_auth(unknown);
            let refused = send(request).await.is(StatusCode::UNAUTHORIZED);
            assert!(refused.header("www-authenticate").contains("invalid_token"));
        }
        send(post(&api, inbox, JSON_LD, &reviewed).header("authorization", "Basic eDp5"))
            .await
            .is(StatusCode::UNAUTHORIZED);
        for unknown in [&foreign, &update(PDF)] {
            send(post(&api, inbox, JSON_LD, unknown)).await.is(StatusCode::FORBIDDEN);
        }
        api.with(None).get(inbox).await.is(StatusCode::UNAUTHORIZED);
        api.with(Some("a token of nobody at all")).get(inbox).await.is(StatusCode::UNAUTHORIZED);
    }
    // A sender known by an origin or a token gets the reason.
    send(post(&api, &there, JSON_LD, &reviewed)).await.is(StatusCode::CREATED);
    send(post(&api, &nowhere, JSON_LD, &reviewed)).await.is(StatusCode::NOT_FOUND);
    left(&api, &nowhere, &update(PDF)).await.is(StatusCode::NOT_FOUND);
    assert_eq!(api.get(&there).await.json()["contains"].as_array().map(Vec::len), Some(1));
}

/// LDN 3.3.1: "Receivers MAY list only URIs of notifications in the Inbox that the consumer is able to access".
#[tokio::test]
async fn a_sender_reads_what_it_has_sent_and_an_operator_everything() {
    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, "").await;
    let own = left(&api, "/ldn/inbox", &update(PDF)).await.is(StatusCode::CREATED).path(&api, "location");
    let request = post(&api, "/ldn/inbox", JSON_LD, update(PDF)).bearer_auth(REGISTRY);
    let other = send(request).await.is(StatusCode::CREATED).path(&api, "location");
    let listed = async |token| {
        let body = api.with(Some(token)).get("/ldn/inbox").await.is(StatusCode::OK).json();
        let paths = body["contains"].as_array().unwrap().iter();
        paths.map(|iri| iri.as_str().unwrap().replace(&api.base, "")).collect::<Vec<_>>()
    };
    assert_eq!(listed(REPOSITORY).await, std::slice::from_ref(&own));
    assert_eq!(listed(READ).await, [own.clone(), other.clone()]);
    let sender = api.with(Some(REPOSITORY));
    sender.get(&own).await.is(StatusCode::OK);
    sender.get(&other).await.is(StatusCode::NOT_FOUND);
    // Its token has no other use.
    sender.get("/v1/sources").await.is(StatusCode::UNAUTHORIZED);
}

/// Ours: a repeated notification is the one that is stored already.
#[tokio::test]
async fn a_notification_that_is_sent_again_is_kept_once() {
    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, "").await;
    let mut places = Vec::new();
    for _ in 0..3 {
        let created = left(&api, "/ldn/inbox", &update(PDF)).await.is(StatusCode::CREATED);
        places.push(created.path(&api, "location"));
    }
    places.dedup();
    assert_eq!(places.len(), 1);
    assert_eq!(api.get("/ldn/inbox").await.json()["contains"].as_array().map(Vec::len), Some(1));
}

/// Ours: no context and no URL in a stranger's notification is requested.
#[tokio::test]
async fn nothing_that_a_notification_names_is_fetched() {
    let fleet = fleet().await;
    let (_gateway, api) = gateway(&fleet, "").await;
    let server = ScriptedServer::start().await.unwrap();
    let url = |path: &str| server.uri(path);
    let notification = json!({
        "@context": [url("/context"), {"x": {"@id": url("/x"), "@context": url("/scoped")}, "@import": url("/import")}],
        "@id": url("/id"), "type": "Update",
        "https://www.w3.org/ns/activitystreams#object": {"@id": url("/object"), "@context": url("/inner")},
        "https://www.w3.org/ns/activitystreams#actor": url("/actor"),
    });
    left(&api, "/ldn/inbox", &notification).await.is(StatusCode::CREATED);
    api.get("/ldn/inbox").await.is(StatusCode::OK);
    assert!(server.requests().is_empty(), "{:?}", server.requests());
}

/// Ours: without a file of senders there are no inboxes, and no response advertises any.
#[tokio::test]
async fn a_gateway_without_senders_has_no_inbox() {
    let fleet = fleet().await;
    let gateway = fleet.start(&["gateway"], &fleet.gateway());
    let api = crate::common::api::Api::of(&gateway).await;
    let source = added(&api, ENTRY).await;
    send(post(&api, "/ldn/inbox", JSON_LD, update(PDF)).bearer_auth(ADMIN)).await.is(StatusCode::NOT_FOUND);
    let read = api.get(&format!("/v1/sources/{source}")).await.is(StatusCode::OK);
    assert_eq!((read.link(INBOX), read.json()["id"].clone()), (None, Value::from(source)));
}
