//! `thresher cat`: print the verified bytes of one resource, present or earlier.

use std::io::Write;

use flate2::write::{MultiGzDecoder, ZlibDecoder};
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{Bitstream, ResourceUri};
use store::{SourceMarker, Store};

use crate::cli::CatArgs;
use crate::commands::moment::{self, At};
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target::{self, OpenHarvest};
use crate::terminal::Out;

/// Runs the command.
pub(crate) async fn run(args: CatArgs) -> CommandResult {
    let uri: ResourceUri = args.resource.uri.parse().map_err(usage)?;
    let harvested =
        target::open_for_reading(&args.resource.harvest.into).await?.only(args.source.as_deref())?;
    match args.at {
        Some(moment) => at(&harvested, &uri, moment, args.decode).await,
        None => now(&harvested, &uri, args.decode).await,
    }
}

async fn now(harvested: &OpenHarvest, uri: &ResourceUri, decode: bool) -> CommandResult {
    let mut collected = None;
    let mut holders = Vec::new();
    for (note, catalog) in &harvested.sources {
        let record = catalog.resource(uri).await?;
        collected = collected.max(record.as_ref().and_then(|record| record.collected));
        holders.extend(record.and_then(|record| record.bitstream).map(|bitstream| (note, bitstream)));
    }
    if let Some(bitstream) = only_one(uri, holders)? {
        return write(&harvested.store, &bitstream, decode).await;
    }
    let error = match collected {
        Some(at) => anyhow::anyhow!(
            "{uri} is not stored: its Source deleted it, and `thresher gc` removed its bytes at {at}"
        ),
        None => anyhow::anyhow!("{uri} is not stored; `thresher explain` shows its history"),
    };
    Err(Failed { exit: Exit::Problems, error })
}

/// The stored version, if exactly one Source has it. Of several none is chosen: any Source may list another's
/// resource.
fn only_one(
    uri: &ResourceUri,
    holders: Vec<(&SourceMarker, Bitstream)>,
) -> Result<Option<Bitstream>, Failed> {
    if holders.len() > 1 {
        let names: Vec<_> =
            holders.iter().map(|(note, _)| format!("{} ({})", note.source, note.url)).collect();
        return Err(usage(format!(
            "{uri} is stored from {} Sources, whose bytes may differ; name one of them with --source: {}",
            holders.len(),
            names.join(", ")
        )));
    }
    Ok(holders.into_iter().next().map(|(_, bitstream)| bitstream))
}

async fn at(harvested: &OpenHarvest, uri: &ResourceUri, moment: Timestamp, decode: bool) -> CommandResult {
    let mut kept_since = None;
    let mut lost_at = None;
    let mut holders = Vec::new();
    for (note, catalog) in &harvested.sources {
        let Some(record) = catalog.resource(uri).await? else { continue };
        let versions = catalog.versions(uri).await?.unwrap_or_default();
        match moment::at(&record, &versions, moment) {
            At::Stored(bitstream, ..) => holders.push((note, bitstream.clone())),
            At::Lost { lost } => lost_at = Some(lost),
            At::NotHeld => {}
            At::Gone { kept_from } => kept_since = Some(kept_from),
        }
    }
    if let Some(bitstream) = only_one(uri, holders)? {
        return write(&harvested.store, &bitstream, decode).await;
    }
    if let Some(lost) = lost_at {
        return Err(lost_then(uri, moment, lost));
    }
    let error = match kept_since {
        Some(from) => anyhow::anyhow!(
            "{uri}: the version of {moment} is not kept; kept versions go back to {from}. \
             `thresher sync --keep-versions N` keeps the last N versions"
        ),
        None => anyhow::anyhow!("{uri} was not stored at {moment}; `thresher explain` shows its history"),
    };
    Err(Failed { exit: Exit::Problems, error })
}

fn lost_then(uri: &ResourceUri, moment: Timestamp, lost: Timestamp) -> Failed {
    let error = anyhow::anyhow!(
        "the version of {uri} of {moment} was damaged, and discarded at {lost}; `thresher explain` shows what it was"
    );
    Failed { exit: Exit::Problems, error }
}

async fn write(store: &Store, bitstream: &Bitstream, decode: bool) -> CommandResult {
    if let Some(encoding) = bitstream.encoding.as_deref().filter(|_| decode) {
        return write_decoded(store, bitstream, encoding).await;
    }
    let mut out = Out::new();
    let mut bytes = store.open_verified(bitstream).await?;
    while let Some(chunk) = bytes.try_next().await? {
        out.write_all(&chunk)?;
    }
    out.finish()?;
    Ok(Exit::Good)
}

/// Decodes a Content-Encoding while the bytes pass.
async fn write_decoded(store: &Store, bitstream: &Bitstream, encoding: &str) -> CommandResult {
    let out = Out::new();
    let mut decoder: Box<dyn Write + Send> = match encoding {
        "gzip" | "x-gzip" => Box::new(MultiGzDecoder::new(out)),
        "deflate" => Box::new(ZlibDecoder::new(out)),
        other => {
            return Err(usage(format!(
                "the bytes have the Content-Encoding {other}; --decode knows gzip and deflate only. Leave it out"
            )));
        }
    };
    let mut bytes = store.open_verified(bitstream).await?;
    while let Some(chunk) = bytes.try_next().await? {
        decoder.write_all(&chunk)?;
    }
    decoder.flush()?;
    Ok(Exit::Good)
}
