//! What carries requests in place of the network.

use std::fmt::Debug;
use std::io;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::{ConnectFault, ErrorKind, WebError};

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

/// Sends a request that is ready for the network over `transport`.
pub(crate) async fn carry(
    transport: &dyn Transport,
    prepared: reqwest::Request,
) -> Result<reqwest::Response, WebError> {
    let failed = |kind, why: String| WebError::new(kind).detail(why);
    let mut request = http::Request::new(());
    *request.method_mut() = prepared.method().clone();
    *request.uri_mut() = prepared
        .url()
        .as_str()
        .parse()
        .map_err(|error: http::uri::InvalidUri| failed(ErrorKind::BadUrl, error.to_string()))?;
    *request.headers_mut() = prepared.headers().clone();
    match transport.carry(request).await {
        Ok(answer) => Ok(answer.map(reqwest::Body::wrap_stream).into()),
        Err(error) => {
            let kind = match error.kind() {
                io::ErrorKind::ConnectionRefused => ErrorKind::Connect(ConnectFault::Refused),
                io::ErrorKind::HostUnreachable => ErrorKind::Connect(ConnectFault::Unreachable),
                _ => ErrorKind::Interrupted,
            };
            Err(failed(kind, error.to_string()))
        }
    }
}
