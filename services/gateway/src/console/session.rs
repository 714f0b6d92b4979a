//! Signing in: the operator shows a token once. A cookie with a random value stands for it until the session is over.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use control::{Session, SessionKey};
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use maud::{Markup, html};
use rand::Rng as _;
use serde::Deserialize;

use super::HOME;
use super::auth::SIGN_IN;
use super::form::Fields;
use super::layout::PageContext;
use crate::api_error::ApiError;
use crate::auth::{check_token, count_request};
use crate::client::ClientAddress;
use crate::extract::Query;
use crate::state::Gateway;
use crate::tokens::Caller;
use crate::wrong_tokens::TokenEndpoint;

/// The cookie's name where browsers come without TLS, according to the configuration.
const COOKIE: &str = "thresher-session";
/// The cookie's name where browsers come over TLS. Browsers accept it from this host only, and only over TLS.
const HOST_COOKIE: &str = "__Host-thresher-session";
/// Random bytes in the secret of a session.
const SECRET_BYTES: usize = 32;

/// Parameters of the page.
#[derive(Debug, Deserialize)]
pub(super) struct SignInParams {
    /// The page to continue with.
    #[serde(default)]
    next: String,
}

/// The sign-in page.
pub(super) async fn page(State(gateway): State<Gateway>, Query(params): Query<SignInParams>) -> Response {
    if gateway.tokens.find(None).is_some() {
        return Redirect::to(inside(&params.next)).into_response();
    }
    form(&gateway, &params.next, None).into_response()
}

/// Checks a token and starts a session.
pub(super) async fn sign_in(
    State(gateway): State<Gateway>,
    client: ClientAddress,
    headers: HeaderMap,
    fields: Fields,
) -> Result<Response, ApiError> {
    let next = fields.get("next").unwrap_or_default();
    let token = Some(fields.get("token").unwrap_or_default());
    let found =
        check_token(&gateway, TokenEndpoint::Console, client, token, |token| gateway.tokens.find(token))?;
    let Some(caller) = found else {
        tracing::info!(reason = "unknown-token", "sign-in rejected");
        let said = "This token is not known here, or not any more.";
        let challenge = [(header::WWW_AUTHENTICATE, "Bearer realm=\"thresher\"")];
        return Ok((StatusCode::UNAUTHORIZED, challenge, form(&gateway, next, Some(said))).into_response());
    };
    count_request(&caller)?;
    let mut bytes = [0; SECRET_BYTES];
    rand::rng().fill_bytes(&mut bytes);
    let secret = BASE64URL_NOPAD.encode(&bytes);
    let session = Session { mark: HEXLOWER.encode(&caller.mark(&secret)) };
    let seconds = gateway.settings.session_ttl_seconds;
    let ttl = Duration::from_secs(seconds);
    gateway.control.sessions().begin(&SessionKey::of(&secret), &session, ttl).await?;
    tracing::info!(token = caller.name(), "signed in");
    let cookie = cookie(&secret, seconds, Tls::of(&gateway, &headers))?;
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(inside(next))).into_response())
}

/// Ends the session.
pub(super) async fn sign_out(
    State(gateway): State<Gateway>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if let Some(secret) = secret(&gateway, &headers) {
        gateway.control.sessions().end(&SessionKey::of(secret)).await?;
        tracing::info!(token = caller.name(), "signed out");
    }
    Ok(([(header::SET_COOKIE, cookie("", 0, Tls::of(&gateway, &headers))?)], Redirect::to(SIGN_IN))
        .into_response())
}

/// The caller of the session. None if there is no session, or its token is no longer valid.
pub(super) async fn caller(gateway: &Gateway, headers: &HeaderMap) -> Result<Option<Caller>, ApiError> {
    let Some(secret) = secret(gateway, headers) else { return Ok(gateway.tokens.find(None)) };
    let Some(session) = gateway.control.sessions().get(&SessionKey::of(secret)).await? else {
        return Ok(gateway.tokens.find(None));
    };
    let mark = HEXLOWER.decode(session.mark.as_bytes()).unwrap_or_default();
    Ok(gateway.tokens.find_marked(secret, &mark).or_else(|| gateway.tokens.find(None)))
}

/// The secret in the cookie.
fn secret<'a>(gateway: &Gateway, headers: &'a HeaderMap) -> Option<&'a str> {
    secret_in(headers, if gateway.settings.is_over_tls() { HOST_COOKIE } else { COOKIE })
}

/// The secret in the cookie of this name.
fn secret_in<'a>(headers: &'a HeaderMap, cookie: &str) -> Option<&'a str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut named =
        cookies.flat_map(|text| text.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
    named.find(|(name, value)| *name == cookie && !value.is_empty()).map(|(_, value)| value)
}

/// Whether browsers use TLS to reach the gateway or the proxy before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tls {
    /// The configuration says so: always.
    Always,
    /// This browser does, according to its headers.
    Now,
    /// This browser does not.
    Without,
}

impl Tls {
    fn of(gateway: &Gateway, headers: &HeaderMap) -> Self {
        if gateway.settings.is_over_tls() {
            Self::Always
        } else if is_over_tls(headers) {
            Self::Now
        } else {
            Self::Without
        }
    }
}

/// The cookie. Scripts cannot read it, and other sites do not send it. Its path limits it to the console, or its name
/// limits it to this host.
fn cookie(secret: &str, seconds: u64, tls: Tls) -> Result<HeaderValue, ApiError> {
    let (name, path, secure) = match tls {
        // Browsers refuse the name with another path.
        Tls::Always => (HOST_COOKIE, "/", "; Secure"),
        Tls::Now => (COOKIE, HOME, "; Secure"),
        Tls::Without => (COOKIE, HOME, ""),
    };
    let text = format!("{name}={secret}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    text.parse().map_err(|_| ApiError::internal("a cookie cannot be made"))
}

/// Whether the browser uses TLS to the proxy before the gateway, according to its headers.
fn is_over_tls(headers: &HeaderMap) -> bool {
    headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"))
}

/// The path to continue with, forced to lie within the console.
fn inside(next: &str) -> &str {
    let is_page = next == HOME || next.starts_with("/console/") || next.starts_with("/console?");
    let is_plain = next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_page && is_plain && !next.starts_with(SIGN_IN) { next } else { HOME }
}

fn form(gateway: &Gateway, next: &str, wrong: Option<&str>) -> Markup {
    let described = wrong.map(|_| "wrong");
    let content = html! {
        @if let Some(wrong) = wrong { p.error #wrong role="alert" { (wrong) } }
        form method="post" action=(SIGN_IN) {
            input type="hidden" name="next" value=(next);
            p.field {
                label for="token" { "Token" }
                input #token type="password" name="token" required autocomplete="current-password" spellcheck="false"
                    aria-invalid=[described.map(|_| "true")] aria-describedby=[described];
            }
            p { button type="submit" { "Sign in" } }
        }
        p.hint { "The operator of this fleet gives out tokens, each with a role. The token is sent once; a cookie stands for it \
                  until you sign out." }
    };
    PageContext::new(gateway, None).page("Sign in", content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signing_in_leads_nowhere_but_into_the_console() {
        for good in ["/console", "/console/sources/a?x=%20", "/console?name=x"] {
            assert_eq!(inside(good), good);
        }
        for bad in [
            "",
            "//evil.org",
            "/consoles",
            "https://evil.org/console/",
            "/console/\\evil.org",
            "/v1/sources",
            "/console/sign-in?next=x",
            "/console/\n",
        ] {
            assert_eq!(inside(bad), HOME, "{bad}");
        }
    }

    #[test]
    fn the_cookie_is_found_among_others_and_is_kept_from_scripts_and_other_sites() {
        let mut headers = HeaderMap::new();
        assert_eq!(secret_in(&headers, COOKIE), None);
        headers.insert(
            header::COOKIE,
            HeaderValue::from_static("a=b; thresher-session=; thresher-session=x_Y; c"),
        );
        assert_eq!(secret_in(&headers, COOKIE), Some("x_Y"));
        assert_eq!(secret_in(&headers, HOST_COOKIE), None);
        let plain = cookie("s", 60, Tls::Without).unwrap();
        let text = plain.to_str().unwrap();
        assert!(
            text.contains("HttpOnly") && text.contains("SameSite=Strict") && text.contains("Path=/console")
        );
        assert!(!text.contains("Secure"), "over plain HTTP it would be lost");
        assert!(cookie("s", 60, Tls::Now).unwrap().to_str().unwrap().ends_with("; Secure"));
        let kept = cookie("s", 60, Tls::Always).unwrap();
        let kept = kept.to_str().unwrap();
        assert!(
            kept.starts_with("__Host-thresher-session=s; Path=/;") && kept.ends_with("; Secure"),
            "{kept}"
        );
        assert!(!kept.contains("Domain"), "{kept}");
    }
}
