//! A response that counts as open until its last byte was sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use http_body::{Frame, SizeHint};

use super::requests::Open;

/// A body, and its counter.
struct Counted {
    body: Body,
    _open: Open,
}

/// Keeps a request open until the body of its response was sent or dropped.
pub(crate) fn until_sent(response: Response, open: Open) -> Response {
    response.map(|body| Body::new(Counted { body, _open: open }))
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
