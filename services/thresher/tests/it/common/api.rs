//! A client of the gateway's API over HTTP.

use std::fs;
use std::process::Command;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use testkit::servers::{NatsFixture, S3Fixture};
use testkit::waiting::found;

use super::{Fleet, Run, Service, thresher, wait};

/// A token of each role.
pub(crate) const READ: &str = "a token to read with";
pub(crate) const OPERATE: &str = "a token to operate with";
pub(crate) const ADMIN: &str = "a token to do everything with";

/// A gateway and the token that a client sends.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    client: Client,
    pub(crate) base: String,
    token: Option<String>,
}

/// A response, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// A fleet with a gateway, all in one process.
pub(crate) async fn fleet() -> (Fleet, Service, Api) {
    fleet_with("").await
}

/// The same, with more fields of the gateway, each followed by a comma.
pub(crate) async fn fleet_with(more: &str) -> (Fleet, Service, Api) {
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let settings = fleet.gateway().replace("gateway: {", &format!("gateway: {{{more}"));
    let all = fleet.start(&[], &settings);
    let api = Api::of(&all).await;
    (fleet, all, api)
}

impl Fleet {
    /// The lines of configuration of a gateway with a token of each role.
    pub(crate) fn gateway(&self) -> String {
        let path = self.path("tokens.yaml");
        let line = |role: &str, token: &str| format!("- {{name: {role}, role: {role}, token: {token}}}\n");
        let text = [line("read", READ), line("operate", OPERATE), line("admin", ADMIN)].concat();
        fs::write(&path, text).expect("our own folder");
        let path = path.display();
        format!("gateway: {{listen: '127.0.0.1:0', tokens: '{path}', requests_per_second: 10000}}")
    }
}

impl Api {
    /// The gateway of a process, as soon as it responds.
    pub(crate) async fn of(service: &Service) -> Self {
        let address = found("the gateway says where it is", async || service.said("api.address")).await;
        let base = format!("http://{address}");
        let client =
            Client::builder().no_proxy().timeout(Duration::from_secs(240)).build().expect("a client");
        Self { client, base, token: Some(ADMIN.to_owned()) }
    }

    /// The same, at another address.
    pub(crate) fn at(&self, base: String) -> Self {
        Self { base, ..self.clone() }
    }

    /// The same, with another token or none.
    pub(crate) fn with(&self, token: Option<&str>) -> Self {
        Self { token: token.map(str::to_owned), ..self.clone() }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        send(self.request(Method::POST, path).json_body(&body)).await
    }
}

impl Api {
    /// `thresher <words>`, as a client of this gateway.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = thresher();
        command.args(words).env("THRESHER_SERVER", &self.base);
        command.envs(self.token.as_ref().map(|token| ("THRESHER_TOKEN", token)));
        command
    }

    /// The same, to its end.
    pub(crate) async fn ask(&self, words: &[&str]) -> Run {
        wait(self.command(words)).await
    }
}

/// A JSON body. The client's own method needs one more of its features.
pub(crate) trait JsonBody {
    fn json_body(self, body: &Value) -> Self;
}

impl JsonBody for RequestBuilder {
    fn json_body(self, body: &Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }
}

/// Sends a request and reads the response.
pub(crate) async fn send(request: RequestBuilder) -> Answer {
    let mut response: Response = request.send().await.expect("an answer");
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.expect("the answer goes on") {
        body.extend_from_slice(&piece);
    }
    Answer { status, headers, body }
}

impl Answer {
    #[track_caller]
    pub(crate) fn is(self, status: StatusCode) -> Self {
        assert_eq!(self.status, status.as_u16(), "{}", String::from_utf8_lossy(&self.body));
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// A header's text, or nothing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a text"))
    }
}
