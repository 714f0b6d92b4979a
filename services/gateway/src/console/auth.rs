//! Authentication of the pages: an operator must have signed in, and a change must come from a page of the console.

use std::sync::LazyLock;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use url::Url;
use url::form_urlencoded::byte_serialize;

use super::assets::SCRIPT;
use super::layout::PageContext;
use super::session;
use crate::api_error::{ApiError, take_error, with_body};
use crate::auth::{count_request, require_role, required_role};
use crate::host;
use crate::metrics::Measured;
use crate::state::Gateway;
use crate::tokens::Caller;

/// The path of the sign-in page.
pub(super) const SIGN_IN: &str = "/console/sign-in";
/// The path that ends a session.
pub(super) const SIGN_OUT: &str = "/console/sign-out";
/// The paths of static files.
pub(super) const ASSETS: &str = "/console/assets/{name}";

/// The Content-Security-Policy: no external content, no script but the built-in one, and no framing by other sites. The
/// policy names the script by its digest. Content of Sources is served from this origin too, and must never run,
/// whatever a page links to.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    let script = &SCRIPT.integrity;
    format!(
        "default-src 'none'; script-src '{script}'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'"
    )
});

/// Headers of every response, unless the handler sets them itself.
fn always() -> [(HeaderName, &'static str); 5] {
    [
        (header::CONTENT_SECURITY_POLICY, POLICY.as_str()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // A stricter policy would hide from the gateway which site a form comes from.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ]
}

/// Authenticates a request, redirects it to the sign-in page, or refuses it. Counts it in every case.
pub(super) async fn authenticate(
    State(gateway): State<Gateway>,
    mut request: Request,
    next: Next,
) -> Response {
    let measured = Measured::begin(&request);
    let (caller, response) = match caller(&gateway, request.headers(), &measured).await {
        Ok(Some(caller)) => {
            let response = match permit(&caller, &measured) {
                Ok(()) => {
                    request.extensions_mut().insert(caller.clone());
                    next.run(request).await
                }
                Err(error) => error.into_response(),
            };
            (Some(caller), response)
        }
        Ok(None) if matches!(measured.route(), SIGN_IN | ASSETS) => (None, next.run(request).await),
        Ok(None) => (None, to_sign_in(request.method(), request.uri(), is_part(request.headers()))),
        Err(error) => (None, error.into_response()),
    };
    let mut response = as_page(&gateway, response, caller);
    for (name, value) in always() {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    measured.count(&gateway.metrics, response.status());
    response
}

/// The caller, if known. Static files need none.
async fn caller(
    gateway: &Gateway,
    headers: &HeaderMap,
    request: &Measured,
) -> Result<Option<Caller>, ApiError> {
    if request.route() == ASSETS {
        return Ok(None);
    }
    host::check(&gateway.settings, headers)?;
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD);
    if !is_safe && !is_from_here(headers) {
        let said = "this did not come from a page of the console, or what stands before the gateway does not hand \
                    on the header Host as it came; open the page again, and send it from there";
        return Err(ApiError::forbidden(said));
    }
    session::caller(gateway, headers).await
}

/// Counts a request of the caller, and checks its role. Every signed-in operator may sign out.
fn permit(caller: &Caller, request: &Measured) -> Result<(), ApiError> {
    count_request(caller)?;
    if matches!(request.route(), SIGN_IN | SIGN_OUT) {
        return Ok(());
    }
    require_role(caller, required_role(request.method(), request.route()))
}

/// Whether a browser sent this from a page of the console. No other site can forge these headers.
fn is_from_here(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return site == "same-origin";
    }
    // An older browser, or a page that came without TLS.
    let from = text("origin").and_then(authority);
    from.zip(text("host")).is_some_and(|(from, host)| from.eq_ignore_ascii_case(host))
}

/// Host and port of an origin, in the form of the header `Host`.
fn authority(origin: &str) -> Option<&str> {
    let url = Url::parse(origin).ok()?;
    url.has_host().then(|| origin.split_once("://").map(|(_, rest)| rest))?
}

/// Whether `htmx` requests a part of a page.
fn is_part(headers: &HeaderMap) -> bool {
    headers.contains_key("hx-request")
}

/// Redirects to the sign-in page, which then continues with the requested page.
fn to_sign_in(method: &Method, asked: &Uri, is_part: bool) -> Response {
    let asked = asked.path_and_query().map_or("", |asked| asked.as_str());
    // A redirect does not repeat a form, and a part of a page is no page to return to.
    let place = if *method == Method::GET && !is_part {
        format!("{SIGN_IN}?next={}", byte_serialize(asked.as_bytes()).collect::<String>())
    } else {
        SIGN_IN.to_owned()
    };
    if is_part {
        return ([(HeaderName::from_static("hx-redirect"), place)], "").into_response();
    }
    Redirect::to(&place).into_response()
}

/// Renders every error response as a page, including those of the router and its extractors. A response that is a page
/// already stays.
fn as_page(gateway: &Gateway, mut response: Response, caller: Option<Caller>) -> Response {
    const HTML: &str = "text/html; charset=utf-8";
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if kind.is_some_and(|kind| kind.starts_with("text/html")) {
        return response;
    }
    let Some(error) = take_error(&mut response) else { return response };
    let page = PageContext::new(gateway, caller).error_page(&error).into_string();
    with_body(response, HTML, page.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_here(headers: &[(&'static str, &'static str)]) -> bool {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        is_from_here(&headers.collect())
    }

    #[test]
    fn what_another_site_sends_is_told_from_what_a_page_of_ours_sends() {
        assert!(from_here(&[("sec-fetch-site", "same-origin")]));
        assert!(from_here(&[("origin", "http://127.0.0.1:80"), ("host", "127.0.0.1:80")]));
        assert!(from_here(&[("origin", "https://Console.example.org"), ("host", "console.example.org")]));
        for other in ["cross-site", "same-site", "none"] {
            assert!(
                !from_here(&[("sec-fetch-site", other), ("origin", "http://h"), ("host", "h")]),
                "{other}"
            );
        }
        for (origin, host) in [("http://h:81", "h:80"), ("http://evil.org", "h"), ("null", "h"), ("h", "h")] {
            assert!(!from_here(&[("origin", origin), ("host", host)]), "{origin}");
        }
        assert!(!from_here(&[("host", "h")]), "who says nothing is no browser that we know");
    }

    #[test]
    fn what_was_asked_for_comes_after_signing_in_unless_it_was_sent_or_is_a_part() {
        let uri: Uri = "/console/sources/a?x=1&y".parse().unwrap();
        let place = |method: Method, is_part, name: &str| {
            to_sign_in(&method, &uri, is_part)
                .headers()
                .get(name)
                .map(|place| place.to_str().unwrap().to_owned())
        };
        let next = "/console/sign-in?next=%2Fconsole%2Fsources%2Fa%3Fx%3D1%26y";
        assert_eq!(place(Method::GET, false, "location").as_deref(), Some(next));
        assert_eq!(place(Method::POST, false, "location").as_deref(), Some(SIGN_IN));
        assert_eq!(place(Method::GET, true, "hx-redirect").as_deref(), Some(SIGN_IN));
    }
}
