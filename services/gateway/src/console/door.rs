//! Authentication of the pages: an operator must have signed in, and a change must come from a page of the console.

use std::sync::LazyLock;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use tokio::time::Instant;
use url::Url;
use url::form_urlencoded::byte_serialize;

use super::assets::{self, Asset};
use super::{layout, session};
use crate::door::{UNMATCHED, count, needed, permit};
use crate::host;
use crate::refusal::{Refusal, unsaid};
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
    let script = assets::integrity(Asset::Htmx);
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

/// Lets a request in, redirects it to the sign-in page, or refuses it. Counts it in every case.
pub(super) async fn door(State(gateway): State<Gateway>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let (method, headers, uri) = (request.method().clone(), request.headers().clone(), request.uri().clone());
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
    let (caller, response) = match let_in(&gateway, &method, &headers, route).await {
        Ok(Some(caller)) => {
            request.extensions_mut().insert(caller.clone());
            (Some(caller), next.run(request).await)
        }
        Ok(None) if route == SIGN_IN || route == ASSETS => (None, next.run(request).await),
        Ok(None) => (None, to_sign_in(&method, &uri, is_part(&headers))),
        Err((caller, refusal)) => (caller, refusal.into_response()),
    };
    let mut response = shown(&gateway, response, caller.as_ref());
    for (name, value) in always() {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    gateway.metrics().count(&method, route, response.status(), began.elapsed());
    response
}

/// The caller, if known. Public pages need no caller.
async fn let_in(
    gateway: &Gateway,
    method: &Method,
    headers: &HeaderMap,
    route: &str,
) -> Result<Option<Caller>, (Option<Caller>, Refusal)> {
    if route == ASSETS {
        return Ok(None);
    }
    host::check(gateway, headers).map_err(|refusal| (None, refusal))?;
    let is_safe = matches!(*method, Method::GET | Method::HEAD);
    if !is_safe && !is_from_here(headers) {
        let said = "this did not come from a page of the console, or what stands before the gateway does not hand on the header Host as it \
                    came; open the page again, and send it from there";
        return Err((None, Refusal::forbidden(said)));
    }
    let found = session::caller(gateway, headers).await.map_err(|refusal| (None, refusal))?;
    let Some(caller) = found else { return Ok(None) };
    let permitted = || {
        count(&caller)?;
        // Every signed-in operator may sign out.
        if route == SIGN_OUT || route == SIGN_IN { Ok(()) } else { permit(&caller, needed(method, route)) }
    };
    match permitted() {
        Ok(()) => Ok(Some(caller)),
        Err(refusal) => Err((Some(caller), refusal)),
    }
}

/// Whether a browser sent this from a page of the console. No other site can forge these headers.
fn is_from_here(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match text("sec-fetch-site") {
        Some(site) => site == "same-origin",
        // An older browser, or a page that came without TLS.
        None => match (text("origin"), text("host")) {
            (Some(origin), Some(host)) => {
                authority(origin).is_some_and(|from| from.eq_ignore_ascii_case(host))
            }
            _ => false,
        },
    }
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
    let place = match *method == Method::GET && !is_part {
        true => format!("{SIGN_IN}?next={}", byte_serialize(asked.as_bytes()).collect::<String>()),
        false => SIGN_IN.to_owned(),
    };
    if is_part {
        return ([(HeaderName::from_static("hx-redirect"), place)], "").into_response();
    }
    Redirect::to(&place).into_response()
}

/// Renders every error response as a page, including those of the router and its extractors.
fn shown(gateway: &Gateway, mut response: Response, caller: Option<&Caller>) -> Response {
    let status = response.status();
    let is_page = |response: &Response| {
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        kind.is_some_and(|kind| kind.starts_with("text/html"))
    };
    if !(status.is_client_error() || status.is_server_error()) || is_page(&response) {
        return response;
    }
    let refusal = response.extensions_mut().remove::<Refusal>().unwrap_or_else(|| unsaid(status));
    let page = layout::refused(gateway, caller, &refusal).into_response();
    let (mut parts, _) = response.into_parts();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    Response::from_parts(parts, page.into_body())
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
