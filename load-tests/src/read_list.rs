//! `load-tests read-list`: reads one document as a Destination would, in a process of its own, and keeps
//! nothing of it.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use quick_xml::Reader as XmlReader;
use quick_xml::events::Event;
use resourcesync::{Item, Options, Quirk, Reader, Summary};
use serde::{Deserialize, Serialize};

/// `read-list`.
#[derive(Debug, Args)]
pub(crate) struct ReadListArgs {
    /// The document; it may be compressed with gzip.
    pub(crate) document: PathBuf,
    /// Only take it apart into XML events, and look at no more of them than counts entries: what any reader pays.
    #[arg(long)]
    pub(crate) events: bool,
}

/// The sums of a list. A program that skips entries cannot get the same sums.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Read {
    /// Usable entries.
    pub(crate) entries: u64,
    /// Their total declared bytes.
    pub(crate) declared_bytes: u64,
    /// Entries with a declared digest.
    pub(crate) hashes: u64,
    /// Links of all entries.
    pub(crate) links: u64,
    /// Whether the document was read to its end, without bad entries or quirks.
    pub(crate) is_whole: bool,
}

/// Buffer of the bare parser: the same as ours.
const EVENTS_BUFFER_BYTES: usize = 1 << 16;

/// Reads the document, and prints the sums as JSON.
pub(crate) fn run(arguments: &ReadListArgs) -> anyhow::Result<()> {
    let file = File::open(&arguments.document)
        .with_context(|| format!("cannot open {}", arguments.document.display()))?;
    let read = if arguments.events { events(file)? } else { whole(file)? };
    println!("{}", serde_json::to_string(&read)?);
    Ok(())
}

fn whole(file: File) -> anyhow::Result<Read> {
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
    // Compression, and more entries than Sitemaps allow, count as quirks, but are intended here.
    let wanted = [Quirk::Gzip, Quirk::TooManyEntries];
    let is_odd = quirks.iter().any(|(quirk, _)| !wanted.contains(&quirk));
    read.is_whole = complete && bad == 0 && !is_odd;
    Ok(read)
}

/// Parses it, and counts entries and links by the element names of our own writer.
fn events(file: impl io::Read) -> anyhow::Result<Read> {
    let mut xml = XmlReader::from_reader(BufReader::with_capacity(EVENTS_BUFFER_BYTES, file));
    let mut read = Read::default();
    let mut event = Vec::new();
    loop {
        event.clear();
        match xml.read_event_into(&mut event)? {
            Event::Start(tag) if tag.name().as_ref() == "url" => read.entries += 1,
            // Links before the first entry belong to the document.
            Event::Empty(tag) if read.entries > 0 && tag.name().as_ref() == "rs:ln" => read.links += 1,
            Event::Eof => break,
            _ => {}
        }
    }
    read.is_whole = true;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_by_their_names_and_links_only_in_entries() {
        let list = "<urlset><rs:ln/><rs:md/><url><loc>a</loc><rs:ln/></url><url><loc>b</loc></url></urlset>";
        let read = events(list.as_bytes()).unwrap();
        assert_eq!((read.entries, read.links, read.is_whole), (2, 1, true));
    }
}
