//! A site built by the test: a Source whose every document and body the test writes.

use testkit::scripted::{Recorded, Reply, ScriptedServer};

const ROBOTS: &str = "/robots.txt";
const NAMESPACES: &str = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\"";

/// A server that gives the same reply at a path until it is given another.
#[derive(Debug)]
pub(crate) struct Site(ScriptedServer);

impl Site {
    /// Starts without a `robots.txt`.
    pub(crate) async fn start() -> Self {
        let server = ScriptedServer::start().await.expect("a free port on loopback");
        server.always(ROBOTS, Reply::status(404));
        Self(server)
    }

    /// The URI of a path.
    pub(crate) fn uri(&self, path: &str) -> String {
        self.0.uri(path)
    }

    /// Serves a body and returns its URI.
    pub(crate) fn serve(&self, path: &str, body: impl Into<String>) -> String {
        self.reply(path, Reply::ok(body.into()))
    }

    /// Serves any reply.
    pub(crate) fn reply(&self, path: &str, reply: Reply) -> String {
        self.0.always(path, reply);
        self.uri(path)
    }

    /// Serves this reply to the next request, before any other.
    pub(crate) fn next(&self, path: &str, reply: Reply) {
        self.0.push(path, reply);
    }

    /// Answers so many requests from now on. Later ones wait until all are allowed.
    pub(crate) fn allow(&self, requests: u64) {
        self.0.allow("", requests);
    }

    /// Answers all requests again, also those that wait.
    pub(crate) fn allow_all(&self) {
        self.0.allow_all();
    }

    /// How often a path was requested.
    pub(crate) fn requests_at(&self, path: &str) -> usize {
        self.0.requests_at(path).len()
    }

    /// The `If-None-Match` of each request at a path.
    pub(crate) fn conditions_at(&self, path: &str) -> Vec<Option<String>> {
        let condition = |request: &Recorded| request.header("if-none-match").map(str::to_owned);
        self.0.requests_at(path).iter().map(condition).collect()
    }

    /// The values of a header in the requests at a path.
    pub(crate) fn headers_at(&self, path: &str, name: &str) -> Vec<Option<String>> {
        let requests = self.0.requests_at(path);
        requests.iter().map(|request| request.header(name).map(str::to_owned)).collect()
    }

    /// The requested paths, in order, without `robots.txt`, which is requested once, before the second request.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.requests().into_iter().map(|request| request.path).filter(|path| path != ROBOTS).collect()
    }

    /// Every request, in their order.
    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.0.requests()
    }
}

/// A `urlset` with the attributes of its `rs:md`, if it has one, and its entries.
pub(crate) fn urlset(md: &str, entries: &[String]) -> String {
    let md = if md.is_empty() { String::new() } else { format!("  <rs:md {md}/>\n") };
    let entries: String = entries.concat();
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset {NAMESPACES}>\n{md}{entries}</urlset>\n")
}

/// An entry with the attributes of its `rs:md`, if it has one.
pub(crate) fn resource(uri: &str, md: &str) -> String {
    let uri = uri.replace('&', "&amp;");
    let md = if md.is_empty() { String::new() } else { format!("<rs:md {md}/>") };
    format!("  <url><loc>{uri}</loc>{md}</url>\n")
}
