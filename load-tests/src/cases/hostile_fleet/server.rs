//! A server on loopback addresses of its own that behaves like hostile Sources.

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Just under the 30 seconds that a fetcher waits for the next piece of a body.
const DRIP: Duration = Duration::from_secs(29);
/// The declared length of a dripping body.
const DRIP_LENGTH: u64 = 1 << 20;
/// One piece of an endless body.
const PIECE: usize = 64 << 10;
/// The most lines of a request head that are read.
const MOST_HEADER_LINES: usize = 100;

/// The behaviour of an origin; each has `/list.xml`, and answers `/robots.txt` with 404.
#[derive(Debug, Clone)]
pub(super) enum Manner {
    /// Lists these URLs; each of its own resources sends a byte every 29 seconds.
    Drip(Arc<Vec<String>>),
    /// Every document is an index of one more document.
    EndlessIndex,
    /// Lists these URLs; each of its own resources is an endless body without a length.
    EndlessBody(Arc<Vec<String>>),
    /// Lists these URLs, and has none of them.
    ListOnly(Arc<Vec<String>>),
}

/// An origin that is served until this is dropped.
#[derive(Debug)]
pub(super) struct Origin {
    base: String,
    drips: Arc<AtomicU64>,
    _serving: JoinSet<()>,
}

/// A listener whose behaviour is set when the URLs of others are known.
#[derive(Debug)]
pub(super) struct Bound {
    listener: TcpListener,
    base: String,
}

impl Bound {
    /// Takes a free port of a loopback address.
    pub(super) async fn at(address: Ipv4Addr) -> anyhow::Result<Self> {
        anyhow::ensure!(address.is_loopback(), "{address} is not a loopback address");
        let listener = TcpListener::bind((address, 0)).await?;
        let base = format!("http://{}", listener.local_addr()?);
        Ok(Self { listener, base })
    }

    /// The URL of a path.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Serves from now on.
    pub(super) fn serve(self, manner: Manner) -> Origin {
        let drips = Arc::new(AtomicU64::new(0));
        let mut serving = JoinSet::new();
        let listener = self.listener;
        let base = self.base.clone();
        let counter = Arc::clone(&drips);
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let manner = manner.clone();
                let base = base.clone();
                let counter = Arc::clone(&counter);
                connections.spawn(async move {
                    // The client may go away at any time.
                    let _ = converse(stream, &manner, &base, &counter).await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Origin { base: self.base, drips, _serving: serving }
    }
}

impl Origin {
    /// The URL of its list.
    pub(super) fn list(&self) -> String {
        format!("{}/list.xml", self.base)
    }

    /// Bodies that it has started to drip.
    pub(super) fn drips(&self) -> u64 {
        self.drips.load(Ordering::Relaxed)
    }
}

/// Answers requests until the client closes the connection.
async fn converse(
    stream: TcpStream,
    manner: &Manner,
    base: &str,
    counter: &AtomicU64,
) -> std::io::Result<()> {
    let (reader, mut out) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    loop {
        let Some(request) = lines.next_line().await? else { return Ok(()) };
        for _ in 0..MOST_HEADER_LINES {
            if lines.next_line().await?.is_none_or(|line| line.is_empty()) {
                break;
            }
        }
        let path = request.split(' ').nth(1).unwrap_or("/");
        match (path, manner) {
            ("/robots.txt", _) => {
                out.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await?
            }
            ("/list.xml", Manner::Drip(urls) | Manner::EndlessBody(urls) | Manner::ListOnly(urls)) => {
                document(&mut out, &list_of(urls)).await?;
            }
            (path, Manner::EndlessIndex) => document(&mut out, &index_below(base, path)).await?,
            (_, Manner::Drip(_)) => {
                counter.fetch_add(1, Ordering::Relaxed);
                return drip(&mut out).await;
            }
            (_, Manner::EndlessBody(_)) => return flood(&mut out).await,
            (_, Manner::ListOnly(_)) => {
                out.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await?;
            }
        }
    }
}

async fn document(out: &mut (impl AsyncWriteExt + Unpin), xml: &str) -> std::io::Result<()> {
    let length = xml.len();
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: {length}\r\n\r\n");
    out.write_all(head.as_bytes()).await?;
    out.write_all(xml.as_bytes()).await
}

/// Sends a byte every 29 seconds, until the client goes away.
async fn drip(out: &mut (impl AsyncWriteExt + Unpin)) -> std::io::Result<()> {
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nContent-Length: {DRIP_LENGTH}\r\n\r\n");
    out.write_all(head.as_bytes()).await?;
    for _ in 0..DRIP_LENGTH {
        out.write_all(b"%").await?;
        sleep(DRIP).await;
    }
    Ok(())
}

/// Sends pieces without end, until the client goes away.
async fn flood(out: &mut (impl AsyncWriteExt + Unpin)) -> std::io::Result<()> {
    out.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nConnection: close\r\n\r\n").await?;
    let piece = vec![b'%'; PIECE];
    loop {
        out.write_all(&piece).await?;
        // Without a pause it would use the processors of the measured programs, as no Source across a network
        // could.
        sleep(Duration::from_millis(5)).await;
    }
}

fn list_of(urls: &[String]) -> String {
    let mut xml = head("urlset");
    for url in urls {
        // Writing to a string does not fail.
        let _ = write!(xml, "<url><loc>{url}</loc></url>");
    }
    xml.push_str("</urlset>");
    xml
}

/// An index of one more index.
fn index_below(base: &str, path: &str) -> String {
    let number: u64 = path.trim_start_matches("/index-").trim_end_matches(".xml").parse().unwrap_or(0);
    let mut xml = head("sitemapindex");
    let _ = write!(xml, "<sitemap><loc>{base}/index-{}.xml</loc></sitemap></sitemapindex>", number + 1);
    xml
}

fn head(root: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root} xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
         xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\
         <rs:md capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"/>"
    )
}
