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
    let mut collected = None;
    for (_, catalog) in &harvested.sources {
        let record = catalog.resource(&uri).await?;
        collected = collected.max(record.as_ref().and_then(|record| record.collected));
        let Some(bitstream) = record.and_then(|record| record.bitstream) else { continue };
        let mut out = tokio::io::stdout();
        let mut bytes = harvested.store.open_verified(&bitstream).await?;
        while let Some(chunk) = bytes.try_next().await? {
            out.write_all(&chunk).await?;
        }
        out.flush().await?;
        return Ok(Exit::Good);
    }
    let error = match collected {
        Some(at) => anyhow::anyhow!(
            "{uri} is not held here: its Source deleted it, and `thresher gc` gave its bytes up at {at}"
        ),
        None => anyhow::anyhow!("{uri} is not held here; `thresher explain` says what is known of it"),
    };
    Err(Failed { exit: Exit::Problems, error })
}
