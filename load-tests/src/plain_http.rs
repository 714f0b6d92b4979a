//! The plainest HTTP client: HTTP/1.0, one request per connection, and the whole response at once. Its own work is then
//! hardly part of what is measured.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::Context as _;

/// The longest response that is read.
const MOST_BYTES: u64 = 256 << 20;
/// The longest wait for more of a response.
const PATIENCE: Duration = Duration::from_secs(120);

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    /// The status.
    pub(crate) status: u16,
    /// The body.
    pub(crate) body: String,
}

/// The body of a response to a GET. Fails without a status of 200.
pub(crate) fn get(address: &str, path: &str) -> anyhow::Result<String> {
    let response = send(address, "GET", path, None)?;
    anyhow::ensure!(response.status == 200, "{path} is answered with {}", response.status);
    Ok(response.body)
}

/// Sends a request, with a body of JSON if there is one.
pub(crate) fn send(address: &str, method: &str, path: &str, json: Option<&str>) -> anyhow::Result<Response> {
    let body = json.unwrap_or_default();
    let about_body = match json {
        Some(_) => format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()),
        None => String::new(),
    };
    let head =
        format!("{method} {path} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n{about_body}\r\n");
    let mut stream = TcpStream::connect(address).with_context(|| format!("cannot connect to {address}"))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
    let mut text = String::new();
    stream.take(MOST_BYTES).read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").context("the response has no head")?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    anyhow::ensure!(!is_chunked, "the response to {path} comes in chunks, which this client cannot read");
    Ok(Response { status: status.context("the response has no status")?, body: body.to_owned() })
}
