//! `thresher restore`: undo deletions.

use harvest::Restored;
use model::{ResourceUri, SourceId, SystemClock};
use store::Store;

use crate::cli::RestoreArgs;
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target;
use crate::terminal::{note, say};

/// Runs the command.
pub(crate) async fn run(args: RestoreArgs) -> CommandResult {
    let uris: Vec<ResourceUri> =
        args.uris.iter().map(|uri| uri.parse().map_err(usage)).collect::<Result<_, _>>()?;
    let into = &args.harvest.into;
    let instead = "Stop the fleet and all other syncs into this store, then pass --exclusive";
    let target = target::parse_to_write(into, args.exclusive, instead)?;
    // Reports a wrong --into, and creates nothing.
    let (_, sources) = target::find_sources(into, args.source.as_deref()).await?;
    let store = target::open_store(&target).await?;
    let mut open = uris.clone();
    let mut lost = false;
    for note in sources {
        let known = known(&store, &note.source, &uris).await?;
        if known.is_empty() {
            continue;
        }
        let catalog = target::open_catalog(&store, &note.source).await?;
        let has_view = catalog.last_run().await?.is_some_and(|run| run.view);
        let view = store.view().filter(|_| has_view);
        for uri in known {
            match harvest::restore(&catalog, &store, view.as_ref(), &SystemClock, uri).await? {
                Restored::Done => say!("{uri}: restored")?,
                Restored::NotDeleted => say!("{uri}: was not deleted")?,
                Restored::NothingStored => continue,
                Restored::Collected(at) => {
                    note!(
                        "{uri}: cannot be restored: it was deleted, and `thresher gc` removed its bytes at {at}. \
                         If the Source has it again, the next `thresher sync` fetches it"
                    );
                    lost = true;
                }
            }
            open.retain(|other| other != uri);
        }
        catalog.close().await?;
    }
    for uri in &open {
        note!("{uri}: nothing to restore, because it was never stored here. `thresher ls` lists URIs");
    }
    Ok(if open.is_empty() && !lost { Exit::Good } else { Exit::Problems })
}

/// Those of the URIs that the catalog of a Source has a record of. It is read beside its owner: opening it for writing
/// would end the owner's work.
async fn known<'a>(
    store: &Store,
    source: &SourceId,
    uris: &'a [ResourceUri],
) -> Result<Vec<&'a ResourceUri>, Failed> {
    let catalog = target::read_catalog(store, source).await?;
    let mut known = Vec::new();
    for uri in uris {
        if catalog.resource(uri).await?.is_some() {
            known.push(uri);
        }
    }
    catalog.close().await.ok();
    Ok(known)
}
