//! One connection: its requests, one after the other.

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::{BUFFER_BYTES, ConnectionEvents, ConnectionLimits};
use crate::clients::{Clients, TooMany, holding, refusal};
use crate::stall::StallLimited;

/// Serves the requests of one connection.
pub(super) async fn serve(
    stream: TcpStream,
    peer: IpAddr,
    router: Router,
    clients: Clients,
    limits: ConnectionLimits,
    events: impl ConnectionEvents,
    stop: CancellationToken,
) {
    let routes = TowerToHyperService::new(router);
    let service = service_fn(|mut request: Request<Incoming>| {
        let place = clients.request(peer, request.headers());
        events.prepare(peer, &mut request);
        let answer = match &place {
            Ok(_) => Some(routes.call(request)),
            Err(TooMany(client)) => {
                events.refused(*client);
                None
            }
        };
        async move {
            let Some(answer) = answer else { return Ok(refusal()) };
            let answer = answer.await?;
            Ok::<_, Infallible>(match place {
                Ok(Some(place)) => holding(answer, place),
                _ => answer,
            })
        }
    });
    // Without this, small responses wait 40 ms each for the acknowledgement of earlier data.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection is slower than it could be");
    }
    let mut server = http1::Builder::new();
    // Without a timer, hyper enforces no time limits.
    server.timer(TokioTimer::new()).header_read_timeout(limits.head_time).max_buf_size(BUFFER_BYTES);
    let stream = StallLimited::new(stream, limits.stall_time);
    let mut serving = pin!(server.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}
