//! A package at the Source, of which only ranges are read: its end, its directory and its manifest.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use model::Validators;
use packages::zip::Directory;
use packages::{Limits, PackageError, Packaging, ReadAt, SNIFF_BYTES, sniff};
use url::Url;
use web::{Client, GetRequest, Range, Response, WebError};

/// Minimum bytes per request: a member's header, and usually what follows it.
const LEAST: usize = 64 << 10;
/// Responses kept, so that their bytes are not requested again.
const KEPT: usize = 3;

/// A package at the Source.
pub struct RemotePackage {
    client: Client,
    url: Url,
    length: u64,
    version: Validators,
    requests: AtomicU64,
    kept: Mutex<VecDeque<(u64, Bytes)>>,
}

/// The Source's response to a request for the beginning of a package.
pub enum Approach {
    /// It is the known version.
    Known {
        /// Requests made.
        requests: u32,
    },
    /// Ranges work.
    Ranges(RemotePackage),
    /// Ranges do not work.
    Closed {
        /// Why.
        why: String,
        /// Requests made.
        requests: u32,
    },
}

impl RemotePackage {
    /// Requests the first bytes of a package, unless it is the version with these validators.
    pub async fn approach(client: &Client, url: &Url, known: Validators) -> Approach {
        let range = Some(Range { from: 0, to: Some(SNIFF_BYTES as u64), if_range: None });
        let request = GetRequest { validators: known, range, ..GetRequest::new(url.clone()) };
        let mut response = match client.get_with_retries(request).await {
            Ok(response) => response,
            Err(error) => return Approach::Closed { why: error.to_string(), requests: error.requests() },
        };
        let requests = response.requests();
        if response.status() == 304 {
            return Approach::Known { requests };
        }
        let closed = |why: &str| Approach::Closed { why: why.to_owned(), requests };
        let range = response.content_range().filter(|range| range.from == 0);
        let (206, Some(range)) = (response.status(), range) else {
            // The body is not read: dropping it ends the response.
            return closed("its server gives no ranges of it, so it would have to be received as a whole");
        };
        let Some(length) = range.total else {
            return closed("its server does not say how long it is, so its end cannot be found");
        };
        let first = match body(&mut response, (range.to - range.from) as usize).await {
            Ok(first) => first,
            Err(error) => return closed(&error.to_string()),
        };
        let version = response.validators();
        Approach::Ranges(Self {
            client: client.clone(),
            url: url.clone(),
            length,
            version,
            requests: AtomicU64::new(requests.into()),
            kept: Mutex::new(VecDeque::from([(0, first)])),
        })
    }

    /// Requests made since this was asked last.
    pub fn take_requests(&self) -> u64 {
        self.requests.swap(0, Ordering::Relaxed)
    }

    /// Drops the bytes that are kept of it.
    pub fn forget(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn kept(&self, offset: u64, length: usize) -> Option<Bytes> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(offset.checked_sub(*start)?).ok()?;
            let end = from.checked_add(length).filter(|end| *end <= bytes.len())?;
            Some(bytes.slice(from..end))
        })
    }

    async fn ask(&self, from: u64, to: u64) -> io::Result<Bytes> {
        let if_range = self.condition();
        let request = GetRequest {
            range: Some(Range { from, to: Some(to), if_range }),
            ..GetRequest::new(self.url.clone())
        };
        let count = |made: u32| self.requests.fetch_add(made.into(), Ordering::Relaxed);
        let answer = self.client.get_with_retries(request).await;
        let mut response = answer.map_err(|error| {
            count(error.requests());
            io::Error::other(error)
        })?;
        count(response.requests());
        self.check(&response, from, to).map_err(io::Error::other)?;
        body(&mut response, (to - from) as usize).await.map_err(io::Error::other)
    }

    /// `If-Range` value for the version that is meant (RFC 9110, 13.1.5).
    fn condition(&self) -> Option<String> {
        match &self.version.etag {
            Some(etag) => Some(etag.clone()).filter(|etag| !etag.starts_with("W/")),
            None => self.version.last_modified.clone(),
        }
    }

    /// Whether a response is exactly that range, of the version whose beginning was read.
    fn check(&self, response: &Response, from: u64, to: u64) -> Result<(), String> {
        let range = response.content_range();
        if response.status() != 206 || range.is_none_or(|range| (range.from, range.to) != (from, to)) {
            return Err(format!("asked for the bytes from {from} to {to}, its server sends something else"));
        }
        let is_other_length = range.and_then(|range| range.total).is_some_and(|total| total != self.length);
        let found = response.validators();
        let is_other = found.etag.is_some() && self.version.etag.is_some() && found.etag != self.version.etag;
        if is_other_length || is_other {
            Err("it became another version while it was read".to_owned())
        } else {
            Ok(())
        }
    }
}

impl fmt::Debug for RemotePackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemotePackage").field("length", &self.length).finish_non_exhaustive()
    }
}

/// The directory of a ZIP.
///
/// # Errors
/// Why it cannot be read; a tar has none.
pub async fn open_directory<R: ReadAt>(package: &R, limits: &Limits) -> Result<Directory, String> {
    let first = package.len().min(SNIFF_BYTES as u64) as usize;
    let first = package.read_at(0, first).await.map_err(|error| error.to_string())?;
    let say = |error: PackageError| error.to_string();
    match sniff(&first).map_err(say)? {
        Packaging::Zip => Directory::open(package, limits).await.map_err(say),
        packaging @ Packaging::Tar(_) => Err(format!(
            "it is a {packaging}, which has no directory: its manifest would be found by reading all of it"
        )),
    }
}

#[async_trait]
impl ReadAt for RemotePackage {
    fn len(&self) -> u64 {
        self.length
    }

    async fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        let end = offset.checked_add(length as u64).filter(|end| *end <= self.length);
        let Some(end) = end else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        if length == 0 {
            return Ok(Bytes::new());
        }
        if let Some(bytes) = self.kept(offset, length) {
            return Ok(bytes);
        }
        let to = end.max(offset.saturating_add(LEAST as u64)).min(self.length);
        let bytes = self.ask(offset, to).await?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back((offset, bytes.clone()));
        Ok(bytes.slice(..length))
    }
}

/// Reads a body of exactly `length` bytes.
async fn body(response: &mut Response, length: usize) -> Result<Bytes, Short> {
    let mut bytes = BytesMut::with_capacity(length);
    while let Some(chunk) = response.chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > length {
            break;
        }
    }
    if bytes.len() == length { Ok(bytes.freeze()) } else { Err(Short::Length) }
}

/// Why a range was not received.
#[derive(Debug, thiserror::Error)]
enum Short {
    #[error(transparent)]
    Web(#[from] WebError),
    #[error("its server sends another number of bytes than it announces")]
    Length,
}
