//! The transport of requests: the network, or a test's replacement.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use http_body_util::Full;

use crate::body_chunks::BodyChunks;
use crate::network::Networks;
use crate::{ConnectFault, ErrorKind, WebError};

/// A response from a replacement of the network: its head, and its body piece by piece.
pub type Carried = http::Response<BoxStream<'static, io::Result<Bytes>>>;

/// Carries requests to a server in place of the network. The rest of the client stays the same: budgets,
/// redirects, attempts, time limits, and the handling of bodies that break off.
pub trait Transport: Debug + Send + Sync {
    /// Carries one request; the future ends with the response head. If it is dropped, the request is
    /// cancelled; a dropped body closes the connection.
    ///
    /// # Errors
    /// Without a connection: `ConnectionRefused` and `HostUnreachable`. Any other kind is a connection that
    /// broke before the response.
    fn carry(&self, request: http::Request<()>) -> BoxFuture<'_, io::Result<Carried>>;
}

/// The transport of a client.
pub(crate) enum Carrier {
    Network(Box<Networks>),
    Inside(Arc<dyn Transport>),
}

impl Carrier {
    /// Carries one request, until its response head. `apart` gives it a connection of its own.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn carry(
        &self,
        request: http::Request<Bytes>,
        apart: bool,
    ) -> Result<http::Response<BodyChunks>, WebError> {
        match self {
            Self::Network(networks) => networks.request(request.map(Full::new), apart).await,
            Self::Inside(transport) => match transport.carry(request.map(drop)).await {
                Ok(answer) => Ok(answer.map(BodyChunks::inside)),
                Err(error) => Err(inside(&error)),
            },
        }
    }
}

/// Classifies a transport's error.
fn inside(error: &io::Error) -> WebError {
    let kind = match error.kind() {
        io::ErrorKind::ConnectionRefused => ErrorKind::Connect(ConnectFault::Refused),
        io::ErrorKind::HostUnreachable => ErrorKind::Connect(ConnectFault::Unreachable),
        _ => ErrorKind::Interrupted,
    };
    WebError::new(kind).detail(error.to_string())
}
