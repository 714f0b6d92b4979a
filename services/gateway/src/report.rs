//! `/v1/sources/{source}/report`, `/v1/quirks`: the report card for the operator of a Source.

use ::report::{ReportCard, ReportError};
use api::Page;
use api::schema::one_of;
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use model::SourceId;
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::Schema;
use utoipa::{IntoParams, ToSchema};

use crate::api_error::ApiError;
use crate::extract::{Query, SourcePath};
use crate::state::Gateway;

/// Parameters of a report.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReportParams {
    /// The form of the report: a JSON object, or a text for the operator of the Source.
    #[serde(default)]
    #[param(schema_with = forms)]
    form: Form,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Form {
    #[default]
    Json,
    Text,
}

fn forms() -> Schema {
    one_of(&["json", "text"])
}

/// A quirk that reading a Source's documents may need.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Quirk)]
pub(crate) struct QuirkInfo {
    /// The stable name of the quirk.
    name: &'static str,
    /// What the quirk means.
    meaning: &'static str,
    /// Whether conclusions from a document with this quirk are doubtful.
    casts_doubt: bool,
    /// Whether a document with this quirk is rejected where the spec demands strict reading.
    refused_when_strict: bool,
    /// How strongly the specification forbids it: `must`, `should`, `hint`, `allowed`.
    severity: &'static str,
    /// The section of the specification.
    section: String,
    /// What the Source should change.
    advice: &'static str,
}

/// The report card of a Source: findings with their sections, coverage, fixity, problems. The gateway reads the whole
/// catalog for it, and sends no request to the Source.
#[utoipa::path(get, path = "/v1/sources/{source}/report", tag = "reports", params(SourcePath, ReportParams),
    responses((status = 200, description = "The report card", content(
        (serde_json::Value = "application/json"), (String = "text/plain")))))]
pub(crate) async fn report(
    State(gateway): State<Gateway>,
    SourcePath(source): SourcePath,
    Query(params): Query<ReportParams>,
) -> Result<Response, ApiError> {
    let card = card(&gateway, &source).await?;
    Ok(match params.form {
        Form::Json => Json(card).into_response(),
        Form::Text => ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], card.text()).into_response(),
    })
}

/// The report card of a Source. This reads the whole catalog.
pub(crate) async fn card(gateway: &Gateway, id: &SourceId) -> Result<ReportCard, ApiError> {
    let catalog = gateway.catalogs.get(id).await?;
    let entry = match gateway.views.sources.get(id) {
        Some(spec) => spec.entry.to_string(),
        // The Source was removed; the store still knows its entry URL.
        None => gateway
            .store
            .sources()
            .await?
            .into_iter()
            .find(|note| note.source == *id)
            .map_or(String::new(), |note| note.url),
    };
    ::report::gather(id, &entry, &catalog).await.map_err(|error| match error {
        ReportError::Catalog(error) => error.into(),
        ReportError::Spool(error) => ApiError::internal(error.to_string()),
    })
}

/// All quirks. Reports and the counters of runs say how often each was needed.
#[utoipa::path(get, path = "/v1/quirks", tag = "reports",
    responses((status = 200, description = "All items", body = Page<QuirkInfo>)))]
pub(crate) async fn quirks() -> Json<Page<QuirkInfo>> {
    Json(Page::all(::quirks::all().map(|quirk| QuirkInfo {
        name: quirk.name,
        meaning: quirk.meaning,
        casts_doubt: quirk.casts_doubt,
        refused_when_strict: quirk.refused_when_strict,
        severity: quirk.rule.map_or("hint", |rule| rule.force.as_str()),
        section: quirk.rule.map_or_else(String::new, |rule| rule.section.to_string()),
        advice: quirk.rule.map_or("", |rule| rule.advice),
    })))
}
