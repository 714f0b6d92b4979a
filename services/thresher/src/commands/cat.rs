//! `thresher cat`: the verified bytes of one resource, as it is or as it was.

use std::io::Write as _;

use futures::TryStreamExt;
use jiff::Timestamp;
use model::{Bitstream, ResourceUri};
use store::Store;

use crate::cli::CatArgs;
use crate::commands::moment::{self, At};
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target::{self, Harvested};
use crate::terminal::Out;

/// Runs the command.
pub(crate) async fn run(args: CatArgs) -> CommandResult {
    let uri: ResourceUri = args.resource.uri.parse().map_err(usage)?;
    let harvested = target::open_for_reading(&args.resource.harvest.into).await?;
    match args.at {
        Some(moment) => at(&harvested, &uri, moment).await,
        None => now(&harvested, &uri).await,
    }
}

async fn now(harvested: &Harvested, uri: &ResourceUri) -> CommandResult {
    let mut collected = None;
    for (_, catalog) in &harvested.sources {
        let record = catalog.resource(uri).await?;
        collected = collected.max(record.as_ref().and_then(|record| record.collected));
        if let Some(bitstream) = record.and_then(|record| record.bitstream) {
            return write(&harvested.store, &bitstream).await;
        }
    }
    let error = match collected {
        Some(at) => anyhow::anyhow!(
            "{uri} is not held here: its Source deleted it, and `thresher gc` gave its bytes up at {at}"
        ),
        None => anyhow::anyhow!("{uri} is not held here; `thresher explain` says what is known of it"),
    };
    Err(Failed { exit: Exit::Problems, error })
}

async fn at(harvested: &Harvested, uri: &ResourceUri, moment: Timestamp) -> CommandResult {
    let mut kept_since = None;
    for (_, catalog) in &harvested.sources {
        let Some(record) = catalog.resource(uri).await? else { continue };
        let versions = catalog.versions(uri).await?.unwrap_or_default();
        match moment::at(&record, &versions, moment) {
            At::Held(bitstream, ..) => return write(&harvested.store, bitstream).await,
            At::Lost { lost } => return Err(lost_then(uri, moment, lost)),
            At::NotHeld => {}
            At::Gone { kept_from } => kept_since = Some(kept_from),
        }
    }
    let error = match kept_since {
        Some(from) => anyhow::anyhow!(
            "what was held of {uri} at {moment} is not kept: what is kept goes back to {from}. `thresher sync --history N` keeps the last N versions"
        ),
        None => anyhow::anyhow!(
            "{uri} was not held here at {moment}; `thresher explain` says what is known of it"
        ),
    };
    Err(Failed { exit: Exit::Problems, error })
}

fn lost_then(uri: &ResourceUri, moment: Timestamp, lost: Timestamp) -> Failed {
    let error = anyhow::anyhow!(
        "what was held of {uri} at {moment} was found damaged, and its bytes were given up at {lost}; `thresher explain` says what it was"
    );
    Failed { exit: Exit::Problems, error }
}

async fn write(store: &Store, bitstream: &Bitstream) -> CommandResult {
    let mut out = Out::new();
    let mut bytes = store.open_verified(bitstream).await?;
    while let Some(chunk) = bytes.try_next().await? {
        out.write_all(&chunk)?;
    }
    out.finish()?;
    Ok(Exit::Good)
}
