//! Answers without content.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::access::keep_private;

/// The answer where nothing is.
pub(crate) fn not_found() -> Response {
    let text = "Nothing is published here. The Source Description at /.well-known/resourcesync leads to all lists.\n";
    (StatusCode::NOT_FOUND, text).into_response()
}

/// The answer for what an operator withdrew.
pub(crate) fn withdrawn() -> Response {
    (StatusCode::GONE, "The resource was withdrawn.\n").into_response()
}

/// The answer for a package with bytes of what an operator withdrew.
pub(crate) fn package_withdrawn() -> Response {
    said(
        StatusCode::GONE,
        "A resource in this package was withdrawn. The dump names other packages when they are made.",
    )
}

/// A status, and what it means here.
pub(crate) fn said(status: StatusCode, text: &str) -> Response {
    (status, format!("{text}\n")).into_response()
}

/// Too many ask for the same: later there is room.
pub(crate) fn later(text: &str) -> Response {
    let pause = [(header::RETRY_AFTER, HeaderValue::from_static("60"))];
    (StatusCode::SERVICE_UNAVAILABLE, pause, format!("{text}\n")).into_response()
}

/// Something cannot be read, or is damaged: a later attempt may succeed.
pub(crate) fn unavailable() -> Response {
    later("This cannot be read now.")
}

/// Headers of all answers.
pub(crate) fn finish(response: &mut Response, is_private: bool) {
    let headers = response.headers_mut();
    if is_private {
        keep_private(headers);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}
