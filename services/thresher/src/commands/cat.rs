//! `thresher cat`: the verified bytes of one resource.

use futures::TryStreamExt;
use model::ResourceUri;
use tokio::io::AsyncWriteExt;

use crate::cli::ResourceArgs;
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target;

/// Runs the command.
pub(crate) async fn run(args: ResourceArgs) -> CommandResult {
    let uri: ResourceUri = args.uri.parse().map_err(usage)?;
    let harvested = target::open_for_reading(&args.harvest.into).await?;
    for (_, catalog) in &harvested.sources {
        let Some(bitstream) = catalog.resource(&uri).await?.and_then(|record| record.bitstream) else {
            continue;
        };
        let mut out = tokio::io::stdout();
        let mut bytes = harvested.store.open_verified(&bitstream).await?;
        while let Some(chunk) = bytes.try_next().await? {
            out.write_all(&chunk).await?;
        }
        out.flush().await?;
        return Ok(Exit::Good);
    }
    Err(Failed {
        exit: Exit::Problems,
        error: anyhow::anyhow!("{uri} is not held here; `thresher explain` says what is known of it"),
    })
}
