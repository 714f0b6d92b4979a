//! `load-tests read-list`: reads one document as a Destination would, in a process of its own, and holds nothing of it.

use std::fs::File;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use resourcesync::{Item, Options, Quirk, Reader, Summary};
use serde::{Deserialize, Serialize};

/// `read-list`.
#[derive(Debug, Args)]
pub(crate) struct ReadListArgs {
    /// The document; it may be compressed with gzip.
    pub(crate) document: PathBuf,
}

/// What was read of a list. A program that skips something cannot arrive at these sums.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Read {
    /// Entries that can be used.
    pub(crate) entries: u64,
    /// The bytes that they declare, all together.
    pub(crate) declared_bytes: u64,
    /// Entries that declare a digest.
    pub(crate) hashes: u64,
    /// Links of all entries.
    pub(crate) links: u64,
    /// Whether the document was read to its end, and nothing in it was bad or odd.
    pub(crate) is_whole: bool,
}

/// Reads the document, and prints what it was as JSON.
pub(crate) fn run(arguments: &ReadListArgs) -> anyhow::Result<()> {
    let file = File::open(&arguments.document)
        .with_context(|| format!("cannot open {}", arguments.document.display()))?;
    let mut reader = Reader::new(file, Options::default())?;
    let mut read = Read::default();
    while let Some(item) = reader.next()? {
        if let Item::Entry(entry) = item {
            read.entries += 1;
            read.declared_bytes += entry.metadata.length.unwrap_or_default();
            read.hashes += u64::from(entry.metadata.hash.is_some());
            read.links += entry.links.len() as u64;
        }
    }
    let Summary { bad, complete, quirks, .. } = reader.summary();
    // That it is packed, or longer than Sitemaps may be, is noted as odd, and is so on purpose here.
    let wanted = [Quirk::Gzip, Quirk::TooManyEntries];
    let is_odd = quirks.iter().any(|(quirk, _)| !wanted.contains(&quirk));
    read.is_whole = complete && bad == 0 && !is_odd;
    println!("{}", serde_json::to_string(&read)?);
    Ok(())
}
