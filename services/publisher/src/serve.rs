//! The server: its port, its limits, and the task that follows what is published.

use std::net::IpAddr;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use publish::{Publication, PublishError, Published};
use serving::connections::{self, ConnectionEvents, ConnectionLimits};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::access::Tokens;
use crate::follow;
use crate::hub::{Hub, HubLimits};
use crate::notify;
use crate::routes;
use crate::shared::{Held, Shared};

/// Limits of the server.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The most connections at a time.
    pub connections: usize,
    /// The time limit for the head of a request.
    pub head_time: Duration,
    /// How long a client may take no bytes of a response.
    pub stall_time: Duration,
    /// How often a directory is scanned for changes.
    pub rescan: Duration,
    /// The tokens of readers; none if everybody may read.
    pub tokens: Option<Tokens>,
    /// The limits of a hub of its own; none without one.
    pub hub: Option<HubLimits>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connections: 512,
            head_time: Duration::from_secs(30),
            stall_time: Duration::from_secs(60),
            rescan: Duration::from_secs(60),
            tokens: None,
            hub: None,
        }
    }
}

#[derive(Clone)]
struct Uncounted;

impl ConnectionEvents for Uncounted {
    type Open = ();

    fn opened(&self) {}

    fn full(&self) {
        tracing::debug!("all connections are in use");
    }

    fn prepare(&self, _: IpAddr, _: &mut Request<Incoming>) {}
}

/// Publishes, calls `ready`, and serves until `stop`. Changes are published as they come.
///
/// # Errors
/// When the first publication fails.
pub async fn serve(
    listener: TcpListener,
    mut publication: Publication,
    held: Held,
    settings: Settings,
    ready: impl FnOnce(Published),
    stop: CancellationToken,
) -> Result<(), PublishError> {
    let others = publication.hubs.clone();
    let own = settings.hub.clone().map(|limits| (own_hub(&publication), limits));
    if let Some((url, _)) = &own {
        publication.hubs.insert(0, url.clone());
    }
    let shared = Shared::open(publication, held, settings.tokens.clone()).await?;
    let done = tokio::select! {
        done = follow::publish(&shared) => done?,
        () = stop.cancelled() => return Ok(()),
    };
    let hub = match own {
        Some((url, limits)) => Some(Hub::open(&shared, &url, limits, stop.clone()).await?),
        None => None,
    };
    let delivering = hub.clone().map(|hub| tokio::spawn(hub.run(shared.published())));
    ready(done);
    let following = tokio::spawn(follow::follow(shared.clone(), settings.rescan, stop.clone()));
    let tell = |hub| tokio::spawn(notify::tell(shared.clone(), hub, shared.published(), stop.clone()));
    let telling: Vec<_> = others.into_iter().map(tell).collect();
    let Settings { connections, head_time, stall_time, tokens, .. } = settings;
    let rereading = tokens.map(|tokens| tokio::spawn(tokens.follow(stop.clone())));
    let limits = ConnectionLimits { most: connections, head_time, stall_time: Some(stall_time) };
    connections::serve(listener, routes::router(shared, hub), limits, Uncounted, stop).await;
    // A panic there was reported by its own message.
    let _ = following.await;
    for hub in telling {
        let _ = hub.await;
    }
    for task in [rereading, delivering].into_iter().flatten() {
        let _ = task.await;
    }
    Ok(())
}

/// The URL of a publication's own hub.
fn own_hub(publication: &Publication) -> Url {
    let url = publication.base.url(publish::paths::HUB).parse();
    url.expect("a base is a URL, and the path needs no escape")
}
