//! Extractors for parameters, bodies and conditions. Each refuses with a message when it cannot parse the request.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Path, Query as AxumQuery, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use model::{ResourceUri, RunId, SourceId};
use serde::de::DeserializeOwned;
use tokio::sync::OwnedSemaphorePermit;
use utoipa::IntoParams;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};

use crate::access;
use crate::api_error::{ApiError, default_error};
use crate::body::{self, BodyError};
use crate::state::Gateway;
use crate::tokens::Caller;

/// The query parameters of a request.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match AxumQuery::<T>::from_request_parts(parts, state).await {
            Ok(AxumQuery(query)) => Ok(Self(query)),
            Err(error) => Err(ApiError::bad_request(format!(
                "the parameters cannot be read: {}",
                api::with_new_name(error.body_text())
            ))),
        }
    }
}

/// The Source that the path names, by its name or its ID. The caller sees it, if it exists.
pub(crate) struct SourcePath(pub(crate) SourceId);

impl FromRequestParts<Gateway> for SourcePath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, ApiError> {
        let Path(source) = path::<String, Gateway>(parts, gateway).await?;
        let caller = Caller::from_request_parts(parts, gateway).await?;
        access::source(gateway, &caller, &source).await.map(Self)
    }
}

/// The Source and the run that the path names. The caller sees the Source, if it exists.
pub(crate) struct RunPath {
    pub(crate) source: SourceId,
    pub(crate) run: RunId,
}

impl FromRequestParts<Gateway> for RunPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, ApiError> {
        let Path((source, run)) = path::<(String, String), Gateway>(parts, gateway).await?;
        let caller = Caller::from_request_parts(parts, gateway).await?;
        let source = access::source(gateway, &caller, &source).await?;
        let no_run = |error| ApiError::not_found(format!("there is no such run: {error}"));
        Ok(Self { source, run: run.parse().map_err(no_run)? })
    }
}

impl IntoParams for SourcePath {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![path_parameter("source", "The name or the ID of the Source")]
    }
}

impl IntoParams for RunPath {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![
            path_parameter("source", "The name or the ID of the Source"),
            path_parameter("run", "The run ID"),
        ]
    }
}

fn path_parameter(name: &str, description: &str) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

async fn path<T, S>(parts: &mut Parts, state: &S) -> Result<Path<T>, ApiError>
where
    T: DeserializeOwned + Send,
    S: Send + Sync,
{
    Path::from_request_parts(parts, state).await.map_err(|error| default_error(error.status()))
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let caller = parts.extensions.get().cloned();
        caller.ok_or_else(|| ApiError::internal("a route lacks its authentication"))
    }
}

/// The longest `Idempotency-Key`, in characters.
const LONGEST_KEY: usize = 255;

/// The `Idempotency-Key` of a request, if it has one.
pub(crate) struct IdempotencyKey(Option<String>);

impl IdempotencyKey {
    /// A key that came otherwise than in a header.
    ///
    /// # Errors
    /// [`ApiError::bad_request`] when it is empty, too long or not visible.
    pub(crate) fn of(key: Option<&str>) -> Result<Self, ApiError> {
        let fits = |key: &str| {
            (1..=LONGEST_KEY).contains(&key.len())
                && key.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
        };
        match key {
            Some(key) if !fits(key) => Err(ApiError::bad_request(format!(
                "Idempotency-Key is 1 to {LONGEST_KEY} visible characters"
            ))),
            key => Ok(Self(key.map(str::to_owned))),
        }
    }

    pub(crate) fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        // What is no text is no key either.
        Self::of(parts.headers.get("idempotency-key").map(|key| key.to_str().unwrap_or_default()))
    }
}

impl IntoParams for IdempotencyKey {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let text = ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::String, Type::Null]));
        let key = ParameterBuilder::new().name("Idempotency-Key").parameter_in(ParameterIn::Header);
        let key =
            key.required(Required::False).description(Some("A unique key of 1 to 255 visible characters"));
        vec![key.schema(Some(text)).build()]
    }
}

/// The JSON body of a request.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Gateway> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, gateway: &Gateway) -> Result<Self, ApiError> {
        is_json(request.headers())?;
        parse(&read_body(request, gateway).await?).map(Self)
    }
}

/// The JSON body of a batch request, with the batch's permit.
pub(crate) struct BatchBody<T> {
    pub(crate) body: T,
    pub(crate) permit: OwnedSemaphorePermit,
}

impl<T: DeserializeOwned> FromRequest<Gateway> for BatchBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, gateway: &Gateway) -> Result<Self, ApiError> {
        is_json(request.headers())?;
        // The permit comes before the read, because the permits bound the memory.
        let permit = batch_permit(gateway)?;
        let settings = &gateway.settings;
        let body = read_within(request, settings.batch_bytes, "gateway.batch_bytes", settings.body_time());
        Ok(Self { body: parse(&body.await?)?, permit })
    }
}

/// A permit to process a batch.
///
/// # Errors
/// [`ApiError::too_many`].
pub(crate) fn batch_permit(gateway: &Gateway) -> Result<OwnedSemaphorePermit, ApiError> {
    Arc::clone(&gateway.batches).try_acquire_owned().map_err(|_| {
        ApiError::too_many("as many batches as are worked on at a time are under way; come again in 1 s")
            .after_seconds(1)
    })
}

/// Checks that the request declares a JSON body.
///
/// # Errors
/// [`ApiError::not_json`].
fn is_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_json = media_type.is_some_and(|value| {
        value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
    });
    if is_json {
        return Ok(());
    }
    Err(ApiError::not_json("the body is to be JSON, with Content-Type: application/json"))
}

/// The body of a request, within the configured length and time.
///
/// # Errors
/// [`ApiError::too_large`], [`ApiError::too_slow`]; [`ApiError::bad_request`] where it breaks off.
pub(crate) async fn read_body(request: Request, gateway: &Gateway) -> Result<Vec<u8>, ApiError> {
    let settings = &gateway.settings;
    read_within(request, settings.body_bytes, "gateway.body_bytes", settings.body_time()).await
}

async fn read_within(
    request: Request,
    most: usize,
    field: &str,
    time: Duration,
) -> Result<Vec<u8>, ApiError> {
    let (parts, body) = request.into_parts();
    body::receive(&parts.headers, body, most, time).await.map_err(|error| match error {
        BodyError::TooLong => ApiError::too_large(format!("send at most {most} bytes; {field} is the limit")),
        BodyError::Broken => ApiError::body_broken(),
        BodyError::TooSlow => ApiError::body_too_slow(time.as_secs()),
    })
}

/// Deserializes a body.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).map_err(|error| {
        let said = format!("the body cannot be read: {}", api::with_new_name(error.to_string()));
        if error.is_data() { ApiError::invalid(said) } else { ApiError::bad_request(said) }
    })
}

/// The Source whose ID a path states. Paths for others than operators know no names.
///
/// # Errors
/// [`ApiError::not_found`].
pub(crate) fn source_id(name: &str) -> Result<SourceId, ApiError> {
    name.parse().map_err(|error| ApiError::not_found(format!("there is no such source: {error}")))
}

/// The resource that a parameter names.
///
/// # Errors
/// [`ApiError::bad_request`].
pub(crate) fn resource_uri(uri: &str) -> Result<ResourceUri, ApiError> {
    uri.parse().map_err(|error| ApiError::bad_request(format!("uri names no resource: {error}")))
}

#[cfg(test)]
mod tests {

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_is_too_long_or_too_slow_is_refused_by_name() {
        use axum::body::Body;
        use futures::{StreamExt as _, stream};
        let drips = stream::iter([Ok::<_, std::io::Error>("{")]).chain(stream::pending());
        for (body, kind) in [(Body::from("12345678"), "too-large"), (Body::from_stream(drips), "too-slow")] {
            let request = Request::new(body);
            let refused =
                read_within(request, 7, "gateway.body_bytes", Duration::from_secs(30)).await.unwrap_err();
            assert!(format!("{refused:?}").contains(kind), "{refused:?}");
        }
    }

    #[test]
    fn a_body_that_is_no_json_and_one_that_makes_no_sense_are_told_apart() {
        assert!(parse::<Vec<u8>>(b"[1]").is_ok());
        let kind = |body: &[u8]| format!("{:?}", parse::<Vec<u8>>(body).unwrap_err());
        assert!(kind(b"[1").contains("bad-request"));
        assert!(kind(b"[300]").contains("invalid"));
    }
}
