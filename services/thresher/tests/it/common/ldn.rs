//! A gateway with inboxes, and the senders of notifications.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use testkit::servers::{NatsFixture, S3Fixture, Venv};

use super::api::{Answer, Api, send};
use super::{Fleet, Service};

/// The tokens of a sender, and of another one that may send anything about one Source.
pub(crate) const REPOSITORY: &str = "a token of a repository";
pub(crate) const REGISTRY: &str = "a token of a registry";
/// The origin that may send notifications without a token.
pub(crate) const ORIGIN: &str = "https://review.example.com";
/// JSON-LD.
pub(crate) const JSON_LD: &str = "application/ld+json";

impl Fleet {
    /// The configuration lines of a gateway with inboxes. `speaks_for`: the Source about which the registry may send
    /// anything.
    pub(crate) fn inboxes(&self, more: &str, speaks_for: &str) -> String {
        let path = self.path("senders.yaml");
        let text = format!(
            "- {{name: repository, token: {REPOSITORY}}}\n- {{name: registry, token: {REGISTRY}, sources: [{speaks_for}]}}\n\
             - {{name: reviews, origins: ['{ORIGIN}']}}\n"
        );
        fs::write(&path, text).expect("our own folder");
        let inbox = format!("inbox: {{senders: '{}', megabytes: 0, {more}}}", path.display());
        self.gateway().replace("gateway: {", &format!("gateway: {{{inbox}, "))
    }
}

/// A fleet of its own on the shared servers.
pub(crate) async fn fleet() -> Fleet {
    Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await)
}

/// A gateway with inboxes and no other service. It takes notifications without a scheduler.
pub(crate) async fn gateway(fleet: &Fleet, more: &str) -> (Service, Api) {
    let gateway = fleet.start(&["gateway"], &fleet.inboxes(more, "none-1"));
    let api = Api::of(&gateway).await;
    (gateway, api)
}

/// Adds a Source that no scheduler harvests. Returns its name.
pub(crate) async fn added(api: &Api, entry: &str) -> String {
    let created = api.post("/v1/sources", json!({"entry": entry})).await;
    assert_eq!(created.status, 201);
    created.json()["id"].as_str().expect("a name").to_owned()
}

/// An announcement of a repository.
pub(crate) fn update(object: &str) -> Value {
    json!({"@context": "https://www.w3.org/ns/activitystreams", "id": "urn:uuid:1", "type": "Update", "object": object})
}

/// The same, for readers that fetch the context to make a graph of it.
pub(crate) fn plain_update(object: &str) -> Value {
    let mut update = update(object);
    update["@context"] =
        json!({"@vocab": "https://www.w3.org/ns/activitystreams#", "type": "@type", "id": "@id"});
    update
}

/// Has py-ldnlib find the inbox of a target, leave a notification as the repository, and read it back. Returns its
/// output.
pub(crate) async fn py_ldnlib(target: &str, notification: &Value) -> Value {
    let target = target.to_owned();
    let body = notification.to_string();
    let ended = tokio::task::spawn_blocking(move || {
        let python = Venv::ldn().expect("pip installs what is pinned").program("python");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/notify.py");
        let mut python = Command::new(python);
        python.env("PYTHONDONTWRITEBYTECODE", "1").env("NO_PROXY", "*").args([script, &target, REPOSITORY]);
        let mut child = python
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("there is Python");
        child.stdin.take().expect("it is piped").write_all(body.as_bytes()).expect("it reads");
        child.wait_with_output().expect("it ends")
    });
    let ended = ended.await.expect("no panic");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    serde_json::from_slice(&ended.stdout).expect("JSON")
}

/// A POST to an inbox, without a token.
pub(crate) fn post(api: &Api, inbox: &str, media_type: &str, body: impl ToString) -> RequestBuilder {
    let request = api.with(None).request(Method::POST, inbox);
    request.header("content-type", media_type).body(body.to_string())
}

/// A notification that the repository leaves.
pub(crate) async fn left(api: &Api, inbox: &str, body: &Value) -> Answer {
    send(post(api, inbox, JSON_LD, body).bearer_auth(REPOSITORY)).await
}

impl Answer {
    /// The target of the link with a relation.
    pub(crate) fn link(&self, relation: &str) -> Option<String> {
        let links = self.headers.get_all("link").iter().filter_map(|value| value.to_str().ok());
        let mut links = links.flat_map(|value| value.split(", "));
        links.find_map(|link| {
            let (target, rest) = link.strip_prefix('<')?.split_once('>')?;
            rest.contains(&format!("rel=\"{relation}\"")).then(|| target.to_owned())
        })
    }

    /// The path of this gateway's URL in a header.
    pub(crate) fn path(&self, api: &Api, header: &str) -> String {
        let url = self.header(header);
        url.strip_prefix(&api.base).unwrap_or_else(|| panic!("{url} is of {}", api.base)).to_owned()
    }
}
