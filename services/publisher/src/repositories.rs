//! Which sets a repository of OAI-PMH has: that of a set, and that of all sets a reader may see.

use axum::body::Body;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use publish::paths;

use crate::access::{Access, refusal};
use crate::answers::{not_found, unavailable};
use crate::oai::{self, Site};
use crate::several::Several;
use crate::shared::{OpenRecords, Shared};

/// Answers for the repository of one set. Its readers are known.
pub(crate) async fn of_set(
    shared: &Shared,
    uri: &Uri,
    method: &Method,
    headers: &HeaderMap,
    body: Body,
) -> Response {
    let OpenRecords::Harvest(harvest) = shared.records() else { return not_found() };
    let site = Site {
        url: shared.publication().base.url(paths::OAI),
        contact: shared.contact(),
        sets: vec![shared],
        is_of_one: true,
        turns: &harvest.oai_turns,
        metrics: shared.metrics(),
    };
    oai::answer(&site, method, uri.query(), headers, body).await
}

/// Answers for the repository of all sets. While one cannot be read, none is: a list without its records would look
/// complete.
pub(crate) async fn of_all(
    several: &Several,
    uri: &Uri,
    method: &Method,
    headers: &HeaderMap,
    body: Body,
) -> Response {
    let Some(mut all) = several.ready() else { return unavailable() };
    if let Some(tokens) = several.tokens() {
        let is_open = |shared: &Shared| tokens.access(headers, Some(&shared.publication().source));
        let refused = all.iter().map(is_open).find(|access| *access != Access::Granted);
        all.retain(|shared| is_open(shared) == Access::Granted);
        if all.is_empty() {
            return refused.and_then(refusal).unwrap_or_else(not_found);
        }
    }
    let oai = several.oai();
    let site = Site {
        url: oai.url.clone(),
        contact: &oai.contact,
        sets: all.iter().collect(),
        is_of_one: false,
        turns: &oai.turns,
        metrics: &oai.metrics,
    };
    oai::answer(&site, method, uri.query(), headers, body).await
}
