//! Reads the TimeMap of a resource: one page, or several.

use std::collections::{HashSet, VecDeque};

use jiff::Timestamp;
use links::timemap::{self, Format, TimeMap};
use links::{Fault, Faults, Limits};
use url::Url;
use web::{Client, GetRequest, WebError};

use crate::report::Unread;

/// Maximum pages of a TimeMap.
pub(crate) const MOST_PAGES: usize = 100;
const ACCEPT: &str = "application/link-format, application/json;q=0.5";

/// A version, and the page that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) url: Url,
    pub(crate) time: Timestamp,
    pub(crate) page: Url,
}

/// What came of a TimeMap.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    pub(crate) versions: Vec<Named>,
    pub(crate) pages: u64,
    pub(crate) requests: u64,
    pub(crate) faults: Faults,
    pub(crate) unread: Vec<Unread>,
}

/// Reads a TimeMap and its pages, within the limits of each page. `original` is the resource.
pub(crate) async fn read(client: &Client, first: Url, original: &Url, limits: &Limits) -> Pages {
    let mut found = Pages::default();
    let mut seen = HashSet::from([first.clone()]);
    let mut next = VecDeque::from([first]);
    // What fails counts too, so that failures have an end.
    let mut tried = 0;
    while let Some(page) = next.pop_front() {
        if tried >= MOST_PAGES || found.versions.len() >= limits.links {
            let why = format!("at most {MOST_PAGES} pages and {} versions are read", limits.links);
            found.give_up(&page, "timemap-too-long", why);
            break;
        }
        tried += 1;
        let (base, map) = match read_page(client, &page, limits, &mut found.requests).await {
            Ok(read) => read,
            Err((reason, message)) => {
                found.give_up(&page, reason, message);
                continue;
            }
        };
        found.pages += 1;
        found.faults.merge(&map.faults);
        if let Some(other) = other_original(&map, &base, original) {
            found.give_up(&page, "other-original", format!("it is about another resource: {other}"));
            continue;
        }
        if map.faults.has_left_out() {
            found.give_up(&page, "timemap-too-long", "only its beginning was read".to_owned());
        }
        for part in &map.parts {
            // One more than is read, so that the limit is told.
            if next.len() > MOST_PAGES {
                continue;
            }
            if let Ok(url) = base.join(&part.url)
                && seen.insert(url.clone())
            {
                next.push_back(url);
            }
        }
        for memento in map.mementos {
            match base.join(&memento.url) {
                Ok(url) if matches!(url.scheme(), "http" | "https") => {
                    found.versions.push(Named { url, time: memento.time, page: page.clone() });
                }
                _ => found.faults.add(Fault::NoTarget),
            }
        }
    }
    found
}

impl Pages {
    fn give_up(&mut self, page: &Url, reason: &'static str, message: String) {
        self.unread.push(Unread::new(page, reason, message));
    }
}

/// Reads one page. Returns the URL that its links are relative to.
async fn read_page(
    client: &Client,
    page: &Url,
    limits: &Limits,
    requests: &mut u64,
) -> Result<(Url, TimeMap), (&'static str, String)> {
    let failed = |error: WebError| (error.reason().as_str(), error.to_string());
    let largest = Some(limits.bytes as u64);
    let request = GetRequest { accept: Some(ACCEPT.into()), largest, ..GetRequest::new(page.clone()) };
    let mut response = match client.get_with_retries(request).await {
        Ok(response) => response,
        Err(error) => {
            *requests += u64::from(error.requests());
            return Err(failed(error));
        }
    };
    *requests += u64::from(response.requests());
    let media_type = response.media_type();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        body.extend_from_slice(&chunk);
    }
    let format = media_type.as_deref().and_then(Format::of).or_else(|| format_of(&body));
    let Some(format) = format else {
        let is = media_type.as_deref().unwrap_or("without a media type");
        return Err(("no-timemap", format!("it is no TimeMap, but {is}")));
    };
    let map = timemap::read(&body, format, limits);
    let map = map.map_err(|error| ("no-timemap", error.to_string()))?;
    Ok((response.final_url().clone(), map))
}

/// The format by the first characters: servers give TimeMaps all kinds of media types. What follows the first target of
/// a link is an attribute; what follows the first tag of a page is not.
fn format_of(body: &[u8]) -> Option<Format> {
    let start = body.trim_ascii_start();
    match start.first()? {
        b'{' | b'[' => Some(Format::Json),
        b'<' => {
            let end = start.iter().take(Limits::BODY.value_bytes).position(|byte| *byte == b'>')?;
            let is_link = start[end + 1..].trim_ascii_start().first() == Some(&b';');
            is_link.then_some(Format::LinkFormat)
        }
        _ => None,
    }
}

/// The resource that a TimeMap is about, if it is another one. Archives write URIs with another scheme, or without the
/// last slash.
fn other_original(map: &TimeMap, base: &Url, original: &Url) -> Option<String> {
    let text = map.original.as_deref()?;
    let told = base.join(text).ok()?;
    let key = |url: &Url| {
        let host = url.host_str().map(str::to_owned);
        (host, url.port(), url.path().trim_end_matches('/').to_owned(), url.query().map(str::to_owned))
    };
    (key(&told) != key(original)).then(|| secrets::redacted(&told))
}

#[cfg(test)]
mod tests;
