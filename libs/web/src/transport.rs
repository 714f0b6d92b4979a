//! What carries requests: the network, or something in place of it.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use http_body_util::Full;

use crate::network::Network;
use crate::pieces::Pieces;
use crate::{ConnectFault, ErrorKind, WebError, classify};

/// An answer that did not come over the network: its head, and its body piece by piece.
pub type Carried = http::Response<BoxStream<'static, io::Result<Bytes>>>;

/// Carries requests to a server in place of the network. Everything else about a client is as it always is: budgets, redirects, attempts,
/// time limits, and what becomes of a body that breaks off.
pub trait Transport: Debug + Send + Sync {
    /// Carries one request; the future ends with the head of the answer. Dropped, the request is given up; a dropped body closes the
    /// connection.
    ///
    /// # Errors
    /// Where there is no connection. `ConnectionRefused` and `HostUnreachable` are what they say; any other kind is a connection that
    /// broke before the answer.
    fn carry(&self, request: http::Request<()>) -> BoxFuture<'_, io::Result<Carried>>;
}

/// What carries a client's requests.
pub(crate) enum Carrier {
    Network(Box<Network>),
    Inside(Arc<dyn Transport>),
}

impl Carrier {
    /// Carries one request, to the head of its answer.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn carry(
        &self,
        request: http::Request<Bytes>,
    ) -> Result<http::Response<Pieces>, WebError> {
        match self {
            Self::Network(network) => match network.request(request.map(Full::new)).await {
                Ok(answer) => Ok(answer.map(Pieces::network)),
                Err(error) => Err(classify::before_answer(&error)),
            },
            Self::Inside(transport) => match transport.carry(request.map(drop)).await {
                Ok(answer) => Ok(answer.map(Pieces::inside)),
                Err(error) => Err(inside(&error)),
            },
        }
    }
}

/// What a transport's fault is.
fn inside(error: &io::Error) -> WebError {
    let kind = match error.kind() {
        io::ErrorKind::ConnectionRefused => ErrorKind::Connect(ConnectFault::Refused),
        io::ErrorKind::HostUnreachable => ErrorKind::Connect(ConnectFault::Unreachable),
        _ => ErrorKind::Interrupted,
    };
    WebError::new(kind).detail(error.to_string())
}
