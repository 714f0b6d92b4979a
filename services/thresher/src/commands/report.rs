//! `thresher report`: writes a report for the Source's operator.

use std::io::Write as _;

use catalog::CatalogReader;
use model::SourceId;
use store::SourceMarker;
use url::Url;

use crate::cli::ReportArgs;
use crate::client::{self, OperatorClient, ReadFrom};
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target;
use crate::terminal::{self, Out};

/// Runs the command.
pub(crate) async fn run(args: ReportArgs) -> CommandResult {
    let into = match client::read_from(&args.location)? {
        ReadFrom::Store(into) => into,
        ReadFrom::Gateway(client) => return from_gateway(&client, &args).await,
    };
    let harvested = target::open_for_reading(&into).await?;
    let (note, catalog) = choose(&harvested.sources, args.source.as_deref(), &into)?;
    let card = report::gather(&note.source, &note.url, catalog).await?;
    if args.json {
        terminal::json(&card)?;
    } else {
        terminal::text(&card.text())?;
    }
    Ok(Exit::Good)
}

/// The same card from a gateway.
async fn from_gateway(client: &OperatorClient, args: &ReportArgs) -> CommandResult {
    let about = client.selected_one(args.source.as_deref()).await?;
    let form = if args.json { "json" } else { "text" };
    let path = ["sources", about.id.as_str(), "report"];
    let mut card = client.get_bytes(&path, &[("form", form.to_owned())]).await?;
    if args.json {
        card.push(b'\n');
    }
    let mut out = Out::new();
    if args.json {
        out.write_all(&card)?
    } else {
        out.text(&String::from_utf8_lossy(&card))?
    }
    out.finish()?;
    Ok(Exit::Good)
}

/// The Source of the report; a single one need not be named.
fn choose<'a>(
    sources: &'a [(SourceMarker, CatalogReader)],
    asked: Option<&str>,
    into: &str,
) -> Result<&'a (SourceMarker, CatalogReader), Failed> {
    let names = || sources.iter().map(|(note, _)| note.source.as_str()).collect::<Vec<_>>().join(", ");
    match (asked, sources) {
        (None, [only]) => Ok(only),
        (None, _) => Err(usage(format!(
            "{into} has {} Sources; name one by its URL or ID: {}",
            sources.len(),
            names()
        ))),
        (Some(asked), _) => {
            let by_url = Url::parse(asked).ok().map(|url| SourceId::of_entry(&url));
            let is_asked =
                |note: &SourceMarker| note.source.as_str() == asked || Some(&note.source) == by_url.as_ref();
            sources
                .iter()
                .find(|(note, _)| is_asked(note))
                .ok_or_else(|| usage(format!("{into} has no Source {asked}; name one of: {}", names())))
        }
    }
}
