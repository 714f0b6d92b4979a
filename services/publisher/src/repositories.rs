//! Which sets a repository of OAI-PMH has: that of a set, and that of all sets a reader may read.

use axum::body::Body;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::Response;
use publish::paths;

use crate::answers::{finish, not_found, said, unavailable};
use crate::oai::{self, Site};
use crate::readers::Reader;
use crate::several::{Asked, Member, Several};
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
        server_turns: shared.oai_turns(),
        metrics: shared.metrics(),
    };
    oai::answer(&site, method, uri.query(), headers, body).await
}

/// Answers for the repository of all sets that the reader may read. While one of them cannot be read, none is: a list
/// without its records would look complete.
pub(crate) async fn of_all(
    several: &Several,
    uri: &Uri,
    method: &Method,
    reader: Reader<'_>,
    body: Body,
) -> Response {
    let (mut response, are_private) = match readable(several, reader) {
        Ok((sets, are_private)) => {
            let oai = several.oai();
            let site = Site {
                url: oai.url.clone(),
                contact: &oai.contact,
                sets: sets.iter().collect(),
                is_of_one: false,
                turns: &oai.turns,
                server_turns: &oai.server_turns,
                metrics: &oai.metrics,
            };
            (oai::answer(&site, method, uri.query(), reader.headers, body).await, are_private)
        }
        Err(answer) => (*answer, true),
    };
    finish(&mut response, are_private);
    response
}

/// The sets that a reader may read, and whether others read other ones; or the answer to one who may read none, or not
/// all of them now.
fn readable(several: &Several, reader: Reader<'_>) -> Result<(Vec<Shared>, bool), Box<Response>> {
    several.of_visible(reader, Asked::Content, |visible| {
        if visible.members.len() > several.oai().most {
            let text =
                "One repository would have too many Sources: each has one of its own, at oai below its folder.";
            return Err(Box::new(said(StatusCode::NOT_FOUND, text)));
        }
        let shared = |member: &Member| member.set.as_ref().map(|set| set.shared.clone());
        let sets: Option<Vec<Shared>> = visible.members.into_iter().map(shared).collect();
        sets.map(|sets| (sets, visible.are_private)).ok_or_else(|| Box::new(unavailable()))
    })
}
