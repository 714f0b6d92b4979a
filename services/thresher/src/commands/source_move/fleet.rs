//! `thresher source move` of a Source of a fleet: the scheduler that owns it moves it.

use api::Run;
use model::SourceId;

use crate::cli::SourceMoveArgs;
use crate::client::OperatorClient;
use crate::commands::run::follow;
use crate::exit::{CommandResult, Exit, Failed};
use crate::http;
use crate::terminal::{self, note, say};

/// Requests the move, and waits for its end; of a move also for the first run from the new URL.
pub(super) async fn run(args: SourceMoveArgs) -> CommandResult {
    let client = OperatorClient::of(&args.gateway)?;
    let source = client.source_id(&args.source).await?;
    let requested = match &args.to {
        Some(to) => {
            http::without_secret(to)?;
            client.move_source(&source, to).await?
        }
        None => client.take_move_back(&source).await?,
    };
    let ended = client.until_over(requested).await?;
    if ended.state != "finished" {
        let why = ended.message.as_deref().unwrap_or("it was stopped");
        let error = anyhow::anyhow!("{} is not moved: {}: {why}", ended.source, ended.state);
        return Err(Failed { exit: Exit::Failed, error });
    }
    let Some(moved) = &ended.moved else { return Ok(Exit::Good) };
    if args.json {
        terminal::json(&serde_json::json!({
            "source": ended.source, "to": moved.source, "to_url": moved.to, "back": moved.back,
        }))?;
    } else {
        say!("{} is harvested from {} now, as {}", args.source, moved.to, moved.source)?;
    }
    if moved.back {
        return Ok(Exit::Good);
    }
    first_run(&client, &moved.source.parse()?, &ended, args.json).await
}

/// Follows the first run of the Source that was moved to.
async fn first_run(client: &OperatorClient, to: &SourceId, moving: &Run, json: bool) -> CommandResult {
    note!("`thresher source move {} --back` takes it back", moving.source);
    match client.last_run(to).await? {
        Some(first) => follow(client, to, first.run, json).await,
        None => Ok(Exit::Good),
    }
}
