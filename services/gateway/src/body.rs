//! Reads bodies of untrusted senders. Memory stays within the allowed length.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use futures::StreamExt as _;
use tokio::time::timeout;

/// Why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyError {
    /// The body is longer than allowed.
    TooLong,
    /// The body did not arrive in time.
    TooSlow,
    /// The body broke off.
    Broken,
}

/// Whether the declared length of a body exceeds `most` bytes.
pub(crate) fn is_too_long(headers: &HeaderMap, most: usize) -> bool {
    declared(headers).is_some_and(|length| length > most as u64)
}

/// Reads a body of at most `most` bytes within `time`. The declared length decides the size of the one allocation.
///
/// # Errors
/// Why the body could not be read.
pub(crate) async fn receive(
    headers: &HeaderMap,
    body: Body,
    most: usize,
    time: Duration,
) -> Result<Vec<u8>, BodyError> {
    if is_too_long(headers, most) {
        return Err(BodyError::TooLong);
    }
    let length = declared(headers).and_then(|length| usize::try_from(length).ok()).unwrap_or_default();
    let reading = async {
        let mut received = Vec::with_capacity(length);
        let mut chunks = body.into_data_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| BodyError::Broken)?;
            if received.len() + chunk.len() > most {
                return Err(BodyError::TooLong);
            }
            received.extend_from_slice(&chunk);
        }
        Ok(received)
    };
    timeout(time, reading).await.unwrap_or(Err(BodyError::TooSlow))
}

fn declared(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: Duration = Duration::from_secs(60);

    async fn received(declared: Option<&str>, body: &str) -> Result<Vec<u8>, BodyError> {
        let mut headers = HeaderMap::new();
        headers.extend(declared.map(|length| (header::CONTENT_LENGTH, length.parse().unwrap())));
        receive(&headers, Body::from(body.to_owned()), 5, TIME).await
    }

    #[tokio::test]
    async fn a_body_is_received_within_its_bound_whatever_it_says_of_itself() {
        for declared in [None, Some("5"), Some("nonsense")] {
            let body = received(declared, "12345").await.unwrap();
            assert_eq!(body, b"12345");
            assert_eq!(received(declared, "123456").await, Err(BodyError::TooLong));
        }
        assert_eq!(received(Some("5"), "12345").await.unwrap().capacity(), 5, "room is made once");
        assert_eq!(received(Some("6"), "1").await, Err(BodyError::TooLong));
        assert_eq!(received(Some("99999999999999999999"), "1").await.unwrap(), b"1");
        let pieces = [Ok("1"), Err(std::io::Error::other("gone"))];
        let broken = Body::from_stream(futures::stream::iter(pieces));
        assert_eq!(receive(&HeaderMap::new(), broken, 5, TIME).await, Err(BodyError::Broken));
    }
}
