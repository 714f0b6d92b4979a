//! A client that requests pages, each over a connection of its own, so that no response waits for another.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use anyhow::{Context as _, ensure};

/// A visitor that has signed in.
pub(super) struct Visitor {
    address: String,
    cookie: String,
}

/// A page, read to its end.
pub(super) struct Answer {
    pub(super) status: u16,
    /// Of the whole response, its head included.
    pub(super) bytes: u64,
    head: String,
}

impl Visitor {
    /// Signs in.
    pub(super) fn signed_in(address: &str, token: &str) -> anyhow::Result<Self> {
        let body = format!("token={}", token.replace(' ', "+"));
        let request = format!(
            "POST /console/sign-in HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\nConnection: close\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = ask(address, &request)?;
        ensure!(answer.status == 303, "signing in is answered with {}", answer.status);
        let cookie = answer.head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next()).context("no cookie is set")?;
        Ok(Self { address: address.to_owned(), cookie: cookie.to_owned() })
    }

    /// Requests a page.
    pub(super) fn get(&self, path: &str) -> anyhow::Result<Answer> {
        let address = &self.address;
        let cookie = &self.cookie;
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nCookie: {cookie}\r\n\r\n"
        );
        ask(address, &head)
    }
}

fn ask(address: &str, request: &str) -> anyhow::Result<Answer> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").context("the answer has no head")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok(Answer { status: status.context("the answer has no status")?, bytes: answer.len() as u64, head })
}
