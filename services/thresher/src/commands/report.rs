//! `thresher report`: writes a report for the Source's operator.

use std::io::Write as _;

use crate::cli::ReportArgs;
use crate::client::{self, OperatorClient, ReadFrom};
use crate::exit::{CommandResult, Exit};
use crate::target;
use crate::terminal;

/// Runs the command.
pub(crate) async fn run(args: ReportArgs) -> CommandResult {
    let into = match client::read_from(&args.location)? {
        ReadFrom::Store(into) => into,
        ReadFrom::Gateway(client) => return from_gateway(&client, &args).await,
    };
    let (_store, note, catalog) = target::open_one(&into, args.source.as_deref()).await?;
    let card = report::gather(&note.source, &note.url, &catalog).await?;
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
    let card = client.get_bytes(&path, &[("form", form.to_owned())]).await?;
    if args.json {
        terminal::print(|out| out.write_all(&[&*card, b"\n"].concat()))?
    } else {
        terminal::text(&String::from_utf8_lossy(&card))?
    }
    Ok(Exit::Good)
}
