//! A request to a gateway over a connection of its own, so that no answer waits for another.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use anyhow::Context as _;

/// An answer, read to its end.
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
    /// Of the whole answer, its head included.
    pub(crate) bytes: u64,
}

/// Sends a request, which asks to close the connection, and reads the answer.
pub(crate) fn ask(address: &str, request: &str) -> anyhow::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let bytes = answer.len() as u64;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").context("the answer has no head")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.context("the answer has no status")?;
    Ok(Answer { status, head, body: answer.split_off(end + 4), bytes })
}

impl Answer {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}
