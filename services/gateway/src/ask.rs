//! What is asked: parameters, bodies and conditions, each refused in words when it cannot be understood.

use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use model::{ResourceUri, SourceId};
use serde::de::DeserializeOwned;

use crate::refusal::Refusal;

/// The parameters of a request.
pub(crate) struct Asked<T>(pub(crate) T);

/// The body of a request, which is JSON.
pub(crate) struct Sent<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(asked)) => Ok(Self(asked)),
            Err(error) => {
                Err(Refusal::bad_request(format!("the parameters cannot be read: {}", error.body_text())))
            }
        }
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Sent<T> {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let media_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_json = media_type.is_some_and(|value| {
            value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
        });
        if !is_json {
            return Err(Refusal::not_json("the body is to be JSON, with Content-Type: application/json")
                .into_response());
        }
        // Too large a body keeps its own status.
        let bytes = Bytes::from_request(request, state).await.map_err(BytesRejection::into_response)?;
        read(&bytes).map(Self).map_err(Refusal::into_response)
    }
}

/// Reads a body.
fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(bytes).map_err(|error| {
        let said = format!("the body cannot be read: {error}");
        if error.is_data() { Refusal::invalid(said) } else { Refusal::bad_request(said) }
    })
}

/// The Source that a path names. What cannot be the name of a Source names none.
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

/// Whether one of the entity tags in `header` (`If-Match`, `If-None-Match`, RFC 9110) is `etag`, or any will do. None where the header is
/// not there.
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

    #[test]
    fn a_body_that_is_no_json_and_one_that_makes_no_sense_are_told_apart() {
        assert!(read::<Vec<u8>>(b"[1]").is_ok());
        let kind = |body: &[u8]| format!("{:?}", read::<Vec<u8>>(body).unwrap_err());
        assert!(kind(b"[1").contains("bad-request"));
        assert!(kind(b"[300]").contains("invalid"));
    }
}
