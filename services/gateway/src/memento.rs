//! Memento (RFC 7089): the stored versions of a resource, by time. A TimeGate leads to the version of a moment, a
//! TimeMap lists all.
//!
//! The time of a version is the moment at which it became the stored one: what was stored here, not what the Source
//! had. So each answer is that of `thresher cat --at`.

use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::{SignedDuration, Timestamp};
use links::timemap::{LINK_FORMAT, Memento, Part, TimeMap};
use links::{Link, http_date, parse_http_date};
use model::moment::{self, Held};
use model::{ResourceRecord, ResourceUri, SourceId, Versions};

use crate::access;
use crate::api_error::{ApiError, default_error};
use crate::resources;
use crate::state::Gateway;
use crate::tokens::Caller;

mod urls;

use urls::MementoUrls;

/// Maximum versions of a page of a TimeMap.
const PAGE: usize = 5_000;

const ACCEPT_DATETIME: HeaderName = HeaderName::from_static("accept-datetime");
const MEMENTO_DATETIME: HeaderName = HeaderName::from_static("memento-datetime");

/// The Source and the resource that the path names: `/v1/sources/{source}/timegate/https://example.org/a?b=c`.
pub(crate) struct ResourcePath {
    source: SourceId,
    /// The rest of the path, as sent, with the query.
    rest: String,
}

impl FromRequestParts<Gateway> for ResourcePath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, gateway: &Gateway) -> Result<Self, ApiError> {
        let path = Path::<(String, String)>::from_request_parts(parts, gateway).await;
        let Path((source, _)) = path.map_err(|error| default_error(error.status()))?;
        let caller = Caller::from_request_parts(parts, gateway).await?;
        let source = access::source(gateway, &caller, &source).await?;
        // Decoding would change a URI that has encoded characters of its own.
        let sent = parts.uri.path_and_query().map_or("", |sent| sent.as_str());
        let rest = sent.split('/').skip(5).collect::<Vec<_>>().join("/");
        Ok(Self { source, rest })
    }
}

/// The TimeGate of a resource: leads to the version of `Accept-Datetime`, or to the newest one. Before the first
/// version it leads to the first. The time of a version is when it was stored here.
#[utoipa::path(get, path = "/v1/sources/{source}/timegate/{uri}", tag = "resources",
    params(
        ("source" = String, Path, description = "The name or the ID of the Source"),
        ("uri" = String, Path, description = "The URI of the resource, as the Source writes it or percent-encoded as a whole; its query may follow"),
        ("Accept-Datetime" = Option<String>, Header, description = "`Tue, 06 Jan 2026 09:00:00 GMT`")),
    responses((status = 302, description = "`Location` is the version", headers(
        ("Location" = String, description = "The version"),
        ("Vary" = String, description = "`accept-datetime`"),
        ("Link" = String, description = "original, timemap, first, last, prev, next")))))]
pub(crate) async fn timegate(
    State(gateway): State<Gateway>,
    path: ResourcePath,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let asked = accept_datetime(&headers)?;
    let uri = urls::decode(&path.rest)?;
    let (record, versions) = stored(&gateway, &path.source, &uri).await?;
    let held = moment::held(&record, &versions);
    let Some(last) = held.len().checked_sub(1) else { return Err(none_stored(&uri)) };
    let chosen = match asked {
        Some(asked) => held.partition_point(|version| version.from <= asked).saturating_sub(1),
        None => last,
    };
    let urls = MementoUrls::of(&gateway.settings, &headers, &path.source, &uri);
    let mut links = vec![urls.original(), urls.timemap_link()];
    for at in neighbours(chosen, last) {
        let mut rel = Vec::new();
        rel.extend((at == 0).then_some("first"));
        rel.extend((at + 1 == chosen).then_some("prev"));
        rel.extend((at == chosen + 1).then_some("next"));
        rel.extend((at == last).then_some("last"));
        rel.push("memento");
        let link = Link::new(urls.memento(held[at].from), rel.join(" "));
        links.push(link.with("datetime", datetime(held[at].from)));
    }
    let mut answered = HeaderMap::new();
    answered.extend(text(header::LOCATION, &urls.memento(held[chosen].from)));
    answered.insert(header::VARY, HeaderValue::from_static("accept-datetime"));
    answered.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    answered.extend(link_header(&links));
    Ok((StatusCode::FOUND, answered).into_response())
}

/// The TimeMap of a resource: its stored versions, the oldest first, in pages of 5,000.
#[utoipa::path(get, path = "/v1/sources/{source}/timemap/{uri}", tag = "resources",
    params(
        ("source" = String, Path, description = "The name or the ID of the Source"),
        ("uri" = String, Path, description = "The URI of the resource, as for the TimeGate; before it, the number of a page and a slash")),
    responses((status = 200, description = "One page", content_type = "application/link-format", body = String)))]
pub(crate) async fn timemap(
    State(gateway): State<Gateway>,
    path: ResourcePath,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (page, uri) = urls::split_page(&path.rest);
    let uri = urls::decode(uri)?;
    let (record, versions) = stored(&gateway, &path.source, &uri).await?;
    let held = moment::held(&record, &versions);
    if held.is_empty() {
        return Err(none_stored(&uri));
    }
    let urls = MementoUrls::of(&gateway.settings, &headers, &path.source, &uri);
    let Some(map) = page_of(&held, page, PAGE, &urls) else {
        return Err(ApiError::not_found(format!(
            "the TimeMap of {uri} has {} pages",
            held.len().div_ceil(PAGE)
        )));
    };
    let answered = [
        (header::CONTENT_TYPE, HeaderValue::from_static(LINK_FORMAT)),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
    ];
    Ok((answered, map.to_link_format()).into_response())
}

/// The version of a moment, and the headers that say so.
///
/// # Errors
/// [`ApiError::not_found`], with the reason that `thresher cat --at` gives.
pub(crate) fn version_at<'a>(
    uri: &ResourceUri,
    record: &'a ResourceRecord,
    versions: &'a Versions,
    at: Timestamp,
) -> Result<Held<'a>, ApiError> {
    let said = match moment::at(record, versions, at) {
        moment::At::Stored(bitstream, ..) => {
            let held = moment::held(record, versions).into_iter().rev();
            let from = held.map(|version| version.from).find(|from| *from <= at);
            return Ok(Held { bitstream, from: from.unwrap_or(bitstream.stored_at) });
        }
        moment::At::Lost { lost } => {
            format!("the version of {uri} of {at} was damaged, and discarded at {lost}")
        }
        moment::At::Gone { kept_from } => format!(
            "{uri}: the version of {at} is not kept; kept versions go back to {kept_from}. `keep_versions` of its \
             Source says how many are kept"
        ),
        moment::At::NotHeld => format!("{uri} was not stored at {at}; its history says more"),
    };
    Err(ApiError::not_found(said))
}

/// The headers of a version (RFC 7089, 4.2), or of the resource itself, which is no memento.
pub(crate) fn headers_of(
    gateway: &Gateway,
    headers: &HeaderMap,
    source: &SourceId,
    uri: &ResourceUri,
    version: Option<Timestamp>,
) -> HeaderMap {
    let urls = MementoUrls::of(&gateway.settings, headers, source, uri);
    let mut links = vec![urls.timegate_link(), urls.timemap_link()];
    let mut answered = HeaderMap::new();
    if let Some(from) = version {
        links.insert(0, urls.original());
        answered.extend(text(MEMENTO_DATETIME, &datetime(from)));
    }
    answered.extend(link_header(&links));
    answered
}

/// The record of a resource and its kept versions.
async fn stored(
    gateway: &Gateway,
    source: &SourceId,
    uri: &ResourceUri,
) -> Result<(ResourceRecord, Versions), ApiError> {
    let catalog = gateway.catalogs.get(source).await?;
    let record = catalog.resource(uri).await?.ok_or_else(|| resources::unknown(uri))?;
    let versions = catalog.versions(uri).await?.unwrap_or_default();
    Ok((record, versions))
}

fn none_stored(uri: &ResourceUri) -> ApiError {
    ApiError::not_found(format!("no version of {uri} is stored; its history says more"))
}

/// The requested moment. Only the one form that RFC 7089 allows is accepted.
fn accept_datetime(headers: &HeaderMap) -> Result<Option<Timestamp>, ApiError> {
    let mut values = headers.get_all(ACCEPT_DATETIME).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let asked = value.to_str().ok().filter(|_| values.next().is_none()).and_then(parse_http_date);
    asked.map(Some).ok_or_else(|| {
        ApiError::bad_request("Accept-Datetime is one time in GMT, such as: Tue, 06 Jan 2026 09:00:00 GMT")
    })
}

/// The versions that an answer of the TimeGate links to: the chosen one, those beside it, the first and the last.
fn neighbours(chosen: usize, last: usize) -> Vec<usize> {
    let mut all = vec![0, chosen.saturating_sub(1), chosen, (chosen + 1).min(last), last];
    all.dedup();
    all
}

/// A page of the TimeMap, the first being 1. None if there is no such page.
fn page_of(held: &[Held<'_>], page: usize, size: usize, urls: &MementoUrls) -> Option<TimeMap> {
    let part = |(number, page): (usize, &[Held<'_>])| Part {
        url: urls.timemap(number + 1),
        from: page.first().map(|version| whole_second(version.from)),
        until: page.last().map(|version| whole_second(version.from)),
    };
    let chunk = held.chunks(size).nth(page.checked_sub(1)?)?;
    let others = held.chunks(size).enumerate().filter(|(number, _)| number + 1 != page);
    let memento =
        |version: &Held<'_>| Memento { url: urls.memento(version.from), time: whole_second(version.from) };
    Some(TimeMap {
        original: Some(urls.uri().to_owned()),
        timegate: Some(urls.timegate()),
        this: Some(part((page - 1, chunk))),
        parts: others.map(part).collect(),
        mementos: chunk.iter().map(memento).collect(),
        has_first: page == 1,
        has_last: page * size >= held.len(),
        faults: links::Faults::default(),
    })
}

/// The time of a version in whole seconds, which is all that the protocol can say: the first at which it was stored. So
/// a request for that time gets this version.
fn whole_second(from: Timestamp) -> Timestamp {
    let begun = SignedDuration::from_nanos(from.subsec_nanosecond().into());
    if begun.is_zero() {
        return from;
    }
    let whole = from.checked_sub(begun).and_then(|whole| whole.checked_add(SignedDuration::from_secs(1)));
    whole.unwrap_or(from)
}

fn datetime(from: Timestamp) -> String {
    http_date(whole_second(from)).unwrap_or_default()
}

fn link_header(links: &[Link]) -> Option<(HeaderName, HeaderValue)> {
    let all: Vec<_> = links.iter().map(Link::to_string).collect();
    text(header::LINK, &all.join(", "))
}

fn text(name: HeaderName, value: &str) -> Option<(HeaderName, HeaderValue)> {
    Some((name, value.parse().ok()?))
}

#[cfg(test)]
mod tests;
