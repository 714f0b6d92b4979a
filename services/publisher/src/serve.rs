//! The server: its port, its limits, and the task that follows what is published.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::Request;
use hyper::body::Incoming;
use model::Network;
use publish::{Base, Publication, PublishError, Published};
use serving::client;
use serving::connections::{self, ConnectionEvents, ConnectionLimits};
use store::Store;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::follow::First;
use crate::metrics::PublisherMetrics;
use crate::opening;
use crate::readers::Readers;
use crate::routes::{self, ClientAddress, Routes};
use crate::set::{Opening, Server, Set};
use crate::settings::Settings;
use crate::several::Several;
use crate::shared::{Held, OpenRecords, Shared};

/// Tells requests the address of their client, and counts those that are refused.
#[derive(Clone)]
struct Addressed {
    proxies: Arc<[Network]>,
    metrics: PublisherMetrics,
}

impl ConnectionEvents for Addressed {
    type Open = ();

    fn opened(&self) {}

    fn full(&self) {
        tracing::debug!("all connections are in use");
    }

    fn refused(&self, client: IpAddr) {
        tracing::debug!(client.address = %client, "a client has as many connections or requests as it may have");
        self.metrics.connection_refused();
    }

    fn prepare(&self, peer: IpAddr, request: &mut Request<Incoming>) {
        let address = client::address(peer, request.headers(), &self.proxies);
        request.extensions_mut().insert(ClientAddress(address));
    }
}

/// What is served.
pub enum Site {
    /// One publication, and what it publishes.
    One(Box<Publication>, Held),
    /// Publications of several Sources of a harvest, each with its readers, as the sets of one Source.
    Several {
        /// The base of all.
        base: Base,
        /// What is published, each below the base, in a folder named by the Source's ID.
        sets: Vec<(Publication, Readers)>,
        /// The store of the harvest.
        store: Store,
    },
}

/// Publishes, calls `ready`, and serves until `stop`. Changes are published as they come. What an earlier process has
/// published is served at once, and `ready` is told of no publication.
///
/// # Errors
/// When the first publication fails. One of several is tried again instead, and so is one that is there.
pub async fn serve(
    listener: TcpListener,
    site: Site,
    settings: Settings,
    ready: impl FnOnce(Option<Published>),
    stop: CancellationToken,
) -> Result<(), PublishError> {
    let server = Server::new(settings, stop.clone())?;
    let takedowns = server.settings.takedowns.clone();
    // The files are followed from the begin: a first publication may take hours.
    if let Some(takedowns) = takedowns {
        server.tasks.spawn(takedowns.follow(stop.clone()));
    }
    if let Some(tokens) = server.settings.readers.tokens.clone() {
        server.tasks.spawn(tokens.follow(stop.clone()));
    }
    let starting = async {
        match site {
            Site::One(publication, held) => {
                let (set, done) = start(open_one(*publication, held, &server)).await?;
                Ok::<_, PublishError>((Routes::One(set, server.settings.readers.clone()), done))
            }
            Site::Several { base, sets, store } => {
                let all = Several::new(base, opening::MOST_SETS, None, &server.settings);
                let done = opening::open_all(&all, sets, store, &server).await?;
                Ok((Routes::Several(all), done))
            }
        }
    };
    let (routes, done) = tokio::select! {
        started = starting => started?,
        () = stop.cancelled() => return Ok(()),
    };
    ready(done);
    answer(listener, routes, &server).await;
    server.tasks.close();
    server.tasks.wait().await;
    Ok(())
}

/// A publication that stands alone. Its catalog is closed when it was not read for a while.
fn open_one(publication: Publication, held: Held, server: &Server) -> Opening {
    let open = |publication| {
        let shared = Shared::of_held(publication, held, &server.settings);
        shared.admit(&server.settings.readers);
        if let OpenRecords::Harvest(harvest) = shared.records() {
            server.tasks.spawn(harvest.catalogs().clone().sweep(server.stop.clone()));
        }
        shared
    };
    Opening::new(publication, open, server)
}

/// Serves a publication: at once if it is there, else once it is made. Returns what was published by then.
async fn start(opening: Opening) -> Result<(Set, Option<Published>), PublishError> {
    let (done, first) = if opening.is_there().await {
        (None, First::Now)
    } else {
        (Some(opening.publish().await?), First::Later)
    };
    let set = opening.serve().await?;
    opening.follow(first);
    Ok((set, done))
}

/// Answers requests until the server is to stop, then completes those under way.
pub(crate) async fn answer(listener: TcpListener, routes: Routes, server: &Server) {
    let Settings { connections, connections_per_client, head_time, stall_time, proxies, metrics, .. } =
        server.settings.clone();
    let limits = ConnectionLimits {
        most: connections,
        per_client: connections_per_client,
        proxies: Arc::clone(&proxies),
        head_time,
        stall_time: Some(stall_time),
    };
    let addressed = Addressed { proxies, metrics };
    connections::serve(listener, routes::router(routes), limits, addressed, server.stop.clone()).await;
}

#[cfg(test)]
mod tests;
