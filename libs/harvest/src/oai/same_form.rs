//! Records that are the same metadata in other bytes: METS of DSpace has the time of the answer in it, and some servers
//! indent each answer anew. Each re-fetch would look like a change.

use std::collections::HashSet;

use fixity::Sha256;
use model::Bitstream;
use oaipmh::{Limits, comparison_digest};
use store::Store;

/// Bytes of stored records that are read together.
const TOGETHER: u64 = 8 << 20;

/// Those of the given records, which differ in bytes from what is stored, that are the same metadata. A stored record
/// that cannot be read is not the same: the new one replaces it.
pub(super) async fn among(store: &Store, differing: Vec<(usize, &str, &Bitstream)>) -> HashSet<usize> {
    let mut same = HashSet::new();
    let mut rest = &differing[..];
    while !rest.is_empty() {
        let mut bytes = 0;
        let fitting = rest.iter().take_while(|(_, _, held)| {
            bytes += held.computed.length();
            bytes <= TOGETHER
        });
        let (now, later) = rest.split_at(fitting.count().max(1));
        rest = later;
        let stored: Vec<&Bitstream> = now.iter().map(|(_, _, held)| *held).collect();
        for ((n, document, _), read) in now.iter().zip(store.read_batch(&stored).await) {
            let Ok(before) = read else { continue };
            if std::str::from_utf8(&before).is_ok_and(|before| is_same(document, before)) {
                same.insert(*n);
            }
        }
    }
    same
}

/// A record as it is stored, if that is the same metadata; else as it came.
pub(super) async fn as_stored(store: &Store, document: String, held: &Bitstream) -> String {
    if Sha256::of(document.as_bytes()) == held.computed.sha256() {
        return document;
    }
    let bytes = store.read_batch(&[held]).await.pop().and_then(Result::ok);
    let stored = bytes.and_then(|bytes| String::from_utf8(bytes.into()).ok());
    stored.filter(|stored| is_same(&document, stored)).unwrap_or(document)
}

/// Whether two canonical documents are the same metadata.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let digest = |document| comparison_digest(document, &Limits::default()).ok();
    one == other || digest(one).is_some_and(|one| digest(other) == Some(one))
}
