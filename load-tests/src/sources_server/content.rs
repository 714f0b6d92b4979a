//! The bodies of resources. They are derived from Source, resource and version, so that none is stored.

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// The length of each body.
pub(super) const BODY_BYTES: usize = 1024;

/// The body of a version of a resource.
pub(super) fn body(source: u32, resource: u32, version: u32) -> Vec<u8> {
    let mut body = Vec::with_capacity(BODY_BYTES);
    for piece in 0_u32.. {
        if body.len() >= BODY_BYTES {
            break;
        }
        let mut hash = Sha256::new();
        for part in [source, resource, version, piece] {
            hash.update(part.to_be_bytes());
        }
        body.extend_from_slice(HEXLOWER.encode(&hash.finalize()).as_bytes());
    }
    body
}

/// The SHA-256 of a body, in lower-case hex.
pub(crate) fn sha256(source: u32, resource: u32, version: u32) -> String {
    HEXLOWER.encode(&Sha256::digest(body(source, resource, version)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_of_each_resource_has_a_body_of_its_own() {
        let all = [(1, 2, 3), (2, 2, 3), (1, 3, 3), (1, 2, 4)].map(|(s, r, v)| body(s, r, v));
        for (place, one) in all.iter().enumerate() {
            assert_eq!(one.len(), BODY_BYTES);
            assert!(all[..place].iter().all(|other| other != one));
        }
        assert_eq!(body(1, 2, 3), all[0]);
    }
}
