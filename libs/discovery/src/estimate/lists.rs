//! Estimates lists of an OAI-PMH repository from the first page of their identifiers.

use model::{OaiList, SetId};
use oaipmh::{BaseUrl, Granularity, Item, Request, Selection, Window};
use planning::Cost;
use planning::oai::{floor, next_from};
use resourcesync::Capability;
use url::Url;
use web::Client;

use super::StrategyEstimate;
use crate::error::DiscoverError;
use crate::oai::Asked;

/// What a full list and a list of changes would read. Returns them and the requests made.
///
/// # Errors
/// When the repository does not answer.
pub(crate) async fn lists(
    client: &Client,
    id: &SetId,
    list: &OaiList,
) -> Result<(Vec<StrategyEstimate>, u64), DiscoverError> {
    let Some(base) = Url::parse(&list.base).ok().and_then(|base| BaseUrl::new(base).ok()) else {
        return Ok((Vec::new(), 0));
    };
    let mut asked = Asked::of(client, &base);
    let mut estimates = Vec::new();
    let from = next_from(&list.progress);
    let windows = [
        (Capability::ResourceList, Some(Window::ALL)),
        (Capability::ChangeList, from.map(|from| Window::since(floor(from, list.by_seconds)))),
    ];
    for (capability, window) in windows {
        let Some(window) = window else { continue };
        let selection = Selection { set: list.set.clone(), window, ..Selection::all(list.prefix.clone()) };
        let granularity = if list.by_seconds { Granularity::Second } else { Granularity::Day };
        let (items, answer) = asked.ask(&Request::list_identifiers(selection, granularity)).await?;
        let on_page =
            items.iter().filter(|item| matches!(item, Item::Header(_) | Item::Bad(_))).count() as u64;
        let told = answer.resumption.as_ref().and_then(|resumption| resumption.complete_list_size);
        let listed = told.unwrap_or(on_page).max(on_page);
        estimates.push(StrategyEstimate {
            set: id.clone(),
            capability,
            documents: listed.div_ceil(on_page.max(1)).max(1),
            listed,
            stored: 0,
            // The pages bring the records.
            cost: Cost { requests: 0, bytes: None },
            time: None,
            chosen: false,
        });
    }
    Ok((estimates, asked.requests))
}
