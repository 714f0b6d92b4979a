//! Takes a move back: the catalog of the former URL was not changed, so nothing but files has to be restored.

use catalog::CatalogConfig;
use store::{SourceMove, Store};

use crate::cli::SourceMoveArgs;
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::terminal::{self, say};

/// Takes the move of the named Source back.
pub(super) async fn run(store: &Store, args: &SourceMoveArgs, into: &str) -> CommandResult {
    let named = crate::values::source_id(&args.source)?;
    let moves = store.moves().await?;
    let Some(moved) = moves.iter().find(|moved| moved.source == named) else {
        let to = moves.iter().find(|moved| moved.to == named);
        let hint =
            to.map_or(String::new(), |moved| format!("; it was moved from {}: name that", moved.source));
        return Err(usage(format!("{named} was not moved{hint}")));
    };
    if let Some(later) = moves.iter().find(|later| later.source == moved.to) {
        return Err(usage(format!(
            "it was moved on, from {} to {}; take that back first",
            later.url, later.to_url
        )));
    }
    harvest::take_move_back(store, moved, CatalogConfig::default()).await?;
    store.forget_move(&moved.source).await?;
    if args.json {
        terminal::json(
            &serde_json::json!({ "source": moved.source, "url": moved.url, "back_from": moved.to_url }),
        )?;
    } else {
        tell(moved, into)?;
    }
    Ok(Exit::Good)
}

fn tell(moved: &SourceMove, into: &str) -> Result<(), Failed> {
    say!("{} is harvested from {} again; nothing of it was lost", moved.source, moved.url)?;
    say!("what only {} had goes with the next `thresher gc --into {into}`", moved.to_url)?;
    Ok(())
}
