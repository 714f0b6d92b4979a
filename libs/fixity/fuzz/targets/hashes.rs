//! Any `hash` attribute: no panic. Every value is either a digest of its algorithm's length or kept as
//! written. What is displayed is parsed again. No unjudged value contradicts any bytes.

#![no_main]

use fixity::{Algorithm, Digest, Hasher, Sha256, Verdict, judge, parse_hashes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|attribute: &str| {
    let hashes = parse_hashes(attribute);
    assert!(hashes.known.len() + hashes.unjudged.len() <= attribute.split_whitespace().count());
    for digest in &hashes.known {
        assert_eq!(digest.bytes().len(), digest.algorithm().digest_len());
        let shown = digest.to_string();
        assert_eq!(shown.parse::<Digest>().as_ref(), Ok(digest), "{shown}");
        assert_eq!(parse_hashes(&shown).known, [digest.clone()], "{shown}");
    }
    for written in &hashes.unjudged {
        assert!(attribute.contains(written.as_str()));
        let again = parse_hashes(written);
        assert!(again.known.is_empty() && again.unjudged == [written.clone()], "{written:?}");
    }

    let bytes = attribute.as_bytes();
    let (one, other) = bytes.split_at(bytes.len() / 2);
    let mut hasher = Hasher::new(Algorithm::ALL);
    hasher.update(one);
    hasher.update(other);
    let computed = hasher.finish();
    assert_eq!(computed.length(), bytes.len() as u64);
    assert_eq!(computed.sha256(), Sha256::of(bytes));
    match judge(&hashes.known, None, &computed) {
        Verdict::NothingDeclared => assert!(hashes.known.is_empty()),
        Verdict::Verified { by } => assert!(!by.is_empty()),
        Verdict::Mismatch { .. } => assert!(!hashes.known.is_empty()),
        Verdict::LengthOnly => panic!("no length was declared"),
    }

    if let Ok(sha256) = attribute.parse::<Sha256>() {
        assert!(sha256.to_string().eq_ignore_ascii_case(attribute));
    }
    if let Ok(digest) = attribute.parse::<Digest>() {
        assert_eq!(hashes.known, [digest]);
    }
});
