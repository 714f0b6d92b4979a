//! Authentication: every request needs a token.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::api_error::{ApiError, render};
use crate::client::ClientAddress;
use crate::host;
use crate::metrics::Measured;
use crate::state::Gateway;
use crate::tokens::{Caller, Role};
use crate::wrong_tokens::TokenEndpoint;

/// Authenticates a request of the API, and counts it, refused or not.
pub(crate) async fn authenticate(
    State(gateway): State<Gateway>,
    client: ClientAddress,
    mut request: Request,
    next: Next,
) -> Response {
    let measured = Measured::begin(&request);
    let path = request.uri().path().to_owned();
    let response = match caller(&gateway, client, request.headers(), &measured) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    };
    let response = render(response, &path);
    measured.count(&gateway.metrics, response.status());
    response
}

fn caller(
    gateway: &Gateway,
    client: ClientAddress,
    headers: &HeaderMap,
    request: &Measured,
) -> Result<Caller, ApiError> {
    host::check(&gateway.settings, headers)?;
    let token = bearer(headers);
    let found = check_token(gateway, TokenEndpoint::Api, client, token, |token| gateway.tokens.find(token))?;
    let caller =
        found.ok_or_else(|| unauthorized("thresher", "send a token: Authorization: Bearer …", token))?;
    count_request(&caller)?;
    require_role(&caller, required_role(request.method(), request.route()))?;
    Ok(caller)
}

/// Finds whom a token identifies, unless the client has shown too many wrong tokens. Counts a wrong one.
///
/// # Errors
/// [`ApiError::too_many`].
pub(crate) fn check_token<T>(
    gateway: &Gateway,
    endpoint: TokenEndpoint,
    client: ClientAddress,
    token: Option<&str>,
    find: impl FnOnce(Option<&str>) -> Option<T>,
) -> Result<Option<T>, ApiError> {
    if token.is_none() {
        return Ok(find(None));
    }
    gateway.wrong_tokens.check(endpoint, client).map_err(|seconds| {
        let said = format!(
            "too many tokens came from this address that are not known here; come again in {seconds} s"
        );
        ApiError::too_many(said).after_seconds(seconds)
    })?;
    let found = find(token);
    if found.is_none() {
        gateway.metrics.wrong_token(endpoint);
        gateway.wrong_tokens.note(endpoint, client);
    }
    Ok(found)
}

/// The error of a request with an unknown token, or without one.
pub(crate) fn unauthorized(realm: &str, hint: &str, token: Option<&str>) -> ApiError {
    let mut challenge = format!("Bearer realm=\"{realm}\"");
    let mut said = hint;
    if token.is_some() {
        challenge.push_str(", error=\"invalid_token\"");
        said = "this token is not known here, or not any more";
    }
    let error = ApiError::unauthorized(said);
    match challenge.parse() {
        Ok(challenge) => error.header(header::WWW_AUTHENTICATE, challenge),
        Err(_) => error,
    }
}

/// Counts a request of the caller.
///
/// # Errors
/// When it exceeds the rate of the caller.
pub(crate) fn count_request(caller: &Caller) -> Result<(), ApiError> {
    caller.count_request().map_err(|seconds| too_many(&format!("the token {}", caller.name()), seconds))
}

/// The error of one request too many.
pub(crate) fn too_many(sender: &str, seconds: u64) -> ApiError {
    let said = format!("{sender} has sent more requests than are taken; come again in {seconds} s");
    ApiError::too_many(said).after_seconds(seconds)
}

/// Checks that the caller has the rights of this role.
pub(crate) fn require_role(caller: &Caller, role: Role) -> Result<(), ApiError> {
    if caller.role() >= role {
        return Ok(());
    }
    let name = caller.name();
    Err(ApiError::forbidden(format!("the token {name} may not do that: it needs the role {role}")))
}

/// The bearer token of a request (RFC 6750).
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim())
}

/// The role that a request needs. Routes that are not named here change something, and need the role with all rights.
pub(crate) fn required_role(method: &Method, route: &str) -> Role {
    // The paths of the console match those of the API.
    let path = route.strip_prefix("/v1").or_else(|| route.strip_prefix("/console")).unwrap_or(route);
    let below = |part: &str| {
        path.strip_prefix("/sources/{source}")
            .is_some_and(|rest| rest.strip_prefix(part).is_some_and(is_whole))
    };
    if matches!(*method, Method::GET | Method::HEAD) {
        Role::Read
    } else if *method == Method::POST
        && (below("/runs") || below("/backfill") || below("/problems") || path == "/runs:batch")
    {
        Role::Operate
    } else {
        Role::Admin
    }
}

fn is_whole(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('/')
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;
    use crate::metrics::UNMATCHED;

    #[test]
    fn looking_needs_read_runs_and_problems_operate_and_all_else_admin() {
        let role = |method: Method, route: &str| required_role(&method, route);
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
        assert_eq!(role(Method::POST, "/console/runs:batch"), Role::Operate);
        assert_eq!(role(Method::POST, "/v1/sources/{source}/backfill"), Role::Operate);
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
