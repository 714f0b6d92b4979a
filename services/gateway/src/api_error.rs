//! Error responses: what happened, where, and what to do (RFC 9457).

use std::sync::Arc;

use api::{FieldError, Problem};
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use catalog::CatalogError;
use control::ControlError;
use store::StoreError;

/// The media type of a problem.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// An error response. The path is added when it is sent.
#[derive(Debug, Clone)]
pub(crate) struct ApiError {
    status: StatusCode,
    kind: &'static str,
    title: &'static str,
    detail: String,
    errors: Vec<FieldError>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// The kinds of errors, each with its status.
macro_rules! errors {
    ($($(#[$doc:meta])* $make:ident $status:ident $kind:literal $title:literal;)+) => {
        impl ApiError {
            $($(#[$doc])* pub(crate) fn $make(detail: impl Into<String>) -> Self {
                Self::of(StatusCode::$status, $kind, $title, detail.into())
            })+
        }
    };
}

errors! {
    bad_request BAD_REQUEST "bad-request" "Bad request";
    not_json UNSUPPORTED_MEDIA_TYPE "unsupported-media-type" "Unsupported media type";
    unauthorized UNAUTHORIZED "unauthorized" "Token required";
    forbidden FORBIDDEN "forbidden" "Forbidden";
    not_found NOT_FOUND "not-found" "Not found";
    conflict CONFLICT "conflict" "Conflict";
    precondition_failed PRECONDITION_FAILED "precondition-failed" "Precondition failed";
    unconditional PRECONDITION_REQUIRED "unconditional" "Precondition required";
    invalid UNPROCESSABLE_ENTITY "invalid" "Invalid request";
    misdirected MISDIRECTED_REQUEST "misdirected" "Misdirected request";
    too_many TOO_MANY_REQUESTS "too-many-requests" "Too many requests";
    too_large PAYLOAD_TOO_LARGE "too-large" "The body is too large";
    too_slow REQUEST_TIMEOUT "too-slow" "The body came too slowly";
    unsatisfiable RANGE_NOT_SATISFIABLE "range-not-satisfiable" "Range not satisfiable";
    damaged INTERNAL_SERVER_ERROR "damaged" "Stored bytes are damaged";
    unavailable SERVICE_UNAVAILABLE "unavailable" "Unavailable";
    internal INTERNAL_SERVER_ERROR "internal" "Internal error";
}

impl ApiError {
    /// Whether another client changed what this request would change.
    pub(crate) fn is_precondition(&self) -> bool {
        self.status == StatusCode::PRECONDITION_FAILED
    }

    fn of(status: StatusCode, kind: &'static str, title: &'static str, detail: String) -> Self {
        Self { status, kind, title, detail, errors: Vec::new(), headers: Vec::new() }
    }

    /// The error of a body that broke off.
    pub(crate) fn body_broken() -> Self {
        Self::bad_request("the body broke off; send it again")
    }

    /// The error of a body that did not arrive in time.
    pub(crate) fn body_too_slow(seconds: u64) -> Self {
        Self::too_slow(format!("the body has not come within {seconds} s; send it again, faster"))
    }

    /// Adds errors of single fields.
    pub(crate) fn fields<'a>(mut self, errors: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        self.errors = errors
            .into_iter()
            .map(|(field, detail)| FieldError { field: field.to_owned(), detail })
            .collect();
        self
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Adds `Retry-After` with so many seconds.
    pub(crate) fn after_seconds(self, seconds: u64) -> Self {
        self.header(header::RETRY_AFTER, seconds.into())
    }

    /// The kind of error in words.
    pub(crate) fn title(&self) -> &'static str {
        self.title
    }

    /// What happened, and what to do.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// The errors of single fields.
    pub(crate) fn errors(&self) -> &[FieldError] {
        &self.errors
    }

    /// Converts the error into a problem at this path.
    pub(crate) fn at(self, path: &str) -> Problem {
        Problem {
            kind: format!("urn:thresher:problem:{}", self.kind),
            title: self.title.to_owned(),
            status: self.status.as_u16(),
            detail: self.detail,
            instance: path.to_owned(),
            errors: self.errors,
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.headers_mut().extend(self.headers.iter().cloned());
        response.extensions_mut().insert(self);
        response
    }
}

/// Converts every error response into a problem, including those of the router and its extractors.
pub(crate) fn render(mut response: Response, path: &str) -> Response {
    let Some(error) = take_error(&mut response) else { return response };
    // A structure of strings always serializes to JSON.
    let body = serde_json::to_vec(&error.at(path)).unwrap_or_default();
    with_body(response, PROBLEM_JSON, Body::from(body))
}

/// The error of an error response; none for another response.
pub(crate) fn take_error(response: &mut Response) -> Option<ApiError> {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    is_error.then(|| response.extensions_mut().remove().unwrap_or_else(|| default_error(status)))
}

/// The response with another body.
pub(crate) fn with_body(response: Response, media_type: &'static str, body: Body) -> Response {
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    Response::from_parts(parts, body)
}

/// The error for a response that no handler made.
pub(crate) fn default_error(status: StatusCode) -> ApiError {
    let (kind, title, detail) = match status {
        StatusCode::METHOD_NOT_ALLOWED => {
            ("method-not-allowed", "Method not allowed", "the header Allow names the allowed methods")
        }
        StatusCode::PAYLOAD_TOO_LARGE => {
            ("too-large", "The body is too large", "send less; gateway.body_bytes is the limit")
        }
        StatusCode::NOT_FOUND => {
            ("not-found", "Not found", "nothing is served at this path; /v1/openapi.json describes what is")
        }
        status if status.is_client_error() => {
            ("bad-request", "Bad request", "/v1/openapi.json describes the requests")
        }
        _ => ("internal", "Internal error", "see the log of the gateway"),
    };
    ApiError::of(status, kind, title, detail.to_owned())
}

impl From<ControlError> for ApiError {
    fn from(error: ControlError) -> Self {
        let said = error.to_string();
        match error {
            ControlError::Absent { .. } => Self::not_found(said),
            ControlError::Exists { .. }
            | ControlError::Refused(_)
            | ControlError::NotRequested(_)
            | ControlError::Conflict { .. } => Self::conflict(said),
            ControlError::NameTaken { .. } => Self::conflict(said.clone()).fields([("name", said)]),
            ControlError::Invalid(invalid) => {
                Self::invalid(said).fields(invalid.reasons().iter().map(|(field, why)| (*field, why.clone())))
            }
            ControlError::Unavailable { .. } => Self::unavailable(said).after_seconds(1),
            ControlError::Config(_) | ControlError::Unreadable { .. } => Self::internal(said),
        }
    }
}

impl From<CatalogError> for ApiError {
    fn from(error: CatalogError) -> Self {
        Self::from(Arc::new(error))
    }
}

impl From<Arc<CatalogError>> for ApiError {
    fn from(error: Arc<CatalogError>) -> Self {
        let said = error.to_string();
        match *error {
            CatalogError::NotFound { .. } => Self::not_found(
                "no catalog of this Source: it was not harvested yet, or there is no such Source",
            ),
            CatalogError::Store { .. } | CatalogError::TimedOut { .. } | CatalogError::Closed { .. } => {
                Self::unavailable(said).after_seconds(1)
            }
            _ => Self::internal(said),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let said = error.to_string();
        match error {
            StoreError::Damaged { .. } | StoreError::NotFound { .. } => Self::damaged(said),
            error if error.is_retryable() => Self::unavailable(said).after_seconds(1),
            _ => Self::internal(said),
        }
    }
}

#[cfg(test)]
mod tests;
