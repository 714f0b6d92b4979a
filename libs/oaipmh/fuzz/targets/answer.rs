//! Any bytes as an answer: no panic, no limit exceeded, and the same result for other chunks. Strict mode reads a
//! prefix of what tolerant mode reads. Each record's metadata are their own canonical form.
//!
//! The first two bytes of the input choose how to read, the rest is the answer.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oaipmh::{
    Answer, Encoding, Item, Limits, Options, ReadError, Reader, Strictness, canonicalize, comparison_digest,
    links,
};

/// Small enough for the fuzzer to reach.
const NARROW: Limits = Limits {
    max_record_bytes: 600,
    max_text_bytes: 60,
    max_field_bytes: 40,
    max_token_bytes: 20,
    max_depth: 6,
    max_attributes: 4,
    max_sets_per_record: 2,
    max_abouts: 1,
    max_items: 6,
    max_page_bytes: 3_000,
    max_inflation: 500,
    inflation_floor_bytes: 8 << 20,
};

fuzz_target!(|input: &[u8]| {
    let [flags, amount, document @ ..] = input else { return };
    let limits = if flags & 1 == 0 { Limits::default() } else { NARROW };
    let encoding = if flags & 2 == 0 { None } else { Encoding::for_label(b"windows-1252") };
    let options = Options { limits: limits.clone(), encoding, ..Options::default() };
    let whole = read(document, document.len(), &options);
    whole.check(&limits);

    // How much is unpacked before damage is found depends on the chunks.
    if !document.starts_with(&[0x1f, 0x8b]) {
        assert_eq!(read(document, usize::from(*amount), &options), whole, "chunks of {amount}");
    }
    let strict = read(document, document.len(), &Options { strictness: Strictness::Strict, ..options });
    assert_eq!(strict.items[..], whole.items[..strict.items.len()], "strict");
    if strict.error.is_none() {
        assert_eq!(strict, whole);
        assert!(strict.answer.quirks.iter().all(|(quirk, _)| !quirk.is_refused_when_strict()));
    }
});

#[derive(Debug, PartialEq)]
struct Reading {
    items: Vec<Item>,
    answer: Answer,
    error: Option<ReadError>,
}

fn read(bytes: &[u8], amount: usize, options: &Options) -> Reading {
    let mut reader = Reader::new(options.clone());
    let mut items = Vec::new();
    let mut error = None;
    let mut drain = |reader: &mut Reader| loop {
        match reader.next() {
            Ok(Some(item)) => items.push(item),
            Ok(None) => return None,
            Err(error) => return Some(error),
        }
    };
    for chunk in bytes.chunks(amount.max(1)) {
        reader.feed(chunk);
        error = error.or_else(|| drain(&mut reader));
    }
    reader.end();
    error = error.or_else(|| drain(&mut reader));
    assert_eq!(reader.next().err(), error, "the last word changed");
    Reading { items, answer: reader.into_answer(), error }
}

impl Reading {
    fn check(&self, limits: &Limits) {
        assert!(self.answer.complete || self.error.is_some(), "it ended without an end");
        assert_eq!(self.answer.items, self.items.len() as u64);
        assert!(self.answer.items <= limits.max_items);
        let token = self.answer.resumption.as_ref().and_then(|resumption| resumption.token.as_ref());
        assert!(token.is_none_or(|token| token.as_str().len() <= limits.max_token_bytes));
        for item in &self.items {
            let Item::Record(record) = item else { continue };
            assert!(!record.header.identifier.is_empty());
            assert!(record.header.identifier.len() <= limits.max_field_bytes);
            assert!(record.header.sets.len() <= limits.max_sets_per_record);
            assert!(record.about.len() <= limits.max_abouts);
            assert_eq!(record.metadata.is_none(), record.header.is_deleted());
            let Some(metadata) = &record.metadata else { continue };
            let wide = Limits::default();
            assert_eq!(&canonicalize(&metadata.document, &wide).expect("it is canonical"), metadata);
            comparison_digest(&metadata.document, &wide).expect("it is well-formed");
            assert!(links(metadata, &wide, 3).links.len() <= 3);
        }
    }
}
