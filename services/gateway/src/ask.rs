//! Extractors for parameters, bodies and conditions. Each refuses with a message when it cannot parse the request.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use model::{ResourceUri, SourceId};
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use crate::body::{self, NoBody};
use crate::refusal::Refusal;
use crate::state::Gateway;

/// The query parameters of a request.
pub(crate) struct Asked<T>(pub(crate) T);

/// The JSON body of a request.
pub(crate) struct Sent<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(error) => Err(Refusal::bad_request(format!(
                "the parameters cannot be read: {}",
                api::with_new_name(error.body_text())
            ))),
        }
    }
}

impl<T: DeserializeOwned> FromRequest<Gateway> for Sent<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, gateway: &Gateway) -> Result<Self, Refusal> {
        is_json(request.headers())?;
        read(&whole(request, gateway).await?).map(Self)
    }
}

/// The JSON body of a batch request, with the batch's permit.
pub(crate) struct SentBatch<T> {
    pub(crate) sent: T,
    pub(crate) place: OwnedSemaphorePermit,
}

impl<T: DeserializeOwned> FromRequest<Gateway> for SentBatch<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, gateway: &Gateway) -> Result<Self, Refusal> {
        is_json(request.headers())?;
        // The permit comes before the read, because the permits bound the memory.
        let place = Arc::clone(gateway.batches()).try_acquire_owned().map_err(|_| {
            Refusal::too_many("as many batches as are worked on at a time are under way; come again in 1 s")
                .after_seconds(1)
        })?;
        let settings = gateway.settings();
        let (most, patience) = (settings.batch_bytes, settings.body_time());
        let sent = read(&within(request, most, "gateway.batch_bytes", patience).await?)?;
        Ok(Self { sent, place })
    }
}

/// Checks that the request declares a JSON body.
///
/// # Errors
/// [`Refusal::not_json`].
fn is_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_json = media_type.is_some_and(|value| {
        value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
    });
    match is_json {
        true => Ok(()),
        false => Err(Refusal::not_json("the body is to be JSON, with Content-Type: application/json")),
    }
}

/// The body of a request, within the configured length and time.
///
/// # Errors
/// [`Refusal::too_large`], [`Refusal::too_slow`]; [`Refusal::bad_request`] where it breaks off.
pub(crate) async fn whole(request: Request, gateway: &Gateway) -> Result<Vec<u8>, Refusal> {
    let settings = gateway.settings();
    within(request, settings.body_bytes, "gateway.body_bytes", settings.body_time()).await
}

async fn within(request: Request, most: usize, field: &str, patience: Duration) -> Result<Vec<u8>, Refusal> {
    let (parts, body) = request.into_parts();
    match timeout(patience, body::receive(&parts.headers, body, most)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(NoBody::TooLong)) => {
            Err(Refusal::too_large(format!("send at most {most} bytes; {field} is the limit")))
        }
        Ok(Err(NoBody::Broken)) => Err(Refusal::bad_request("the body broke off; send it again")),
        Err(_late) => {
            let seconds = patience.as_secs();
            Err(Refusal::too_slow(format!("the body has not come within {seconds} s; send it again, faster")))
        }
    }
}

/// Deserializes a body.
fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(bytes).map_err(|error| {
        let said = format!("the body cannot be read: {}", api::with_new_name(error.to_string()));
        if error.is_data() { Refusal::invalid(said) } else { Refusal::bad_request(said) }
    })
}

/// The Source that a path names. A path with an invalid Source ID names no Source.
///
/// # Errors
/// [`Refusal::not_found`].
pub(crate) fn source(name: &str) -> Result<SourceId, Refusal> {
    name.parse().map_err(|error| Refusal::not_found(format!("there is no such source: {error}")))
}

/// The resource that a parameter names.
///
/// # Errors
/// [`Refusal::bad_request`].
pub(crate) fn resource(uri: &str) -> Result<ResourceUri, Refusal> {
    uri.parse().map_err(|error| Refusal::bad_request(format!("uri names no resource: {error}")))
}

/// Whether `header` (`If-Match`, `If-None-Match`, RFC 9110) contains `etag` or `*`. None if the header is missing.
pub(crate) fn names(headers: &HeaderMap, header: header::HeaderName, etag: &str) -> Option<bool> {
    let mut values = headers.get_all(header).iter().peekable();
    values.peek()?;
    let mut tags =
        values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).map(str::trim);
    Some(tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn conditions_name_one_of_several_tags_or_any() {
        let with = |value: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.extend(value.map(|value| (header::IF_MATCH, HeaderValue::from_static(value))));
            names(&headers, header::IF_MATCH, "\"7\"")
        };
        assert_eq!(with(None), None);
        for good in ["*", "\"7\"", "\"6\", \"7\"", "W/\"7\""] {
            assert_eq!(with(Some(good)), Some(true), "{good}");
        }
        for bad in ["", "7", "\"8\"", "\"77\""] {
            assert_eq!(with(Some(bad)), Some(false), "{bad}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_too_long_or_too_slow_is_refused_by_name() {
        use axum::body::Body;
        use futures::{StreamExt as _, stream};
        let drips = stream::iter([Ok::<_, std::io::Error>("{")]).chain(stream::pending());
        for (body, kind) in [(Body::from("12345678"), "too-large"), (Body::from_stream(drips), "too-slow")] {
            let request = Request::new(body);
            let refused =
                within(request, 7, "gateway.body_bytes", Duration::from_secs(30)).await.unwrap_err();
            assert!(format!("{refused:?}").contains(kind), "{refused:?}");
        }
    }

    #[test]
    fn a_body_that_is_no_json_and_one_that_makes_no_sense_are_told_apart() {
        assert!(read::<Vec<u8>>(b"[1]").is_ok());
        let kind = |body: &[u8]| format!("{:?}", read::<Vec<u8>>(body).unwrap_err());
        assert!(kind(b"[1").contains("bad-request"));
        assert!(kind(b"[300]").contains("invalid"));
    }
}
