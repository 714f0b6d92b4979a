//! Any bytes: no panic, no limit exceeded, and the same result for other chunks or for a buffer too small for
//! an entry. Strict mode reads a prefix of what tolerant mode reads.
//!
//! The first two bytes of the input choose how to read, the rest is the document.

#![no_main]

use std::io::{Read, Write};

use libfuzzer_sys::fuzz_target;
use resourcesync::{Header, Item, Limits, Mode, Options, Reader, Summary};

/// Small enough for the fuzzer to reach.
const NARROW: Limits = Limits {
    max_field_bytes: 48,
    max_depth: 4,
    max_links_per_entry: 2,
    max_link_bytes: 120,
    max_href_bytes: 24,
    max_attributes: 5,
    max_entry_bytes: 400,
    max_event_bytes: 250,
    max_document_bytes: Some(1_500),
    max_inflation: 500,
    inflation_floor_bytes: 8 << 20,
};

/// A buffer too small for any entry, so that each is read token by token.
const SMALLEST: usize = 16;

fuzz_target!(|input: &[u8]| {
    let [flags, amount, document @ ..] = input else { return };
    let limits = if flags & 1 == 0 { Limits::default() } else { NARROW };
    let base = (flags & 2 != 0).then(|| "http://example.com/sets/list.xml".parse().expect("it is a URL"));
    let options = Options { limits: limits.clone(), mode: Mode::Tolerant, base, latest: None };
    let whole = read(document, &options);
    whole.check(document, &limits, options.base.is_some());

    let cut = read(Cut { bytes: document, amount: usize::from(*amount).max(1) }, &options);
    assert_eq!(cut, whole, "cut into pieces of {amount}");

    // How much is unpacked before damage is found depends on the size of the buffer.
    if !document.starts_with(&[0x1f, 0x8b]) {
        let parsed = read_within(SMALLEST, document, &options);
        assert_eq!(parsed, whole, "token by token");
    }

    let strict = read(document, &Options { mode: Mode::Strict, ..options.clone() });
    assert_eq!(strict.items[..], whole.items[..strict.items.len()], "strict");
    if strict.error.is_none() {
        assert_eq!(strict.summary, whole.summary, "strict");
        assert!(strict.summary.quirks.iter().all(|(quirk, _)| !quirk.is_refused_when_strict()));
    }

    if flags & 4 != 0 && !document.starts_with(&[0x1f, 0x8b]) {
        let unpacked = read(&gzip(document)[..], &options);
        assert_eq!((unpacked.header, unpacked.items), (whole.header, whole.items), "gzip");
        assert_eq!(unpacked.error, whole.error, "gzip");
    }
});

/// The complete result of a reading.
#[derive(Debug, PartialEq)]
struct Reading {
    header: Option<Header>,
    items: Vec<Item>,
    error: Option<String>,
    summary: Summary,
}

fn read(bytes: impl Read, options: &Options) -> Reading {
    read_within(64 * 1024, bytes, options)
}

fn read_within(buffer: usize, bytes: impl Read, options: &Options) -> Reading {
    let mut reader = match Reader::with_buffer(bytes, options.clone(), buffer) {
        Ok(reader) => reader,
        Err(error) => panic!("a slice does not fail: {error}"),
    };
    let _ = reader.header();
    let mut items = Vec::new();
    let error = loop {
        match reader.next() {
            Ok(Some(item)) => items.push(item),
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    let header = reader.header().ok().cloned();
    assert_eq!(reader.next().err().map(|error| error.to_string()), error, "the last word changed");
    Reading { header, items, error, summary: reader.summary() }
}

impl Reading {
    fn check(&self, document: &[u8], limits: &Limits, has_base: bool) {
        assert!(self.summary.complete || self.error.is_some(), "it ended without an end");
        assert_eq!(self.summary.entries + self.summary.bad, self.items.len() as u64);
        let gzip = document.starts_with(&[0x1f, 0x8b]);
        let mut last = 0;
        for item in &self.items {
            let position = match item {
                Item::Bad(bad) => bad.position,
                Item::Entry(entry) => {
                    let said = &entry.metadata;
                    let texts = [&said.hash, &said.media_type, &said.encoding, &said.path, &entry.priority];
                    let longest = texts.into_iter().flatten().map(String::len).max().unwrap_or(0);
                    assert!(longest <= limits.max_field_bytes);
                    // A resolved reference is longer than what was written.
                    assert!(has_base || entry.loc.len() <= limits.max_field_bytes);
                    assert!(entry.links.len() <= limits.max_links_per_entry);
                    assert!(!entry.loc.is_empty() && entry.loc == entry.loc.trim());
                    entry.position
                }
            };
            assert!(position.line >= 1 && position.column >= 1 && position.byte >= last);
            assert!(gzip || document[position.byte as usize] == b'<', "{position}");
            last = position.byte + 1;
        }
    }
}

/// Returns this many bytes at a time.
struct Cut<'b> {
    bytes: &'b [u8],
    amount: usize,
}

impl Read for Cut<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let amount = self.amount.min(buf.len());
        self.bytes.read(&mut buf[..amount])
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("a vector does not fail")
}
