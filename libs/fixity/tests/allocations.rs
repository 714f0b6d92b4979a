//! Allocations of parsing digests. Lists declare them for millions of resources.

use allocation_counter::measure;
use fixity::{Digest, parse_hashes};

const SHA256: &str = "sha-256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[test]
fn hashes_are_read_into_one_list_and_nothing_else() {
    for written in
        [SHA256, "md5:kAFQmDzST7DWlj99KOF/cg==", "SHA1:a9993e364706816aba3e25717850c26c9cd0d89d md5:1"]
    {
        let both = format!("{written} {SHA256}");
        let unjudged = parse_hashes(&both).unjudged.len() as u64;
        let info = measure(|| drop(parse_hashes(&both)));
        // An unjudged value is kept as written, in a list of its own.
        assert_eq!(info.count_total, 1 + 2 * unjudged, "{both}");
    }
}

#[test]
fn digest_is_read_copied_and_compared_without_allocating() {
    let info = measure(|| {
        let digest: Digest = SHA256.parse().unwrap();
        assert!(digest == digest.clone());
    });
    assert_eq!(info.count_total, 0);
}
