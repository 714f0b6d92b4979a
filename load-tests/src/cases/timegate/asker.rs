//! A client that asks a gateway, each time over a connection of its own.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use anyhow::Context as _;

/// A client without a token.
pub(super) struct Asker {
    address: String,
}

/// An answer, read to its end.
pub(super) struct Answer {
    pub(super) status: u16,
    head: String,
    pub(super) body: Vec<u8>,
}

impl Asker {
    pub(super) fn new(address: String) -> Self {
        Self { address }
    }

    /// Requests a path or a URL of the gateway. Each of the further headers ends with a line break.
    pub(super) fn get(&self, place: &str, headers: &str) -> anyhow::Result<Answer> {
        let address = &self.address;
        let path = place.strip_prefix(&format!("http://{address}")).unwrap_or(place);
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").context("the answer has no head")?;
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.context("the answer has no status")?;
        Ok(Answer { status, head, body: answer.split_off(end + 4) })
    }
}

impl Answer {
    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}
