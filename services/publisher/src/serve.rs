//! The server: its port, its limits, and the task that follows what is published.

use std::net::IpAddr;

use hyper::Request;
use hyper::body::Incoming;
use publish::{Collection, Publication, PublishError, Published};
use serving::connections::{self, ConnectionEvents, ConnectionLimits};
use store::Store;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::routes::{self, Routes};
use crate::set::{self, Server};
use crate::settings::Settings;
use crate::several::Several;
use crate::shared::Held;

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

/// What is served.
pub enum Site {
    /// One publication, and what it publishes.
    One(Box<Publication>, Held),
    /// Publications of several Sources, each with the store of its harvest, as the sets of one Source.
    Several(Collection, Vec<(Publication, Store)>),
}

/// Publishes, calls `ready`, and serves until `stop`. Changes are published as they come.
///
/// # Errors
/// When the first publication fails. One of several is tried again instead.
pub async fn serve(
    listener: TcpListener,
    site: Site,
    settings: Settings,
    ready: impl FnOnce(Published),
    stop: CancellationToken,
) -> Result<(), PublishError> {
    let server = Server::new(settings, stop.clone())?;
    let Settings { connections, head_time, stall_time, tokens, takedowns, .. } = server.settings.clone();
    // The files are followed from the begin: a first publication may take hours.
    if let Some(takedowns) = takedowns {
        server.tasks.spawn(takedowns.follow(stop.clone()));
    }
    if let Some(tokens) = tokens {
        server.tasks.spawn(tokens.follow(stop.clone()));
    }
    let starting = async {
        match site {
            Site::One(publication, held) => {
                let (set, done) = set::start(*publication, held, &server).await?;
                Ok::<_, PublishError>((Routes::One(set), done))
            }
            Site::Several(collection, sets) => {
                let (all, done) = Several::start(&collection, sets, &server).await?;
                Ok((Routes::Several(all), done))
            }
        }
    };
    let (routes, done) = tokio::select! {
        started = starting => started?,
        () = stop.cancelled() => return Ok(()),
    };
    ready(done);
    let limits = ConnectionLimits { most: connections, head_time, stall_time: Some(stall_time) };
    connections::serve(listener, routes::router(routes), limits, Uncounted, stop).await;
    server.tasks.close();
    server.tasks.wait().await;
    Ok(())
}
