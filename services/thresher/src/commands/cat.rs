//! `thresher cat`: print the verified bytes of one resource, present or earlier.

use std::io::Write;

use flate2::write::{MultiGzDecoder, ZlibDecoder};
use futures::TryStreamExt;
use jiff::Timestamp;
use model::moment::{self, At};
use model::{Bitstream, ResourceRecord, ResourceUri, Versions};
use store::{SourceMarker, Store};

use crate::cli::CatArgs;
use crate::exit::{CommandResult, Exit, Failed, problem, usage};
use crate::target::{self, OpenHarvest};
use crate::terminal::Out;

/// Runs the command.
pub(crate) async fn run(args: CatArgs) -> CommandResult {
    let uri: ResourceUri = args.uri.parse().map_err(usage)?;
    let harvested = target::open_for_reading(&args.harvest.into, args.source.as_deref()).await?;
    let found = match (args.at, args.source_at) {
        (Some(moment), _) => at(&harvested, &uri, moment, moment::at).await?,
        (None, Some(moment)) => at(&harvested, &uri, moment, moment::at_source).await?,
        (None, None) => now(&harvested, &uri).await?,
    };
    write(&harvested.store, &found, args.decode).await
}

/// The present version.
async fn now(harvested: &OpenHarvest, uri: &ResourceUri) -> Result<Bitstream, Failed> {
    let mut collected = None;
    let mut holders = Vec::new();
    for (note, catalog) in &harvested.sources {
        let Some(record) = catalog.resource(uri).await? else { continue };
        collected = collected.max(record.collected);
        holders.extend(record.bitstream.map(|bitstream| (note, bitstream)));
    }
    only_one(uri, holders)?.ok_or_else(|| match collected {
        Some(at) => problem(format!(
            "{uri} is not stored: its Source deleted it, and `thresher gc` removed its bytes at {at}"
        )),
        None => problem(format!("{uri} is not stored; `thresher explain` shows its history")),
    })
}

/// The version of a moment, by our time or that of the Source.
async fn at(
    harvested: &OpenHarvest,
    uri: &ResourceUri,
    moment: Timestamp,
    state: for<'a> fn(&'a ResourceRecord, &'a Versions, Timestamp) -> At<'a>,
) -> Result<Bitstream, Failed> {
    let mut kept_since = None;
    let mut lost_at = None;
    let mut holders = Vec::new();
    for (note, catalog) in &harvested.sources {
        let Some(record) = catalog.resource(uri).await? else { continue };
        let versions = catalog.versions(uri).await?.unwrap_or_default();
        match state(&record, &versions, moment) {
            At::Stored(bitstream, ..) => holders.push((note, bitstream.clone())),
            At::Lost { lost } => lost_at = Some(lost),
            At::NotHeld => {}
            At::Gone { kept_from } => kept_since = Some(kept_from),
        }
    }
    only_one(uri, holders)?.ok_or_else(|| match (lost_at, kept_since) {
        (Some(lost), _) => problem(format!(
            "the version of {uri} of {moment} was damaged, and discarded at {lost}; `thresher explain` shows what it was"
        )),
        (None, Some(from)) => problem(format!(
            "{uri}: the version of {moment} is not kept; kept versions go back to {from}. \
             `thresher sync --keep-versions N` keeps the last N versions"
        )),
        (None, None) => {
            problem(format!("{uri} was not stored at {moment}; `thresher explain` shows its history"))
        }
    })
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

/// Prints the bytes. With `decode`, a Content-Encoding is decoded while the bytes pass.
async fn write(store: &Store, bitstream: &Bitstream, decode: bool) -> CommandResult {
    let out = Out::new();
    let mut out: Box<dyn Write + Send> = match bitstream.encoding.as_deref().filter(|_| decode) {
        None => Box::new(out),
        Some("gzip" | "x-gzip") => Box::new(MultiGzDecoder::new(out)),
        Some("deflate") => Box::new(ZlibDecoder::new(out)),
        Some(other) => {
            return Err(usage(format!(
                "the bytes have the Content-Encoding {other}; --decode knows gzip and deflate only. Leave it out"
            )));
        }
    };
    let mut bytes = store.open_verified(bitstream).await?;
    while let Some(chunk) = bytes.try_next().await? {
        out.write_all(&chunk)?;
    }
    out.flush()?;
    Ok(Exit::Good)
}
