//! Connections to Sources of every kind.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use jiff::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::answer::{Answer, answer, failure};
use super::counts::{Counters, Counts};
use super::documents::Described;
use super::flapping::Flapping;
use super::population::{Kind, Population};
use super::request::{self, Request};

/// How long a connection without a request stays open. Thousands of Sources share one limit of open files.
const IDLE: Duration = Duration::from_secs(10);
/// The pause between two bytes of a slow Source.
const DRIP: Duration = Duration::from_secs(1);
/// What an unavailable Source asks for.
const RETRY_AFTER: &str = "Retry-After: 60\r\n";

/// All Sources, served from one port.
#[derive(Debug)]
pub(super) struct Site {
    population: Population,
    counters: Counters,
    flapping: Flapping,
    /// The times of the changes of each Source that has any.
    changes: Mutex<HashMap<u32, Vec<Timestamp>>>,
}

impl Site {
    /// Serves on a free port until the returned tasks are dropped. A listener of all addresses gets the connections of
    /// every loopback address. Other addresses of the machine have no Source, so their connections are closed.
    pub(super) async fn start(population: Population) -> anyhow::Result<(Arc<Self>, u16, JoinSet<()>)> {
        population.check()?;
        let listener =
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.context("no port can be listened on")?;
        let port = listener.local_addr()?.port();
        let site = Arc::new(Self {
            population,
            counters: Counters::new(population.sources),
            flapping: Flapping::default(),
            changes: Mutex::default(),
        });
        let mut serving = JoinSet::new();
        serving.spawn(Arc::clone(&site).accept(listener));
        Ok((site, port, serving))
    }

    /// The counts so far.
    pub(super) fn counts(&self) -> Counts {
        self.counters.counts()
    }

    /// When each Source got its first request since the last call, in milliseconds since 1970.
    pub(super) fn take_first_requests(&self) -> Vec<Option<i64>> {
        self.counters.take_first()
    }

    /// Updates one resource of a Source now; returns how many changes the Source has.
    pub(super) fn change(&self, number: u32) -> usize {
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = changes.entry(number).or_default();
        // In whole seconds, as Last-Modified is.
        let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap_or(Timestamp::UNIX_EPOCH);
        changes.push(now);
        changes.len()
    }

    async fn accept(self: Arc<Self>, listener: TcpListener) {
        let mut connections = JoinSet::new();
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let site = Arc::clone(&self);
                    connections.spawn(async move {
                        // The client may go away at any time.
                        let _ = site.converse(stream).await;
                    });
                }
                // Too many open files: some connection ends soon.
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
            while connections.try_join_next().is_some() {}
        }
    }

    /// Responds until the client closes the connection, or is idle.
    async fn converse(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let local = stream.local_addr()?;
        let SocketAddr::V4(address) = local else { return Ok(()) };
        let Some(number) = self.population.at(*address.ip()) else { return Ok(()) };
        let kind = self.population.kind(number);
        self.counters.connected(kind);
        if kind == Kind::Flapping && self.flapping.closes(number, Instant::now()) {
            return Ok(());
        }
        let base = format!("http://{local}");
        let mut buffer = Vec::new();
        while let Ok(Some(request)) = timeout(IDLE, request::read(&mut stream, &mut buffer)).await? {
            let _open = self.counters.requested(kind, number);
            let answer = match kind {
                Kind::Dead => return until_closed(&mut stream).await,
                Kind::Unavailable => failure(503, RETRY_AFTER),
                Kind::Flapping if self.flapping.fails(number, Instant::now()) => failure(500, ""),
                Kind::Ok | Kind::Slow | Kind::Flapping => self.answer(number, &base, &request),
            };
            self.counters.answered(kind, &answer);
            send(&mut stream, answer, kind).await?;
        }
        Ok(())
    }

    fn answer(&self, number: u32, base: &str, request: &Request) -> Answer {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = changes.get(&number).map_or(&[][..], Vec::as_slice);
        answer(&Described { number, base, resources: self.population.resources, changes }, request)
    }
}

/// Reads, and responds with nothing.
async fn until_closed(stream: &mut TcpStream) -> io::Result<()> {
    let mut piece = [0; 1024];
    while stream.read(&mut piece).await? > 0 {}
    Ok(())
}

async fn send(stream: &mut TcpStream, answer: Answer, kind: Kind) -> io::Result<()> {
    let mut bytes = answer.head.into_bytes();
    if kind == Kind::Slow {
        stream.write_all(&bytes).await?;
        for byte in answer.body {
            sleep(DRIP).await;
            stream.write_all(&[byte]).await?;
        }
        return Ok(());
    }
    // In one piece, so that it is one packet.
    bytes.extend_from_slice(&answer.body);
    stream.write_all(&bytes).await
}

#[cfg(test)]
mod tests;
