//! Addresses that may not be reached, with a server that would see it.

use model::{Disposition, ProblemReason};
use testkit::scripted::{Reply, ScriptedServer};
use url::Url;
use web::{AddressClass, AddressPolicy, Client, ErrorKind, WebConfig, WebError};

use crate::support::{config, request};

fn client(addresses: AddressPolicy) -> Client {
    Client::new(WebConfig { addresses, ..config() }).unwrap()
}

fn assert_refused(error: &WebError) {
    assert_eq!(error.kind(), ErrorKind::RefusedAddress, "{error}");
    assert_eq!((error.reason(), error.disposition()), (ProblemReason::RefusedAddress, Disposition::Refuse));
}

/// The same server by a name that has to be looked up.
fn by_name(uri: &str) -> String {
    uri.replace("127.0.0.1", "localhost")
}

async fn server() -> ScriptedServer {
    let server = ScriptedServer::start().await.unwrap();
    server.always("/a", Reply::ok("abc"));
    server
}

#[tokio::test]
async fn an_address_in_a_url_is_refused_before_anything_is_sent() {
    let server = server().await;
    let client = client(AddressPolicy::public_only());
    let error = client.get_with_retries(request(&server.uri("/a"))).await.unwrap_err();
    assert_refused(&error);
    assert_eq!((error.requests(), client.requests(), server.requests().len()), (0, 0, 0));
    let text = error.to_string();
    assert!(
        text.contains("127.0.0.1 is a loopback address")
            && text.contains("entry URL")
            && text.contains("--allow-address"),
        "{text}"
    );
}

#[tokio::test]
async fn a_name_is_refused_by_the_address_it_has() {
    let server = server().await;
    let client = client(AddressPolicy::public_unless(&"http://example.org/".parse().unwrap()));
    let error = client.get_with_retries(request(&by_name(&server.uri("/a")))).await.unwrap_err();
    assert_refused(&error);
    assert!(error.to_string().contains("is a loopback address"), "{error}");
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn an_entry_that_lies_there_is_reached_by_address_and_by_name() {
    let server = server().await;
    for uri in [server.uri("/a"), by_name(&server.uri("/a"))] {
        let entry: Url = uri.parse().unwrap();
        client(AddressPolicy::public_unless(&entry)).get(request(&uri)).await.unwrap();
    }
    client(AddressPolicy::public_only().allow(AddressClass::Loopback))
        .get(request(&by_name(&server.uri("/a"))))
        .await
        .unwrap();
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn every_redirect_is_checked() {
    let server = server().await;
    let entry: Url = server.url().parse().unwrap();
    let client = client(AddressPolicy::public_unless(&entry));
    for (path, to) in [
        ("/metadata", "http://169.254.169.254/latest/".to_owned()),
        ("/inside", "http://10.0.0.1/".to_owned()),
        ("/mapped", server.uri("/a").replace("127.0.0.1", "[::ffff:127.0.0.1]")),
        ("/name", by_name(&server.uri("/a"))),
    ] {
        server.push(path, Reply::status(302).header("location", to));
        let error = client.get(request(&server.uri(path))).await.unwrap_err();
        assert_refused(&error);
    }
    assert!(server.requests_at("/a").is_empty());
    assert_eq!(server.requests().len(), 4);
    server.push("/here", Reply::status(302).header("location", "/a"));
    client.get(request(&server.uri("/here"))).await.unwrap();
}

#[tokio::test]
async fn a_name_without_address_is_still_a_fault_of_the_name() {
    let host = format!("{}.invalid", "a".repeat(64));
    let error =
        client(AddressPolicy::public_only()).get(request(&format!("http://{host}/"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Dns, "{error}");
}

#[tokio::test]
async fn an_address_that_is_allowed_is_reached_by_number_and_by_name() {
    let server = server().await;
    let client = client(AddressPolicy::public_only().allow_network("127.0.0.1/32".parse().unwrap()));
    client.get(request(&server.uri("/a"))).await.unwrap();
    client.get(request(&by_name(&server.uri("/a")))).await.unwrap();
    let error = client.get(request("http://127.0.0.2:9/")).await.unwrap_err();
    assert_refused(&error);
}

#[tokio::test]
async fn a_refused_redirect_leaves_its_way_as_evidence() {
    let server = server().await;
    let entry: Url = server.url().parse().unwrap();
    server.push("/away", Reply::status(302).header("location", "/further"));
    server.push("/further", Reply::status(302).header("location", "http://127.0.0.2:9/?token=t"));
    let client = client(AddressPolicy::public_unless(&entry));
    let error = client.get(request(&server.uri("/away"))).await.unwrap_err();
    assert_refused(&error);
    let evidence = error.to_failure().evidence;
    assert_eq!(evidence.final_url.as_deref(), Some("http://127.0.0.2:9/?token=***"));
    assert_eq!(evidence.redirects, [server.uri("/away"), server.uri("/further")]);
}

#[tokio::test]
async fn ports_of_other_services_are_refused_but_for_the_entrys() {
    let all = client(AddressPolicy::allow_all());
    let server = server().await;
    for port in [22, 25, 6667] {
        let error = all.get(request(&format!("http://127.0.0.1:{port}/"))).await.unwrap_err();
        assert_eq!((error.kind(), error.reason()), (ErrorKind::RefusedPort, ProblemReason::RefusedPort));
        assert_eq!((error.requests(), error.disposition()), (0, Disposition::Refuse));
    }
    assert_eq!(all.requests(), 0);
    let text = all.get(request("http://127.0.0.1:6667/")).await.unwrap_err().to_string();
    assert!(text.contains("127.0.0.1:6667") && text.contains("browsers refuse"), "{text}");
    server.push("/away", Reply::status(302).header("location", "http://127.0.0.1:25/"));
    let error = all.get(request(&server.uri("/away"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RefusedPort, "{error}");

    let entry = Some("http://127.0.0.1:1".parse().unwrap());
    let own = Client::new(WebConfig { entry, ..config() }).unwrap();
    let error = own.get(request("http://127.0.0.1:1/")).await.unwrap_err();
    assert_eq!(error.reason(), ProblemReason::Connect, "it is asked: {error}");
    let error = own.get(request("http://127.0.0.1:7/")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RefusedPort, "{error}");
}
