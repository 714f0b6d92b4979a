//! `thresher report`: writes a report for the Source's operator.

use std::io::Write as _;

use catalog::Lookups;
use report::copies::{Copies, Origins};
use report::{ReportCard, ReportError};
use store::{SourceMarker, Store};

use crate::cli::ReportArgs;
use crate::client::{self, OperatorClient, ReadFrom};
use crate::exit::{CommandResult, Exit, Failed, problem};
use crate::target;
use crate::terminal;

/// The most other Sources that are searched for copies of the same origins.
const OTHERS: usize = 20;

/// Runs the command.
pub(crate) async fn run(args: ReportArgs) -> CommandResult {
    let into = match client::read_from(&args.location)? {
        ReadFrom::Store(into) => into,
        ReadFrom::Gateway(client) => return from_gateway(&client, &args).await,
    };
    let (store, note, catalog) = target::open_one(&into, args.source.as_deref()).await?;
    let card = gathered(&note, &catalog).await?;
    let card = ReportCard { copies: copies(&store, &note, &catalog).await?, ..card };
    if args.json {
        terminal::json(&card)?;
    } else {
        terminal::text(&card.text())?;
    }
    Ok(Exit::Good)
}

async fn gathered(note: &SourceMarker, catalog: &Lookups) -> Result<ReportCard, Failed> {
    report::gather(&note.source, &note.url, catalog).await.map_err(|error| match error {
        ReportError::Catalog(error) => error.into(),
        ReportError::Spool(error) => problem(error.to_string()),
    })
}

/// What other Sources of the store brought from the same origins.
async fn copies(store: &Store, note: &SourceMarker, catalog: &Lookups) -> Result<Vec<Copies>, Failed> {
    let origins = Origins::of(catalog).await?;
    let mut found = Vec::new();
    if origins.is_empty() {
        return Ok(found);
    }
    let others = target::sources_in_use(store).await?;
    for other in others.into_iter().filter(|other| other.source != note.source).take(OTHERS) {
        let reader = target::read_catalog(store, &other.source).await?;
        found.extend(origins.in_source(&target::shown_url(&other.url), &reader).await?);
    }
    Ok(found)
}

/// The same card from a gateway.
async fn from_gateway(client: &OperatorClient, args: &ReportArgs) -> CommandResult {
    let about = client.selected_one(args.source.as_deref()).await?;
    let form = if args.json { "json" } else { "text" };
    let path = ["sources", about.id.as_str(), "report"];
    let card = client.get_bytes(&path, &[("form", form.to_owned())]).await?;
    if args.json {
        terminal::print(|out| out.write_all(&[&*card, b"\n"].concat()))?
    } else {
        terminal::text(&String::from_utf8_lossy(&card))?
    }
    Ok(Exit::Good)
}
