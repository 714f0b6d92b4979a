//! The console: HTML pages for operators. They show the same things as the API and call the same functions.
//!
//! The server renders each page completely, and pages work without JavaScript. With JavaScript, `htmx` refreshes the
//! parts that change. The path of a page is that of the API, so `/console/sources/{source}/runs` is the page of
//! `/v1/sources/{source}/runs`. A form may do what the API lets the token do. Each page has its own file; `auth` and
//! `session` authenticate the caller, and `layout` has what all pages share.

mod add;
mod assets;
mod auth;
mod bulk;
mod change;
mod channels;
mod chart;
mod deadline;
mod fleet;
mod form;
mod format;
mod history;
mod layout;
mod live;
mod plan;
mod problems;
mod report;
mod resources;
mod run;
mod runs;
mod session;
mod settings;
mod source;
mod source_health;
mod source_query;
mod sources;
mod spec_form;
mod spec_inputs;

use axum::response::Redirect;
use axum::routing::{get, post};
use axum::{Router, middleware};

use crate::api_error::ApiError;
use crate::content;
use crate::state::Gateway;

/// The path of the console's first page: the fleet.
const HOME: &str = "/console";
/// The path of the list of Sources.
const SOURCES: &str = "/console/sources";
/// The path of the list of runs.
const RUNS: &str = "/console/runs";

pub(crate) use fleet::sample as sample_fleet;

/// The routes of all pages, behind their authentication.
pub(crate) fn router(gateway: Gateway) -> Router {
    Router::new()
        .route(HOME, get(fleet::page))
        .route("/console/", get(async || Redirect::permanent(HOME)))
        .route(auth::SIGN_IN, get(session::page).post(session::sign_in))
        .route(auth::SIGN_OUT, post(session::sign_out))
        .route(auth::ASSETS, get(assets::asset))
        .route("/console/add", get(add::page))
        .route(SOURCES, get(sources::page).post(add::submit))
        .route(RUNS, get(fleet::runs_page))
        .route(bulk::runs::PATH, get(bulk::runs::page).post(bulk::runs::submit))
        .route(bulk::changes::PATH, get(bulk::changes::page).post(bulk::changes::submit))
        .route("/console/sources/{source}", get(source::page))
        .route("/console/sources/{source}/settings", get(change::page).post(change::submit))
        .route("/console/sources/{source}/delete", post(change::delete))
        .route("/console/plans/{plan}", get(plan::page))
        .route("/console/plans/{plan}/part", get(plan::part))
        .route("/console/sources/{source}/runs", post(runs::submit))
        .route("/console/sources/{source}/runs/{run}", get(run::page))
        .route("/console/sources/{source}/runs/{run}/progress", get(run::progress))
        .route("/console/sources/{source}/runs/{run}/pause", post(runs::pause))
        .route("/console/sources/{source}/runs/{run}/resume", post(runs::resume))
        .route("/console/sources/{source}/runs/{run}/cancel", post(runs::cancel))
        .route("/console/sources/{source}/runs/{run}/approve", post(runs::approve))
        .route("/console/sources/{source}/resources", get(resources::page))
        .route("/console/sources/{source}/resources/history", get(history::page))
        .route("/console/sources/{source}/resources/content", get(content::content))
        .route("/console/sources/{source}/problems", get(problems::page))
        .route("/console/sources/{source}/problems/retry", post(problems::retry))
        .route("/console/sources/{source}/problems/ignore", post(problems::ignore))
        .route("/console/sources/{source}/report", get(report::page))
        .route("/console/{*elsewhere}", get(async || ApiError::not_found("there is no such page")))
        .layer(middleware::from_fn_with_state(gateway.clone(), auth::authenticate))
        .with_state(gateway)
}
