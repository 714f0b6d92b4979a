//! `load-tests get-all`: the minimum that any client has to do, in a process of its own. It requests every
//! URL of a list, several concurrently, and digests each body with SHA-256. It stores nothing, or a file per
//! body, or the same as a harvest. The list may also be a Resource List.

mod client;

use std::fs::{self, File};
use std::future::poll_fn;
use std::io::{ErrorKind, Write as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, ensure};
use clap::Args;
use data_encoding::HEXLOWER;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, StatusCode, Uri};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use store::StoreTarget;

use self::client::{BareClient, client};
use crate::keep::{self, Keeper, PACKED_TOGETHER, PLANNED_TOGETHER, Received, Settling, Wanted};
use crate::listed;

/// `get-all`.
#[derive(Debug, Args)]
pub(crate) struct GetAllArgs {
    /// A file with a URL a line, perhaps followed by a range of bytes, such as `0-1023`.
    #[arg(required_unless_present = "list")]
    pub(crate) urls: Option<PathBuf>,
    /// Get what this Resource List names, once that is planned, and compare it with the sha-256 that it declares.
    #[arg(long, value_name = "URL", requires = "keep", conflicts_with = "urls")]
    pub(crate) list: Option<Uri>,
    /// Requests open at once.
    #[arg(long)]
    pub(crate) at_once: NonZeroUsize,
    /// Write each body to a file below this directory, under the path of its URL.
    #[arg(long)]
    pub(crate) into: Option<PathBuf>,
    /// Keep bodies in packs, and a record of each in a catalog, in this directory or at s3://bucket/prefix, as a harvest does.
    #[arg(long, conflicts_with = "into")]
    pub(crate) keep: Option<StoreTarget>,
    /// Trust the certificate in this PEM file, for https URLs.
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Offer HTTP/2 too.
    #[arg(long)]
    pub(crate) http2: bool,
}

/// The result. A client that skips a body, or reads it wrong, cannot get the same digests.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Got {
    /// Bodies.
    pub(crate) bodies: u64,
    /// Their total bytes.
    pub(crate) bytes: u64,
    /// The SHA-256 of each, all of them XORed, in lower-case hex: their order makes no difference.
    pub(crate) digests: String,
}

/// Sums bodies up.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    bodies: u64,
    bytes: u64,
    digests: [u8; 32],
}

/// State that all requests share.
struct Work {
    client: BareClient,
    urls: Vec<Uri>,
    /// The range of each that is requested in part.
    ranges: Vec<Option<HeaderValue>>,
    /// The declared digest of each, if known.
    declared: Vec<[u8; 32]>,
    next: AtomicUsize,
    into: Option<PathBuf>,
    keeper: Option<Keeper>,
}

/// Gets everything, and prints the result as JSON.
pub(crate) fn run(arguments: &GetAllArgs) -> anyhow::Result<()> {
    let mut work = Work {
        client: client(arguments.at_once, arguments.cacert.as_deref(), arguments.http2)?,
        urls: Vec::new(),
        ranges: Vec::new(),
        declared: Vec::new(),
        next: AtomicUsize::new(0),
        into: arguments.into.clone(),
        keeper: None,
    };
    if let Some(urls) = &arguments.urls {
        let lines = fs::read_to_string(urls).with_context(|| format!("cannot read {}", urls.display()))?;
        for line in lines.lines() {
            let (url, range) = line.split_once(' ').map_or((line, None), |(url, range)| (url, Some(range)));
            work.urls.push(url.parse().with_context(|| format!("{url} is no URL"))?);
            work.ranges.push(range.map(|range| format!("bytes={range}").parse()).transpose()?);
        }
    }
    let runtime = tokio::runtime::Runtime::new()?;
    let sum = runtime.block_on(async {
        let mut settling = None;
        if let Some(place) = &arguments.keep {
            settling = Some(tokio::spawn(work.plan(place, arguments.list.as_ref()).await?.run()));
        }
        let work = Arc::new(work);
        let workers: Vec<_> =
            (0..arguments.at_once.get()).map(|_| tokio::spawn(get_some(work.clone()))).collect();
        drop(work);
        let mut all = Sum::default();
        for worker in workers {
            all.add(&worker.await??);
        }
        // No sender is left: it comes to its end.
        if let Some(settling) = settling {
            settling.await??;
        }
        anyhow::Ok(all)
    })?;
    println!("{}", serde_json::to_string(&sum.got())?);
    Ok(())
}

impl Work {
    /// Opens an empty harvest, and plans the resources: the URLs, or the entries of the list.
    async fn plan(&mut self, place: &StoreTarget, list: Option<&Uri>) -> anyhow::Result<Settling> {
        let entry = list.or(self.urls.first()).context("there is nothing to get")?;
        let (keeper, mut settling) = keep::open(place, &entry.to_string().parse()?).await?;
        self.keeper = Some(keeper);
        let Some(list) = list else {
            for urls in self.urls.chunks(PLANNED_TOGETHER) {
                let uris = urls.iter().map(|url| anyhow::Ok(Wanted::unlisted(url.to_string().parse()?)));
                settling.plan(&uris.collect::<Result<Vec<_>, _>>()?).await?;
            }
            return Ok(settling);
        };
        let mut incoming = self.ask(list, None).await?.into_body();
        let mut bytes = Vec::new();
        while let Some(part) = next_part(&mut incoming).await? {
            bytes.extend_from_slice(&part);
        }
        let mut portions = listed::read(bytes);
        while let Some(portion) = portions.recv().await {
            let portion = portion?;
            settling.plan(&portion).await?;
            for wanted in &portion {
                self.urls.push(wanted.uri.as_str().parse()?);
                self.declared.push(listed::sha256(wanted)?);
            }
        }
        Ok(settling)
    }

    async fn ask(&self, url: &Uri, range: Option<&HeaderValue>) -> anyhow::Result<Response<Incoming>> {
        let mut request = Request::get(url.clone()).body(String::new())?;
        request.headers_mut().extend(range.map(|range| (header::RANGE, range.clone())));
        let answer = match self.client.request(request.clone()).await {
            // A server closes a connection after some requests (nginx after 1,000), and refuses those that crossed it.
            Err(error) if !error.is_connect() => self.client.request(request).await,
            answer => answer,
        };
        let answer = answer.with_context(|| format!("cannot get {url}"))?;
        let expected = if range.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
        ensure!(answer.status() == expected, "{url} is answered with {}", answer.status());
        Ok(answer)
    }
}

async fn next_part(incoming: &mut Incoming) -> hyper::Result<Option<Bytes>> {
    while let Some(frame) = poll_fn(|context| Pin::new(&mut *incoming).poll_frame(context)).await {
        if let Ok(part) = frame?.into_data() {
            return Ok(Some(part));
        }
    }
    Ok(None)
}

/// Gets, one after another, resources that no other task has taken.
async fn get_some(work: Arc<Work>) -> anyhow::Result<Sum> {
    let mut sum = Sum::default();
    let mut received = Vec::new();
    loop {
        let n = work.next.fetch_add(1, Ordering::Relaxed);
        let Some(url) = work.urls.get(n) else { break };
        let range = work.ranges.get(n).and_then(Option::as_ref);
        let mut incoming = work.ask(url, range).await?.into_body();
        let mut digest = Sha256::new();
        let mut bytes = 0;
        let mut kept = Vec::new();
        let path = work.into.as_ref().map(|into| into.join(url.path().trim_start_matches('/')));
        let mut file = path.as_deref().map(create).transpose()?;
        while let Some(part) = next_part(&mut incoming).await? {
            digest.update(&part);
            bytes += part.len() as u64;
            if let Some(file) = &mut file {
                file.write_all(&part).with_context(|| format!("cannot write {url}"))?;
            } else if work.keeper.is_some() {
                kept.extend_from_slice(&part);
            }
        }
        let digest: [u8; 32] = digest.finalize().into();
        if let Some(declared) = work.declared.get(n) {
            ensure!(digest == *declared, "{url} is not as it is listed");
        }
        sum.count(bytes, digest);
        if let Some(keeper) = &work.keeper {
            received.push(Received { uri: url.to_string().parse()?, bytes: kept, sha256: digest });
            if received.len() == PACKED_TOGETHER {
                keeper.keep(std::mem::take(&mut received)).await?;
            }
        }
    }
    if let Some(keeper) = &work.keeper {
        keeper.keep(received).await?;
    }
    Ok(sum)
}

/// Creates a file; its folder is created when it is missing, which is rare.
fn create(path: &Path) -> anyhow::Result<File> {
    let created = match File::create(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            fs::create_dir_all(path.parent().unwrap_or(path))?;
            File::create(path)
        }
        other => other,
    };
    created.with_context(|| format!("cannot write {}", path.display()))
}

impl Sum {
    /// Adds a body.
    pub(crate) fn count(&mut self, bytes: u64, digest: [u8; 32]) {
        self.add(&Self { bodies: 1, bytes, digests: digest });
    }

    fn add(&mut self, other: &Self) {
        self.bodies += other.bodies;
        self.bytes += other.bytes;
        for (own, others) in self.digests.iter_mut().zip(other.digests) {
            *own ^= others;
        }
    }

    /// The result to print.
    pub(crate) fn got(&self) -> Got {
        Got { bodies: self.bodies, bytes: self.bytes, digests: HEXLOWER.encode(&self.digests) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(bodies: &[&str]) -> Got {
        let mut sum = Sum::default();
        for body in bodies {
            sum.count(body.len() as u64, Sha256::digest(body).into());
        }
        sum.got()
    }

    #[test]
    fn the_order_of_bodies_makes_no_difference() {
        assert_eq!(sum(&["a", "bc"]), sum(&["bc", "a"]));
    }

    #[test]
    fn a_body_that_differs_is_seen_though_its_length_is_right() {
        let one = sum(&["a", "bc"]);
        let other = sum(&["a", "bd"]);
        assert_eq!((one.bodies, one.bytes), (other.bodies, other.bytes));
        assert_ne!(one, other);
    }

    #[test]
    fn a_file_is_written_into_a_folder_that_was_missing() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("a/b/c");
        create(&path).unwrap().write_all(b"x").unwrap();
        create(&path).unwrap().write_all(b"y").unwrap();
        assert_eq!(fs::read(path).unwrap(), b"y");
    }
}
