//! The API as a whole: its routes and its OpenAPI description.

use api::{FieldError, Problem};
use axum::routing::get;
use axum::{Json, Router, middleware};
use utoipa::OpenApi as _;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{OpenApi, Ref, RefOr};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api_error::{ApiError, PROBLEM_JSON};
use crate::inbox::{self, Inbox};
use crate::state::Gateway;
use crate::{
    auth, batch, console, content, events, memento, plans, problem_actions, problems, report, resources,
    runs, sources, subscriptions, works,
};

const DESCRIPTION: &str = "Sources, runs, stored resources and problems of a fleet. Every request needs a token: `Authorization: Bearer …`. \
    Errors are problem documents (RFC 9457). Lists come in pages.";

/// The status for a head that is too long. The server refuses it before a handler runs, so the response has no body.
const TOO_LONG: &str = "431";

#[derive(utoipa::OpenApi)]
#[openapi(
    info(title = "Thresher", description = DESCRIPTION, license(name = "Apache-2.0", identifier = "Apache-2.0")),
    components(schemas(Problem, FieldError)),
    // Their routes have a wildcard, which a description cannot have.
    paths(memento::timegate, memento::timemap),
    tags(
        (name = "sources", description = "Sources and their specs"),
        (name = "runs", description = "Runs and their progress"),
        (name = "resources", description = "Resources and their stored bytes"),
        (name = "problems", description = "Problems, and actions on them"),
        (name = "reports", description = "Report cards for the operators of Sources"),
        (name = "description", description = "This description"),
    )
)]
struct Described;

/// The OpenAPI 3.1 description of the API, generated from the handlers.
pub fn openapi() -> OpenApi {
    let mut described = routes().into_openapi();
    for item in described.paths.paths.values_mut() {
        operations(item).for_each(add_errors);
    }
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("A token of the gateway's file"))
        .build();
    described.components.get_or_insert_default().add_security_scheme("token", SecurityScheme::Http(scheme));
    described.security = Some(vec![SecurityRequirement::new("token", [""; 0])]);
    described
}

/// All routes: the API behind its authentication, the console behind its own.
pub(crate) fn router(gateway: Gateway, inbox: Option<Inbox>) -> Router {
    let (router, _) = routes().split_for_parts();
    router
        .fallback(async || {
            ApiError::not_found("nothing is served at this path; /v1/openapi.json describes what is")
        })
        .layer(middleware::from_fn_with_state(gateway.clone(), auth::authenticate))
        .with_state(gateway.clone())
        .merge(console::router(gateway))
        .merge(inbox.map(inbox::router).unwrap_or_default())
}

fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::with_openapi(Described::openapi())
        .routes(routes!(sources::list, sources::create))
        .routes(routes!(sources::read, sources::change, sources::delete))
        .routes(routes!(batch::sources))
        .routes(routes!(batch::runs))
        .routes(routes!(subscriptions::list))
        .routes(routes!(plans::ask))
        .routes(routes!(plans::read))
        .routes(routes!(runs::all))
        .routes(routes!(runs::list, runs::submit))
        .routes(routes!(runs::backfill::submit))
        .routes(routes!(runs::moving::begin))
        .routes(routes!(runs::moving::back))
        .routes(routes!(runs::read))
        .routes(routes!(runs::transitions::pause))
        .routes(routes!(runs::transitions::resume))
        .routes(routes!(runs::transitions::cancel))
        .routes(routes!(runs::transitions::approve))
        .routes(routes!(events::events))
        .routes(routes!(resources::list))
        .routes(routes!(resources::history))
        .routes(routes!(works::list))
        .routes(routes!(content::content))
        .route("/v1/sources/{source}/timegate/{*uri}", get(memento::timegate))
        .route("/v1/sources/{source}/timemap/{*uri}", get(memento::timemap))
        .routes(routes!(problems::list))
        .routes(routes!(problems::groups))
        .routes(routes!(problem_actions::retry))
        .routes(routes!(problem_actions::ignore))
        .routes(routes!(problem_actions::waiting))
        .routes(routes!(report::report))
        .routes(routes!(report::quirks))
        .routes(routes!(description))
}

/// This OpenAPI description.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "description",
    responses((status = 200, description = "OpenAPI 3.1", body = serde_json::Value)))]
async fn description() -> Json<OpenApi> {
    Json(openapi())
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post, &mut item.put, &mut item.delete].into_iter().filter_map(Option::as_mut)
}

/// Adds the errors that any request may get, and gives all of them the same form.
fn add_errors(operation: &mut Operation) {
    let has_parameters = operation.parameters.as_ref().is_some_and(|parameters| !parameters.is_empty());
    let has_body = operation.request_body.is_some();
    let always = [
        ("401", "The token is missing or unknown"),
        ("403", "The token lacks the role"),
        ("421", "Without tokens, the gateway serves only this machine's own names"),
        ("429", "Too many requests with this token, or too many wrong tokens"),
        ("500", "Internal error"),
        ("503", "A dependency is unreachable"),
    ];
    let of_parameters = [
        ("400", "The request is malformed"),
        ("404", "Not found"),
        (TOO_LONG, "The head of the request is longer than 32 KiB"),
    ];
    let of_bodies = [
        ("400", "The body is not JSON"),
        ("408", "The body came too slowly"),
        ("413", "The body is too large"),
        ("415", "The body has another media type"),
        ("422", "A field is invalid"),
    ];
    let of_parameters = of_parameters.into_iter().filter(|_| has_parameters);
    let of_bodies = of_bodies.into_iter().filter(|_| has_body);
    for (status, description) in always.into_iter().chain(of_parameters).chain(of_bodies) {
        let response = || RefOr::T(ResponseBuilder::new().description(description).build());
        operation.responses.responses.entry(status.to_owned()).or_insert_with(response);
    }
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response
            && status.as_str() >= "400"
            && status != TOO_LONG
        {
            let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
            response.content.insert(PROBLEM_JSON.to_owned(), RefOr::T(problem));
        }
    }
}

#[cfg(test)]
mod tests;
