//! Authentication: every request needs a token.

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;

use crate::client::ClientAddress;
use crate::host;
use crate::refusal::{Refusal, render};
use crate::state::Gateway;
use crate::tokens::{Caller, Role};
use crate::wrong_tokens::Door;

/// The metrics label of requests to paths without a route. Their number is unbounded.
pub(crate) const UNMATCHED: &str = "unmatched";

/// Lets a request in or refuses it, and counts it in both cases.
pub(crate) async fn door(
    State(gateway): State<Gateway>,
    client: ClientAddress,
    mut request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let route = matched.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
    let response = match let_in(&gateway, client, request.headers(), &method, route) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    };
    let response = render(response, &path);
    gateway.metrics().count(&method, route, response.status(), began.elapsed());
    response
}

fn let_in(
    gateway: &Gateway,
    client: ClientAddress,
    headers: &HeaderMap,
    method: &Method,
    route: &str,
) -> Result<Caller, Refusal> {
    host::check(gateway, headers)?;
    let token = bearer(headers);
    if token.is_some() {
        may_show_token(gateway, Door::Api, client)?;
    }
    let Some(caller) = gateway.tokens().find(token) else {
        if token.is_some() {
            token_was_wrong(gateway, Door::Api, client);
        }
        let (said, challenge) = match token {
            Some(_) => (
                "this token is not known here, or not any more",
                "Bearer realm=\"thresher\", error=\"invalid_token\"",
            ),
            None => ("send a token: Authorization: Bearer …", "Bearer realm=\"thresher\""),
        };
        let challenge = HeaderValue::from_static(challenge);
        return Err(Refusal::unauthorized(said).header(header::WWW_AUTHENTICATE, challenge));
    };
    count(&caller)?;
    permit(&caller, needed(method, route))?;
    Ok(caller)
}

/// Checks that a client may show a token.
///
/// # Errors
/// [`Refusal::too_many`], where it has shown too many wrong ones.
pub(crate) fn may_show_token(gateway: &Gateway, door: Door, client: ClientAddress) -> Result<(), Refusal> {
    gateway.wrong_tokens().check(door, client).map_err(|seconds| {
        let said = format!(
            "too many tokens came from this address that are not known here; come again in {seconds} s"
        );
        Refusal::too_many(said).after_seconds(seconds)
    })
}

/// Counts an unknown token.
pub(crate) fn token_was_wrong(gateway: &Gateway, door: Door, client: ClientAddress) {
    gateway.metrics().wrong_token(door);
    gateway.wrong_tokens().note(door, client);
}

/// Counts a request of the caller.
///
/// # Errors
/// When it exceeds the rate of the caller.
pub(crate) fn count(caller: &Caller) -> Result<(), Refusal> {
    caller.count_request().map_err(|seconds| {
        let name = caller.name();
        let said =
            format!("the token {name} has sent more requests than are taken; come again in {seconds} s");
        Refusal::too_many(said).after_seconds(seconds)
    })
}

/// Checks that the caller has the rights of this role.
pub(crate) fn permit(caller: &Caller, role: Role) -> Result<(), Refusal> {
    if caller.role() >= role {
        return Ok(());
    }
    let (name, role) = (caller.name(), role.as_str());
    Err(Refusal::forbidden(format!("the token {name} may not do that: it needs the role {role}")))
}

/// The bearer token of a request (RFC 6750).
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim())
}

/// The role that a request needs. Routes that are not named here change something, and need the role with all rights.
pub(crate) fn needed(method: &Method, route: &str) -> Role {
    // The paths of the console match those of the API.
    let path = route.strip_prefix("/v1").or_else(|| route.strip_prefix("/console")).unwrap_or(route);
    let below = |part: &str| {
        path.strip_prefix("/sources/{source}")
            .is_some_and(|rest| rest.strip_prefix(part).is_some_and(is_whole))
    };
    if matches!(*method, Method::GET | Method::HEAD) {
        Role::Read
    } else if *method == Method::POST && (below("/runs") || below("/problems") || path == "/runs:batch") {
        Role::Operate
    } else {
        Role::Admin
    }
}

fn is_whole(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('/')
}

impl Role {
    /// The name of the role in the tokens file.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Operate => "operate",
            Self::Admin => "admin",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_needs_read_runs_and_problems_operate_and_all_else_admin() {
        let role = |method: Method, route: &str| needed(&method, route);
        assert_eq!(role(Method::GET, "/v1/sources"), Role::Read);
        assert_eq!(role(Method::HEAD, "/v1/sources/{source}/resources/content"), Role::Read);
        assert_eq!(role(Method::POST, "/v1/sources/{source}/runs"), Role::Operate);
        assert_eq!(role(Method::POST, "/v1/sources/{source}/runs/{run}/cancel"), Role::Operate);
        assert_eq!(role(Method::POST, "/v1/sources/{source}/problems/ignore"), Role::Operate);
        assert_eq!(role(Method::POST, "/console/sources/{source}/problems/ignore"), Role::Operate);
        assert_eq!(role(Method::POST, "/console/sources"), Role::Admin);
        assert_eq!(role(Method::POST, "/v1/sources"), Role::Admin);
        assert_eq!(role(Method::POST, "/v1/sources:batch"), Role::Admin);
        assert_eq!(role(Method::POST, "/v1/runs:batch"), Role::Operate);
        assert_eq!(role(Method::POST, "/v1/sources/{source}/runsaway"), Role::Admin);
        assert_eq!(role(Method::PUT, "/v1/sources/{source}"), Role::Admin);
        assert_eq!(role(Method::DELETE, "/v1/sources/{source}/runs"), Role::Admin);
        assert_eq!(role(Method::POST, UNMATCHED), Role::Admin);
    }

    #[test]
    fn only_a_bearer_token_is_a_token() {
        let token = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(value));
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(token("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(token("bearer  abc").as_deref(), Some("abc"));
        assert_eq!((token("Basic abc"), token("abc")), (None, None));
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
