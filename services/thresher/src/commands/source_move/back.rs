//! Takes a move back: the catalog of the former URL was not changed, so nothing but files has to be restored.

use catalog::{Catalog, CatalogReader};
use futures::TryStreamExt;
use model::Bitstream;
use store::{SourceMove, Store, View};

use crate::cli::SourceMoveArgs;
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target;
use crate::terminal::{self, say};

/// Takes the move of the named Source back.
pub(super) async fn run(store: &Store, args: &SourceMoveArgs) -> CommandResult {
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
    if moved.is_whole && target::has_catalog(store, &moved.to).await? {
        // From now on no other process writes to it.
        let new = target::open_catalog(store, &moved.to).await?;
        if let Some(view) = view_of(store, &new).await? {
            let former = target::read_catalog(store, &moved.source).await?;
            put_files_back(store, &view, &former, &new).await?;
            former.close().await.ok();
        }
        new.close().await?;
    }
    // A catalog that is removed in part is not opened again.
    store.note_move(&SourceMove { is_whole: false, ..moved.clone() }).await?;
    store.remove_source(&moved.to).await?;
    store.forget_move(&moved.source).await?;
    if args.json {
        terminal::json(
            &serde_json::json!({ "source": moved.source, "url": moved.url, "back_from": moved.to_url }),
        )?;
    } else {
        tell(moved, &args.into)?;
    }
    Ok(Exit::Good)
}

fn tell(moved: &SourceMove, into: &str) -> Result<(), Failed> {
    say!("{} is harvested from {} again; nothing of it was lost", moved.source, moved.url)?;
    say!("what only {} had goes with the next `thresher gc --into {into}`", moved.to_url)?;
    Ok(())
}

/// The view, if the moved Source writes one.
async fn view_of(store: &Store, new: &Catalog) -> Result<Option<View>, Failed> {
    let writes = new.last_run().await?.is_some_and(|run| run.view);
    Ok(store.view().filter(|_| writes))
}

/// Makes the files those of the former catalog.
async fn put_files_back(
    store: &Store,
    view: &View,
    former: &CatalogReader,
    new: &Catalog,
) -> Result<(), Failed> {
    let mut resources = new.scan_resources(None, None).await?;
    while let Some((uri, record)) = resources.try_next().await? {
        let was_present = former.resource(&uri).await?.is_some_and(|before| before.is_present());
        if record.is_present() && !was_present {
            view.remove(uri).await?;
        }
    }
    let mut resources = former.scan_resources(None, None).await?;
    while let Some((uri, record)) = resources.try_next().await? {
        let Some(bitstream) = record.bitstream else { continue };
        let now = new.resource(&uri).await?.and_then(|record| record.bitstream);
        if now.is_none_or(|now| !is_same(&now, &bitstream)) {
            store.write_view(&bitstream, view, uri).await?;
        }
    }
    Ok(())
}

fn is_same(one: &Bitstream, other: &Bitstream) -> bool {
    one.computed.sha256() == other.computed.sha256()
}
