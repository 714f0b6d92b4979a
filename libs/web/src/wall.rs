//! Pages in place of content: challenges and refusals of bot defences, and login forms.
//!
//! A response is judged by its headers and by the first bytes of its body, which are returned afterwards.

mod login;
mod rules;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use url::Url;

/// How many bytes of a body are examined.
pub(crate) const PREFIX: usize = 16 * 1024;
/// The longest wait for the first bytes of a body.
pub(crate) const LOOK: Duration = Duration::from_secs(10);

/// What answered in place of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wall {
    /// A challenge of the bot defence of this name: it expects a browser, or a person.
    Challenge(&'static str),
    /// The bot defence of this name refuses this one request.
    Refusal(&'static str),
    /// A login form.
    Login,
}

/// Findings in a response's head and first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Look {
    /// What answered in place of content, as far as the response alone shows it.
    pub(crate) wall: Option<Wall>,
    /// Whether the body is an HTML page, by its headers and its first bytes.
    pub(crate) is_html: bool,
}

/// A response head, and how it was reached.
pub(crate) struct Seen<'a> {
    pub(crate) headers: &'a HeaderMap,
    /// The requested URL.
    pub(crate) asked: &'a Url,
    /// The URL that answered.
    pub(crate) at: &'a Url,
}

/// The findings in a response head, if it is sufficient. None where the body may be an HTML page, whose first
/// bytes decide.
pub(crate) fn by_head(status: u16, headers: &HeaderMap) -> Option<Look> {
    let by_headers = rules::by_headers(headers);
    // A part may start anywhere, and says little about a page.
    let is_enough = by_headers.is_some() || status == 206 || !may_be_html(headers);
    is_enough.then_some(Look { wall: by_headers, is_html: false })
}

/// The findings in the first bytes of a body that may be an HTML page.
pub(crate) fn judge(seen: &Seen<'_>, prefix: &Bytes, is_whole: bool) -> Look {
    if !begins_as_html(prefix) {
        return Look::default();
    }
    let page = String::from_utf8_lossy(prefix).to_ascii_lowercase();
    let login = || login::is_one(seen.asked, seen.at, &page).then_some(Wall::Login);
    let wall = rules::by_headers(seen.headers).or_else(|| rules::by_page(&page, is_whole)).or_else(login);
    Look { wall, is_html: true }
}

/// Whether an HTML page may follow this head.
fn may_be_html(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE) else { return true };
    let value = value.as_bytes().to_ascii_lowercase();
    value.starts_with(b"text/html") || value.starts_with(b"application/xhtml+xml")
}

/// Whether a body with these first bytes may be a page.
pub(crate) fn may_become_html(bytes: &[u8]) -> bool {
    bytes.len() < 64 || begins_as_html(bytes) || bytes.trim_ascii_start().starts_with(b"<?xml")
}

/// Whether the bytes begin like a page. Servers often call everything text/html.
fn begins_as_html(bytes: &[u8]) -> bool {
    const BEGINNINGS: [&[u8]; 10] = [
        b"<!doctype html",
        b"<html",
        b"<head",
        b"<body",
        b"<title",
        b"<meta",
        b"<script",
        b"<!--",
        b"<style",
        b"<div",
    ];
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    let is = |bytes: &[u8], beginning: &[u8]| {
        bytes.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
    };
    // XHTML may begin like any XML: its root decides.
    let root = bytes.windows(5).take(1024).any(|window| window.eq_ignore_ascii_case(b"<html"));
    BEGINNINGS.iter().any(|beginning| is(bytes, beginning)) || (is(bytes, b"<?xml") && root)
}
