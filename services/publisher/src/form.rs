//! Forms: the bodies of requests to the hub, and of requests of OAI-PMH.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use futures::TryStreamExt as _;
use websub::FORM;

use crate::answers::said;

/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(10);

/// The form that a request has as its body, of at most so many bytes.
///
/// # Errors
/// The answer to one that has none, or one that cannot be read.
pub(crate) async fn read(headers: &HeaderMap, body: Body, most_bytes: usize) -> Result<String, Response> {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = media_type.and_then(|value| value.split(';').next()).unwrap_or_default();
    if !media_type.trim().eq_ignore_ascii_case(FORM) {
        return Err(said(StatusCode::UNSUPPORTED_MEDIA_TYPE, &format!("send the request as {FORM}")));
    }
    match tokio::time::timeout(BODY_TIME, collect(body, most_bytes)).await {
        Ok(Ok(Some(form))) => Ok(String::from_utf8_lossy(&form).into_owned()),
        Ok(Ok(None)) => Err(said(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long")),
        Ok(Err(_)) => Err(said(StatusCode::BAD_REQUEST, "the request broke off")),
        Err(_) => Err(said(StatusCode::REQUEST_TIMEOUT, "the request came too slowly")),
    }
}

/// The body. None if it is too long.
async fn collect(body: Body, most_bytes: usize) -> Result<Option<Vec<u8>>, axum::Error> {
    let mut pieces = body.into_data_stream();
    let mut form = Vec::new();
    while let Some(piece) = pieces.try_next().await? {
        if form.len() + piece.len() > most_bytes {
            return Ok(None);
        }
        form.extend_from_slice(&piece);
    }
    Ok(Some(form))
}
