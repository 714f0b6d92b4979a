//! Any text as a document: refused, or its canonical form is its own, has a comparison digest.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oaipmh::{Limits, canonicalize, comparison_digest, links};

fuzz_target!(|text: &str| {
    let limits = Limits::default();
    let Ok(metadata) = canonicalize(text, &limits) else { return };
    let again = canonicalize(&metadata.document, &limits).expect("the form is a document");
    assert_eq!(again, metadata, "the form of the form");
    comparison_digest(&metadata.document, &limits).expect("the form is well-formed");
    let found = links(&metadata, &limits, 5);
    assert!(found.links.len() <= 5);
    for link in found.links {
        assert!(link.href.starts_with("http") || link.href[..4].eq_ignore_ascii_case("http"));
    }
});
