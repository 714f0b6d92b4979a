//! The Source's responses to a process.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};
use http::HeaderMap;
use jiff::SignedDuration;
use model::Clock;
use web::{Carried, Transport};

use super::{Site, What};
use crate::effects::Effects;

/// Bytes of a body per piece.
const PIECE: usize = 16 * 1024;

/// The connection between one process and the Source.
#[derive(Debug)]
pub struct Line {
    process: u64,
    site: Arc<Site>,
    effects: Arc<Effects>,
}

/// A request that is open at an origin.
struct Open {
    site: Arc<Site>,
    at: (u64, String),
}

/// A response to be sent.
struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
    /// The connection ends after this many bytes.
    ends: Option<usize>,
    /// Endless spaces follow.
    is_endless: bool,
}

impl Line {
    /// The connection of the process of this number, with these effects.
    pub fn new(process: u64, site: Arc<Site>, effects: Arc<Effects>) -> Self {
        Self { process, site, effects }
    }

    async fn answer(&self, request: http::Request<()>) -> io::Result<Carried> {
        let host = request.uri().host().unwrap_or_default().to_owned();
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default();
        let begun = self.effects.begin(format!("GET {host}{path}?{query}")).await;
        let open = Open::begin(Arc::clone(&self.site), (self.process, host.clone()), &path);
        let what = self.site.strike(&path);
        tokio::time::sleep(Duration::from_millis(begun.lot % 40)).await;
        match what {
            Some(What::Refused) => return Err(io::ErrorKind::ConnectionRefused.into()),
            Some(What::Broken) => return Err(io::Error::other("the connection ended")),
            Some(What::Slow(seconds)) => tokio::time::sleep(Duration::from_secs(u64::from(seconds))).await,
            Some(What::Changes) => {
                let number = path.strip_prefix("/r/").and_then(|number| number.parse().ok());
                self.site.change_one("updated", number);
            }
            Some(What::Publishes) => self.site.publish(true, true),
            _ => {}
        }
        let mut reply = match &self.site.spec.repository {
            Some(repository) if path == "/oai" => {
                Reply::of_protocol(self.site.protocol(repository, query, self.site.clock.now()))
            }
            _ => self.site.reply(&path, request.headers()),
        };
        let is_nested = what == Some(What::Nested) || path.starts_with("/nested-") && self.site.nests();
        if let Some(body) = self.site.nested(&path, self.site.clock.now()).filter(|_| is_nested) {
            // Without the validators of the true document: no run could detect such a lie.
            let headers = vec![("content-type", "application/xml".to_owned())];
            reply = Reply { headers, ..Reply::of(200, body) };
        }
        let is_body = matches!(reply.status, 200 | 206);
        match what {
            Some(What::Status(status, after)) => {
                if let (429 | 503, Some(after)) = (status, after) {
                    let until = self.site.clock.now() + SignedDuration::from_secs(i64::from(after));
                    let mut state = self.site.state();
                    let rest = state.rests.entry((self.process, host.clone())).or_insert(until);
                    *rest = until.max(*rest);
                }
                let headers = after.map(|after| ("retry-after", after.to_string())).into_iter().collect();
                reply = Reply { headers, ..Reply::of(status, Bytes::from_static(b"no")) };
            }
            Some(What::Cut(percent)) if is_body => {
                reply.ends = Some(reply.body.len() * usize::from(percent.min(99)) / 100);
            }
            Some(What::Lie(by)) if is_body => reply.lie(by),
            Some(What::Endless) if is_body => {
                reply.headers.retain(|(name, _)| *name != "content-length");
                reply.is_endless = true;
            }
            Some(What::Corrupt) if is_body && !reply.body.is_empty() => {
                let mut body = reply.body.to_vec();
                let place = (begun.lot % body.len() as u64) as usize;
                body[place] ^= 0x20;
                reply.body = body.into();
            }
            _ => {}
        }
        self.effects.end(begun).await;
        Ok(reply.carried(open))
    }
}

impl Transport for Line {
    fn carry(&self, request: http::Request<()>) -> BoxFuture<'_, io::Result<Carried>> {
        Box::pin(self.answer(request))
    }
}

impl Open {
    fn begin(site: Arc<Site>, at: (u64, String), path: &str) -> Self {
        {
            let now = site.clock.now();
            let mut state = site.state();
            state.requests += 1;
            let open = state.open.entry(at.clone()).or_default();
            *open += 1;
            let open = *open;
            state.most_open = state.most_open.max(open);
            if let Some(until) = state.rests.get(&at).copied()
                && now < until
            {
                state.wrongs.push(format!("{}{path} was asked for at {now}, in a rest until {until}", at.1));
            }
        }
        Self { site, at }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(open) = self.site.state().open.get_mut(&self.at) {
            *open = open.saturating_sub(1);
        }
    }
}

impl Site {
    /// The fault of the next response for a path: the first one that applies.
    fn strike(&self, path: &str) -> Option<What> {
        let mut state = self.state();
        state.faults.iter_mut().find_map(|fault| fault.strikes(path).then_some(fault.what))
    }

    fn reply(&self, path: &str, asked: &HeaderMap) -> Reply {
        let now = self.clock.now();
        let state = self.state();
        let found = match path.strip_prefix("/r/").map(str::parse::<u32>) {
            Some(Ok(number)) => state.resource(number).and_then(|version| {
                let etag = format!("\"{}\"", fixity::Sha256::of(version.body.as_ref()?));
                Some((version.body.clone()?, "text/plain", version.at, etag))
            }),
            _ => {
                state.page(path).map(|page| (page.body.clone(), page.media_type, page.at, page.etag.clone()))
            }
        };
        let Some((body, media_type, modified, etag)) = found else {
            return Reply::of(404, Bytes::new());
        };
        let date = |time: jiff::Timestamp| {
            jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&time).expect("a date")
        };
        let mut headers = vec![("content-type", media_type.to_owned()), ("date", date(now))];
        let text = |name: &str| asked.get(name).and_then(|value| value.to_str().ok());
        if self.spec.etag {
            headers.push(("etag", etag.clone()));
            headers.push(("accept-ranges", "bytes".to_owned()));
        }
        if self.spec.last_modified {
            headers.push(("last-modified", date(modified)));
        }
        let same = match text("if-none-match") {
            Some(held) => self.spec.etag && held == etag,
            None => self.spec.last_modified && text("if-modified-since") == Some(date(modified).as_str()),
        };
        if same {
            return Reply { headers, ..Reply::of(304, Bytes::new()) };
        }
        let part =
            text("range").filter(|_| self.spec.etag && text("if-range").is_none_or(|held| held == etag));
        let part = part.and_then(|range| {
            let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
            let first: usize = first.parse().ok()?;
            let end = last.parse().map_or(body.len(), |last: usize| body.len().min(last + 1));
            (first < end).then(|| (first, body.slice(first..end)))
        });
        let (status, body) = match part {
            Some((first, part)) => {
                let range = format!("bytes {first}-{}/{}", first + part.len() - 1, body.len());
                headers.push(("content-range", range));
                (206, part)
            }
            None => (200, body),
        };
        if self.spec.content_length {
            headers.push(("content-length", body.len().to_string()));
        }
        Reply { headers, ..Reply::of(status, body) }
    }

    /// Whether lists are endless indexes of indexes for now.
    fn nests(&self) -> bool {
        self.state().faults.iter().any(|fault| fault.what == What::Nested)
    }
}

impl Reply {
    fn of(status: u16, body: Bytes) -> Self {
        Self { status, headers: Vec::new(), body, ends: None, is_endless: false }
    }

    fn of_protocol(body: Bytes) -> Self {
        let length = body.len().to_string();
        let headers = vec![("content-type", "text/xml".to_owned()), ("content-length", length)];
        Self { headers, ..Self::of(200, body) }
    }

    fn lie(&mut self, by: i32) {
        let Some((_, length)) = self.headers.iter_mut().find(|(name, _)| *name == "content-length") else {
            return;
        };
        let said = (self.body.len() as i64 + i64::from(by)).max(0) as usize;
        *length = said.to_string();
        if said < self.body.len() {
            // Clients read no further than the announced length.
            self.body.truncate(said);
        } else {
            self.ends = Some(self.body.len());
        }
    }

    fn carried(self, open: Open) -> Carried {
        let mut answer = http::Response::builder().status(self.status);
        for (name, value) in self.headers {
            answer = answer.header(name, value);
        }
        let left = self.body.slice(..self.ends.unwrap_or(self.body.len()));
        let is_cut = self.ends.is_some();
        let is_endless = self.is_endless;
        let pieces = stream::unfold((left, Some(open), is_cut), move |(mut left, open, is_cut)| async move {
            if left.is_empty() && is_endless {
                return Some((Ok(Bytes::from_static(&[b' '; PIECE])), (left, open, is_cut)));
            }
            if left.is_empty() {
                let broken = io::Error::other("the connection ended");
                return is_cut.then(|| (Err(broken), (left, None, false)));
            }
            let piece = left.split_to(PIECE.min(left.len()));
            Some((Ok(piece), (left, open, is_cut)))
        });
        answer.body(pieces.boxed()).expect("plain headers")
    }
}
