//! `/v1/sources/{source}/problems`: recorded failures, their reasons, and since when they exist.

use api::{Page, ProblemGroup, ProblemGroups, SourceProblem};
use axum::Json;
use axum::extract::State;
use futures::TryStreamExt;
use model::{ProblemReason, ProblemRecord, Subject};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api_error::ApiError;
use crate::extract::{Query, SourcePath};
use crate::pagination;
use crate::state::Gateway;

/// The kind of cursors.
const KIND: &str = "problems";
/// Problems that are scanned for one page. If a filter matches few of them, a page may have fewer items or none, and
/// still a `next`.
const MOST_SCANNED: usize = 20_000;

/// Parameters of the list of problems.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ProblemParams {
    /// Only problems with URIs that begin with this.
    pub(crate) prefix: Option<String>,
    /// Only problems with these reasons, separated by commas.
    pub(crate) reason: Option<String>,
    /// Only problems with these kinds of subject (resource, document, entry, message), separated by commas.
    pub(crate) kind: Option<String>,
    /// Ignored problems instead of open ones.
    #[serde(default)]
    pub(crate) ignored: bool,
    /// The most items, 1 to 1000.
    #[param(minimum = 1, maximum = 1000, default = 100)]
    pub(crate) limit: Option<u16>,
    /// The position of the next page: `next` of the previous page.
    pub(crate) cursor: Option<String>,
}

/// Parameters of the groups.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct GroupParams {
    /// Only problems with URIs that begin with this.
    pub(crate) prefix: Option<String>,
    /// Ignored problems instead of open ones.
    #[serde(default)]
    pub(crate) ignored: bool,
}

/// The filter of a list.
struct ProblemFilter {
    prefix: String,
    reasons: Vec<ProblemReason>,
    kinds: Vec<String>,
    ignored: bool,
}

impl ProblemFilter {
    fn new(params: &ProblemParams) -> Result<Self, ApiError> {
        let parts = |text: &Option<String>| -> Vec<String> {
            text.iter().flat_map(|text| text.split(',')).map(|part| part.trim().to_owned()).collect()
        };
        let reasons = parts(&params.reason).iter().map(|reason| reason.parse()).collect::<Result<_, _>>();
        let kinds = parts(&params.kind);
        if let Some(other) = kinds.iter().find(|kind| !Subject::KINDS.contains(&kind.as_str())) {
            return Err(ApiError::bad_request(format!(
                "kind must be one of {}, not {other:?}",
                Subject::KINDS.join(", ")
            )));
        }
        Ok(Self {
            prefix: params.prefix.clone().unwrap_or_default(),
            reasons: reasons.map_err(|error| ApiError::bad_request(format!("{error}")))?,
            kinds,
            ignored: params.ignored,
        })
    }

    fn matches(&self, subject: &Subject, record: &ProblemRecord) -> bool {
        record.ignored.is_some() == self.ignored
            && subject.uri().starts_with(&self.prefix)
            && (self.reasons.is_empty() || self.reasons.contains(&record.reason))
            && (self.kinds.is_empty() || self.kinds.iter().any(|kind| kind == subject.kind()))
    }
}

/// Problems of documents, then of entries, messages and resources, each in the order of their URIs.
#[utoipa::path(get, path = "/v1/sources/{source}/problems", tag = "problems",
    params(SourcePath, ProblemParams),
    responses((status = 200, description = "One page; it may have fewer items than `limit`, and still a `next`",
        body = Page<SourceProblem>)))]
pub(crate) async fn list(
    State(gateway): State<Gateway>,
    SourcePath(source): SourcePath,
    Query(params): Query<ProblemParams>,
) -> Result<Json<Page<SourceProblem>>, ApiError> {
    let filter = ProblemFilter::new(&params)?;
    let limit = pagination::limit(params.limit)?;
    let behind = pagination::decode_cursor(KIND, params.cursor.as_deref())?;
    let behind =
        behind.map(|text| subject(&text).ok_or_else(|| ApiError::bad_request("cursor is none of this list")));
    let catalog = gateway.catalogs.get(&source).await?;
    let mut problems = catalog.scan_problems_after(behind.transpose()?.as_ref()).await?;
    let mut items = Vec::new();
    let mut scanned = 0;
    let mut last = None;
    while let Some((subject, record)) = problems.try_next().await? {
        if items.len() == limit || scanned == MOST_SCANNED {
            let next = last.map(|last| pagination::cursor(KIND, &name(&last)));
            return Ok(Json(Page { items, next }));
        }
        scanned += 1;
        if filter.matches(&subject, &record) {
            items.push(SourceProblem::new(&subject, record));
        }
        last = Some(subject);
    }
    Ok(Json(Page { items, next: None }))
}

/// The number of problems by reason and kind. The gateway reads all problems for it.
#[utoipa::path(get, path = "/v1/sources/{source}/problems/groups", tag = "problems",
    params(SourcePath, GroupParams),
    responses((status = 200, description = "All groups", body = Page<ProblemGroup>)))]
pub(crate) async fn groups(
    State(gateway): State<Gateway>,
    SourcePath(source): SourcePath,
    Query(params): Query<GroupParams>,
) -> Result<Json<Page<ProblemGroup>>, ApiError> {
    let params = ProblemParams { prefix: params.prefix, ignored: params.ignored, ..ProblemParams::default() };
    let filter = ProblemFilter::new(&params)?;
    let catalog = gateway.catalogs.get(&source).await?;
    let mut problems = catalog.scan_problems().await?;
    let mut groups = ProblemGroups::default();
    while let Some((subject, record)) = problems.try_next().await? {
        if filter.matches(&subject, &record) {
            groups.count(&subject, &record);
        }
    }
    Ok(Json(Page::all(groups.into_vec())))
}

/// A subject as text, and back.
fn name(subject: &Subject) -> String {
    format!("{} {}", subject.kind(), subject.uri())
}

fn subject(name: &str) -> Option<Subject> {
    let (kind, uri) = name.split_once(' ')?;
    Subject::of(kind, uri.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_finds_the_subject_again() {
        for found in [
            Subject::Resource("https://e.org/a b".to_owned()),
            Subject::Entry("https://e.org/l#3:4".to_owned()),
        ] {
            assert_eq!(subject(&name(&found)), Some(found));
        }
        assert_eq!(subject("planet mars"), None);
    }

    #[test]
    fn unknown_reasons_and_kinds_are_refused_with_those_that_there_are() {
        let with = |reason: &str, kind: &str| {
            let reason = Some(reason.to_owned());
            let kind = Some(kind.to_owned());
            ProblemFilter::new(&ProblemParams { reason, kind, ..ProblemParams::default() })
        };
        assert!(with("timeout, dns", "resource,entry").is_ok());
        assert!(with("bored", "resource").is_err());
        assert!(with("timeout", "planet").is_err());
    }
}
