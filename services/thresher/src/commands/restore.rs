//! `thresher restore`: undo deletions.

use harvest::Restored;
use model::{ResourceUri, SystemClock};

use crate::cli::RestoreArgs;
use crate::exit::{CommandResult, Exit, usage};
use crate::target;
use crate::terminal::{note, say};

/// Runs the command.
pub(crate) async fn run(args: RestoreArgs) -> CommandResult {
    let uris: Vec<ResourceUri> =
        args.uris.iter().map(|uri| uri.parse().map_err(usage)).collect::<Result<_, _>>()?;
    // Reports a wrong --into, and creates nothing.
    drop(target::find_sources(&args.harvest.into, None).await?);
    let store = target::open_store(&target::parse(&args.harvest.into)?).await?;
    let mut open = uris.clone();
    let mut lost = false;
    for note in target::sources_in_use(&store).await? {
        let catalog = target::open_catalog(&store, &note.source).await?;
        let has_view = catalog.last_run().await?.is_some_and(|run| run.view);
        let view = store.view().filter(|_| has_view);
        for uri in &uris {
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
        note!("{uri}: never stored here; `thresher explain` shows its history");
    }
    Ok(if open.is_empty() && !lost { Exit::Good } else { Exit::Problems })
}
