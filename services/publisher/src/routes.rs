//! Which request is for what.

use std::net::IpAddr;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Router};
use percent_encoding::percent_decode_str;
use publish::paths;

use crate::answers::{finish, not_found, unavailable};
use crate::hub;
use crate::readers::{Reader, Readers};
use crate::set::Set;
use crate::several::{Found, Member, Several};
use crate::shared::OpenRecords;
use crate::{documents, files, repositories, resources, topic};

/// The longest path that is looked at: longer than any that is published.
const LONGEST_PATH: usize = 8 * 1024;

/// What requests reach.
#[derive(Clone)]
pub(crate) enum Routes {
    /// A publication, and its readers.
    One(Set, Readers),
    /// The sets of several.
    Several(Several),
}

/// The address of the client of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAddress(pub(crate) IpAddr);

pub(crate) fn router(routes: Routes) -> Router {
    Router::new().fallback(answer).with_state(routes)
}

async fn answer(
    State(routes): State<Routes>,
    Extension(ClientAddress(address)): Extension<ClientAddress>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let reader = Reader { address, headers: &headers };
    let several = match routes {
        Routes::One(set, readers) => {
            let path = path_of(uri.path(), set.shared.publication().base.path());
            return answer_of(&set, &readers, path, &uri, &method, reader, body).await;
        }
        Routes::Several(several) => several,
    };
    let path = path_of(uri.path(), several.base().path());
    let found = path.as_deref().and_then(|path| several.find(path));
    let Some(Found { member, path }) = found.or_else(|| hub_of(&several, uri.path())) else {
        let is_oai = path.as_deref() == Some(paths::OAI);
        if !is_understood(&method, is_oai) {
            return not_understood(is_oai);
        }
        if is_oai {
            return repositories::of_all(&several, &uri, &method, reader, body).await;
        }
        return several.answer(path.as_deref(), &method, reader);
    };
    let Member { marker, readers, set } = member;
    match set {
        Some(set) => answer_of(&set, &readers, Some(path), &uri, &method, reader, body).await,
        None => readers.refusal(reader, Some(&marker)).unwrap_or_else(unavailable),
    }
}

/// A set's hub, where hubs have a base of their own.
fn hub_of(several: &Several, path: &str) -> Option<Found> {
    let path = path_of(path, several.hubs()?.path())?;
    several.find(&path).filter(|found| found.path == paths::HUB)
}

/// The answer of a publication, for a path below its base.
async fn answer_of(
    Set { shared, hub }: &Set,
    readers: &Readers,
    path: Option<String>,
    uri: &Uri,
    method: &Method,
    reader: Reader<'_>,
    body: Body,
) -> Response {
    let headers = reader.headers;
    let hub = hub.as_ref().filter(|_| path.as_deref() == Some(paths::HUB));
    let is_oai = path.as_deref() == Some(paths::OAI);
    let takes_forms = hub.is_some() || is_oai;
    if !is_understood(method, takes_forms) {
        return not_understood(takes_forms);
    }
    let source = &shared.publication().source;
    if let Some(refused) = readers.refusal(reader, Some(source)) {
        return refused;
    }
    if let Some(hub) = hub {
        if !shared.is_published().await {
            return unavailable();
        }
        return hub::answer(hub, method, headers, readers.admission(headers), body).await;
    }
    let mut response = match path {
        // Its first publication is not made yet.
        Some(_) if !shared.is_published().await => unavailable(),
        Some(path) if path == paths::TOPIC => topic::answer(shared, method),
        Some(_) if is_oai => repositories::of_set(shared, uri, method, headers, body).await,
        Some(path) if paths::of_set(&path).is_some() => {
            documents::answer_of_set(shared, &path, method, headers).await
        }
        Some(path) if paths::is_document(&path) => documents::answer(shared, &path, method, headers).await,
        Some(path) => match shared.records() {
            OpenRecords::Harvest(harvest) => resources::answer(shared, harvest, &path, method, headers).await,
            OpenRecords::Files(all) => files::answer(shared, all, &path, method, headers).await,
        },
        None => not_found(),
    };
    // Who asks by OAI-PMH is to be answered by it, and not led away.
    if let Some(link) = shared.link().filter(|_| !is_oai) {
        response.headers_mut().append(header::LINK, link);
    }
    finish(&mut response, readers.are_some());
    response
}

fn is_understood(method: &Method, takes_forms: bool) -> bool {
    matches!(*method, Method::GET | Method::HEAD) || takes_forms && *method == Method::POST
}

fn not_understood(takes_forms: bool) -> Response {
    let allow = if takes_forms { "GET, HEAD, POST" } else { "GET, HEAD" };
    let allow = [(header::ALLOW, HeaderValue::from_static(allow))];
    let text = "This method is not understood here.\n";
    (StatusCode::METHOD_NOT_ALLOWED, allow, text).into_response()
}

/// The path below the base. None for a path elsewhere.
fn path_of(path: &str, base: &str) -> Option<String> {
    if path.len() > LONGEST_PATH {
        return None;
    }
    let decoded = percent_decode_str(path).decode_utf8().ok()?;
    // The well-known place belongs to the host, and robots.txt too (§6.3.1).
    let of_host = decoded.strip_prefix('/')?;
    if of_host == paths::DESCRIPTION || of_host == paths::ROBOTS {
        return Some(of_host.to_owned());
    }
    let below = decoded.strip_prefix(base)?;
    Some(if below.is_empty() { paths::PAGE.to_owned() } else { below.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_below_the_base_and_the_well_known_ones_from_the_host() {
        let path = |path: &str| path_of(path, "/one/");
        assert_eq!(path("/one/changelist.xml").as_deref(), Some("changelist.xml"));
        assert_eq!(path("/one/").as_deref(), Some("index.html"));
        assert_eq!(
            path("/one/resources/http/2/e.org/a%213Fb").as_deref(),
            Some("resources/http/2/e.org/a!3Fb")
        );
        assert_eq!(path("/.well-known/resourcesync").as_deref(), Some(".well-known/resourcesync"));
        for elsewhere in
            ["/", "/two/changelist.xml", "/one", "/one%ff/", "*", &format!("/one/{}", "x".repeat(9_000))]
        {
            assert_eq!(path(elsewhere), None, "{elsewhere}");
        }
    }
}
