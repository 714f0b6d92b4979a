//! Pages that come in the place of content: challenges and refusals of bot defences, and forms to log in.
//!
//! An answer is judged by its headers and by the first bytes of its body, which are handed on afterwards.

mod login;
mod rules;
#[cfg(test)]
mod tests;

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use url::Url;

use crate::pieces::Pieces;

/// As much of a body is looked at.
const PREFIX: usize = 16 * 1024;
/// The longest time that is spent on the first bytes of a body.
const LOOK: Duration = Duration::from_secs(10);

/// What came in the place of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wall {
    /// A challenge of the bot defence of this name: it wants a browser, or a person.
    Challenge(&'static str),
    /// The bot defence of this name refuses this one request.
    Refusal(&'static str),
    /// A form to log in.
    Login,
}

/// What the head and the first bytes of an answer show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Look {
    /// What came in the place of content, as far as it can be told from the answer alone.
    pub(crate) wall: Option<Wall>,
    /// Whether the body is an HTML page: its head says so, and so does its beginning.
    pub(crate) is_html: bool,
}

/// The head of an answer, and how it was reached.
pub(crate) struct Seen<'a> {
    pub(crate) headers: &'a HeaderMap,
    /// What was asked for.
    pub(crate) asked: &'a Url,
    /// What answered.
    pub(crate) at: &'a Url,
}

/// What the head of an answer shows, where it is enough. None where the body may be an HTML page, whose beginning tells.
pub(crate) fn by_head(status: u16, headers: &HeaderMap) -> Option<Look> {
    let by_headers = rules::by_headers(headers);
    // A part may begin anywhere, and a part of a page says little.
    let is_enough = by_headers.is_some() || status == 206 || !may_be_html(headers);
    is_enough.then_some(Look { wall: by_headers, is_html: false })
}

/// The first bytes of a body, as far as they matter, and whether nothing follows them. They stay in `pieces`.
pub(crate) async fn beginning(pieces: &mut Pieces, patience: Duration) -> (Bytes, bool) {
    pieces.look(PREFIX, patience.min(LOOK), may_become_html).await
}

/// What the first bytes of a body show, which may be an HTML page.
pub(crate) fn judge(seen: &Seen<'_>, prefix: &Bytes, is_whole: bool) -> Look {
    if !begins_as_html(prefix) {
        return Look::default();
    }
    let page = String::from_utf8_lossy(prefix).to_ascii_lowercase();
    let login = || login::is_one(seen.asked, seen.at, &page).then_some(Wall::Login);
    let wall = rules::by_headers(seen.headers).or_else(|| rules::by_page(&page, is_whole)).or_else(login);
    Look { wall, is_html: true }
}

/// Whether the head leaves it possible that an HTML page follows.
fn may_be_html(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(CONTENT_TYPE) else { return true };
    let value = value.as_bytes().to_ascii_lowercase();
    value.starts_with(b"text/html") || value.starts_with(b"application/xhtml+xml")
}

/// Whether a body that begins so may be a page, as far as it has come.
fn may_become_html(bytes: &[u8]) -> bool {
    bytes.len() < 64 || begins_as_html(bytes) || bytes.trim_ascii_start().starts_with(b"<?xml")
}

/// Whether the bytes begin as pages do. Servers that call everything text/html are not rare.
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
    // XHTML may begin as any XML does: its root tells.
    let root = bytes.windows(5).take(1024).any(|window| window.eq_ignore_ascii_case(b"<html"));
    BEGINNINGS.iter().any(|beginning| is(bytes, beginning)) || (is(bytes, b"<?xml") && root)
}
