//! `load-tests read-pages`: reads answers of an OAI-PMH repository as a harvest would, in a process of its own, and
//! keeps nothing of them.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use oaipmh::{Item, Options, Reader};
use serde::{Deserialize, Serialize};

/// `read-pages`.
#[derive(Debug, Args)]
pub(crate) struct ReadPagesArgs {
    /// A folder of answers, one a file. They are read in the order of their names.
    pub(crate) pages: PathBuf,
}

/// The sums of the answers. A program that skips records cannot get the same sums.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReadRecords {
    /// Usable records.
    pub(crate) records: u64,
    /// The bytes of their metadata, in canonical form.
    pub(crate) bytes: u64,
    /// Whether all answers were read to their end, without bad records or quirks.
    pub(crate) is_whole: bool,
}

/// Bytes that are fed together, as they come from a connection.
const CHUNK_BYTES: usize = 64 * 1024;

/// Reads the answers, and prints the sums as JSON.
pub(crate) fn run(arguments: &ReadPagesArgs) -> anyhow::Result<()> {
    let folder = &arguments.pages;
    let entries = fs::read_dir(folder).with_context(|| format!("cannot open {}", folder.display()))?;
    let mut pages = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    pages.sort();
    let mut read = ReadRecords { is_whole: true, ..ReadRecords::default() };
    for page in pages {
        add(&fs::read(page)?, &mut read)?;
    }
    println!("{}", serde_json::to_string(&read)?);
    Ok(())
}

/// Reads one answer.
fn add(answer: &[u8], read: &mut ReadRecords) -> anyhow::Result<()> {
    let mut reader = Reader::new(Options::default());
    let mut chunks = answer.chunks(CHUNK_BYTES);
    loop {
        while let Some(item) = reader.next()? {
            match item {
                Item::Record(record) => {
                    read.records += 1;
                    read.bytes += record.metadata.map_or(0, |metadata| metadata.document.len() as u64);
                }
                _ => read.is_whole = false,
            }
        }
        match chunks.next() {
            Some(chunk) => reader.feed(chunk),
            None => break,
        }
    }
    reader.end();
    while let Some(item) = reader.next()? {
        read.is_whole &= matches!(item, Item::Record(_));
    }
    let answer = reader.answer();
    read.is_whole &= answer.complete && answer.quirks.iter().next().is_none();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>2026-01-02T03:04:05Z</responseDate>
<request verb="ListRecords" metadataPrefix="x">https://e.org/oai</request><ListRecords>
<record><header><identifier>oai:e:1</identifier><datestamp>2026-01-01</datestamp></header>
<metadata><x xmlns="urn:x"/></metadata></record></ListRecords></OAI-PMH>"#;

    #[test]
    fn records_and_their_bytes_are_summed_up() {
        let mut read = ReadRecords { is_whole: true, ..ReadRecords::default() };
        add(ANSWER.as_bytes(), &mut read).unwrap();
        add(ANSWER.as_bytes(), &mut read).unwrap();
        let one = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<x xmlns=\"urn:x\"></x>\n".len() as u64;
        assert_eq!((read.records, read.is_whole), (2, true));
        assert!(read.bytes.abs_diff(2 * one) <= 2, "{read:?}");
    }

    #[test]
    fn a_record_that_cannot_be_used_is_told() {
        let mut read = ReadRecords { is_whole: true, ..ReadRecords::default() };
        add(ANSWER.replace("<x xmlns=\"urn:x\"/>", "").as_bytes(), &mut read).unwrap();
        assert!(!read.is_whole);
    }
}
