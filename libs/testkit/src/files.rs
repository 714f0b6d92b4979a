//! A file server that supports ranges, or misbehaves like real servers, and counts what it sends.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use futures::stream::{self, Stream};
use http::{HeaderMap, Request};
use tokio::sync::watch;

use simulated_source::Serving;

/// Bytes of a body sent at a time.
const PIECE: usize = 64 * 1024;
/// How often, and after which time, a server looks again before it refuses a request beside others.
const LOOKS: usize = 30;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// A server of files; it ends when dropped.
#[derive(Debug)]
pub struct FileServer {
    shared: Arc<Shared>,
    serving: Serving,
}

/// A served file.
#[derive(Debug, Clone)]
pub struct File {
    /// Its bytes.
    pub bytes: Bytes,
    /// Its `ETag`, with its quotes; or its `Last-Modified`.
    pub version: String,
    /// Whether the version is a time.
    pub is_dated: bool,
    /// How the server handles range requests for it.
    pub ranges: Ranges,
}

/// How a server handles a range request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranges {
    /// Sends the range, if `If-Range` is its version or missing; else the whole.
    Given,
    /// Advertises ranges, and sends the whole.
    Ignored,
    /// Does not advertise ranges, and sends the whole.
    Unknown,
    /// Sends one byte less, except for an open range.
    Short,
    /// Starts one byte too late, except for an open range.
    Misaligned,
    /// Sends the range, with another `ETag` in each response, like many servers behind one name.
    Restless,
    /// Sends the range, and breaks each body off after so many bytes.
    Cut {
        /// The bytes that are sent.
        after: usize,
    },
    /// Sends the range, and breaks the body of the first one off that begins here.
    CutOnce {
        /// Its first byte.
        first: usize,
        /// The bytes that are sent.
        after: usize,
    },
    /// Sends the range, and stands still for good in each body after so many bytes.
    Stalled {
        /// The bytes that are sent.
        after: usize,
    },
    /// Answers 429 to more than this many concurrent requests.
    Refused {
        /// The most that are served.
        beyond: usize,
    },
    /// Sends the range, but answers 429 to one that begins here while another is open.
    RefusedAt {
        /// Its first byte.
        first: usize,
    },
}

/// A request, as it was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The path.
    pub path: String,
    /// The `Range` header.
    pub range: Option<String>,
    /// The status.
    pub status: u16,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<Table>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Table {
    files: BTreeMap<String, File>,
    asked: Vec<Asked>,
    open: usize,
    most_open: usize,
    sent: u64,
    allowed: Option<u64>,
    together: usize,
    stalled: usize,
}

/// A body in progress.
struct Sending {
    shared: Arc<Shared>,
    left: Bytes,
    ending: Ending,
    is_open: bool,
}

/// What is behind the bytes of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Whole,
    Cut,
    Stalled,
}

impl FileServer {
    /// Starts to serve on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// When no port can be listened on.
    pub async fn start() -> io::Result<FileServer> {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: watch::Sender::new(()) });
        let routes = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        Ok(FileServer { serving: Serving::start(0, "file-server", routes)?, shared })
    }

    /// The URI of a path, which begins with `/`.
    pub fn uri(&self, path: &str) -> String {
        format!("{}{path}", self.serving.url())
    }

    /// Serves a file from now on, in place of an earlier one.
    pub fn serve(&self, path: &str, file: File) -> String {
        self.shared.state().files.insert(path.to_owned(), file);
        self.uri(path)
    }

    /// Answers 404 from now on.
    pub fn remove(&self, path: &str) {
        self.shared.state().files.remove(path);
    }

    /// Lets bodies flow until this many bytes were sent since the start, in total; then they pause until the
    /// next call. None: without limit.
    pub fn allow(&self, bytes: Option<u64>) {
        self.shared.state().allowed = bytes;
        self.shared.changed.send_replace(());
    }

    /// Blocks all bodies until this many were open at the same time.
    pub fn wait_for(&self, together: usize) {
        self.shared.state().together = together;
    }

    /// Bytes of bodies sent so far.
    pub fn sent(&self) -> u64 {
        self.shared.state().sent
    }

    /// Responses that are open now.
    pub fn open(&self) -> usize {
        self.shared.state().open
    }

    /// Responses that stand still for good.
    pub fn stalled(&self) -> usize {
        self.shared.state().stalled
    }

    /// The most responses that were open at the same time.
    pub fn most_open(&self) -> usize {
        self.shared.state().most_open
    }

    /// The requests so far, in the order of their arrival.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.state().asked.clone()
    }
}

impl File {
    /// A file with ranges.
    pub fn new(bytes: impl Into<Bytes>, etag: &str) -> Self {
        let version = etag.to_owned();
        Self { bytes: bytes.into(), version, is_dated: false, ranges: Ranges::Given }
    }

    /// The same with a `Last-Modified` and no `ETag`.
    pub fn dated(bytes: impl Into<Bytes>, last_modified: &str) -> Self {
        Self { is_dated: true, ..Self::new(bytes, last_modified) }
    }

    /// The same with other ranges.
    #[must_use]
    pub fn with(self, ranges: Ranges) -> Self {
        Self { ranges, ..self }
    }

    /// Whether a request is refused while this many are open.
    fn refuses(&self, range: Option<&str>, open: usize) -> bool {
        match self.ranges {
            Ranges::Refused { beyond } => open >= beyond,
            Ranges::RefusedAt { first } => {
                open > 0 && range.is_some_and(|range| range.starts_with(&format!("bytes={first}-")))
            }
            _ => false,
        }
    }

    /// The most bytes that the body of a range is sent of, and what is behind them.
    fn end(&self, range: Option<&str>, asked: &[Asked]) -> (usize, Ending) {
        match self.ranges {
            Ranges::Cut { after } => (after, Ending::Cut),
            Ranges::Stalled { after } => (after, Ending::Stalled),
            Ranges::CutOnce { first, after } => {
                let begins = |range: &str| range.starts_with(&format!("bytes={first}-"));
                let is_first = !asked.iter().filter_map(|asked| asked.range.as_deref()).any(begins);
                let is_cut = is_first && range.is_some_and(begins);
                (if is_cut { after } else { usize::MAX }, Ending::Cut)
            }
            _ => (usize::MAX, Ending::Whole),
        }
    }

    /// The requested bytes, as far as they exist, and their offset; none for the whole.
    fn part(&self, headers: &HeaderMap) -> Option<(usize, Bytes)> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let (first, last) = text("range")?.strip_prefix("bytes=")?.split_once('-')?;
        let is_meant =
            text("if-range").is_none_or(|known| known == self.version && self.ranges != Ranges::Restless);
        let first: usize = first.parse().ok()?;
        let end = last.parse().map_or(self.bytes.len(), |last: usize| self.bytes.len().min(last + 1));
        let (first, end) = match self.ranges {
            Ranges::Ignored | Ranges::Unknown => return None,
            Ranges::Short if !last.is_empty() => (first, end - 1),
            Ranges::Misaligned if !last.is_empty() => (first + 1, end),
            _ => (first, end),
        };
        (is_meant && first < end).then(|| (first, self.bytes.slice(first..end)))
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, Table> {
        self.state.lock().expect("no holder panics")
    }
}

impl Table {
    /// How many bytes of a body may be sent now.
    fn may_send(&self) -> u64 {
        if self.together > 0 {
            return 0;
        }
        self.allowed.map_or(u64::MAX, |allowed| allowed.saturating_sub(self.sent))
    }
}

impl Sending {
    fn begin(shared: Arc<Shared>, left: Bytes, ending: Ending) -> Self {
        {
            let mut state = shared.state();
            state.open += 1;
            state.most_open = state.most_open.max(state.open);
            if state.open >= state.together {
                state.together = 0;
            }
        }
        shared.changed.send_replace(());
        Self { shared, left, ending, is_open: true }
    }

    async fn next(mut self) -> Option<(Result<Bytes, io::Error>, Self)> {
        if self.left.is_empty() {
            match std::mem::replace(&mut self.ending, Ending::Whole) {
                Ending::Whole => return None,
                Ending::Cut => {
                    // The library sends what it has when a body has no more for now.
                    tokio::task::yield_now().await;
                    return Some((Err(io::Error::other("the body is cut here")), self));
                }
                Ending::Stalled => {
                    self.shared.state().stalled += 1;
                    return std::future::pending().await;
                }
            }
        }
        let mut changed = self.shared.changed.subscribe();
        loop {
            changed.mark_unchanged();
            let piece = {
                let mut state = self.shared.state();
                let most = usize::try_from(state.may_send()).unwrap_or(usize::MAX).min(PIECE);
                let piece = self.left.split_to(most.min(self.left.len()));
                state.sent += piece.len() as u64;
                if self.left.is_empty() && self.ending != Ending::Stalled {
                    // Before the client knows that it is the last piece, and sends the next request.
                    state.open -= 1;
                    self.is_open = false;
                }
                piece
            };
            if !piece.is_empty() {
                return Some((Ok(piece), self));
            }
            // The server lives as long as its bodies.
            let _ = changed.changed().await;
        }
    }

    fn stream(self) -> impl Stream<Item = Result<Bytes, io::Error>> + Send {
        stream::unfold(self, Self::next)
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if self.is_open {
            self.shared.state().open -= 1;
        }
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request<Body>) -> Response {
    let path = request.uri().path().to_owned();
    let range = request.headers().get("range").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let would_refuse = || {
        let state = shared.state();
        state.files.get(&path).is_some_and(|file| file.refuses(range.as_deref(), state.open))
    };
    // A client may have just closed the connection of another request, and the server sees it a moment later.
    for _ in 0..LOOKS {
        if !would_refuse() {
            break;
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    let (status, response) = {
        let state = shared.state();
        match state.files.get(&path) {
            None => (404, Response::builder()),
            Some(file) if file.refuses(range.as_deref(), state.open) => (429, Response::builder()),
            Some(file) => {
                let version = match file.ranges {
                    Ranges::Restless => format!("\"{}\"", state.asked.len()),
                    _ => file.version.clone(),
                };
                let name = if file.is_dated { "last-modified" } else { "etag" };
                let mut response = Response::builder().header(name, version);
                if file.ranges != Ranges::Unknown {
                    response = response.header("accept-ranges", "bytes");
                }
                let (status, body) = match file.part(request.headers()) {
                    Some((first, body)) => {
                        let range = format!("bytes {first}-{}/{}", first + body.len() - 1, file.bytes.len());
                        response = response.header("content-range", range);
                        (206, body)
                    }
                    None => (200, file.bytes.clone()),
                };
                let (most, ending) = file.end(range.as_deref(), &state.asked);
                drop(state);
                let response = response.header("content-length", body.len());
                let ending = if most < body.len() { ending } else { Ending::Whole };
                let body = body.slice(..most.min(body.len()));
                shared.state().asked.push(Asked { path, range, status });
                let sending = Sending::begin(Arc::clone(&shared), body, ending);
                return finish(response, status, Body::from_stream(sending.stream()));
            }
        }
    };
    shared.state().asked.push(Asked { path, range, status });
    finish(response, status, Body::empty())
}

fn finish(response: http::response::Builder, status: u16, body: Body) -> Response {
    response.status(status).body(body).expect("a file's version fits a header")
}
