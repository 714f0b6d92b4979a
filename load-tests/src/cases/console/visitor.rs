//! A client that requests pages, each over a connection of its own, so that no response waits for another.

use anyhow::{Context as _, ensure};

use crate::answer::{Answer, ask};

/// A visitor that has signed in.
pub(super) struct Visitor {
    address: String,
    cookie: String,
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
        let cookie = answer.header("set-cookie").and_then(|cookie| cookie.split(';').next());
        let cookie = cookie.context("no cookie is set")?;
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
