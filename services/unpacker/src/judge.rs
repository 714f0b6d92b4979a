//! Judges a member: compares its bytes with its entry's declaration.

use fixity::{Algorithm, Computed, Digest, Mismatch, Verdict};
use model::{Assurance, Location, ManifestEntry, MemberResult, StoredBitstream, Validators, content_coding};

/// What an entry declares of its bitstream (RS-8).
#[derive(Debug, Clone)]
pub(crate) struct Declared {
    digests: Vec<Digest>,
    length: Option<u64>,
}

impl Declared {
    /// What an entry declares of its member; of a patch in its place, what the link declares.
    pub(crate) fn by(entry: &ManifestEntry) -> Self {
        let (hash, length) = match entry.patch() {
            Some(link) => (link.hash, link.length),
            None => (entry.metadata.hash.clone(), entry.metadata.length),
        };
        let hashes = hash.as_deref().map(fixity::parse_hashes).unwrap_or_default();
        Self { digests: hashes.known, length }
    }

    /// The digest algorithms to compute while the bytes pass.
    pub(crate) fn algorithms(&self) -> impl Iterator<Item = Algorithm> + '_ {
        self.digests.iter().map(Digest::algorithm)
    }

    /// How much the bytes prove, or how they differ.
    pub(crate) fn judge(&self, computed: &Computed) -> Result<Assurance, Mismatch> {
        match fixity::judge(&self.digests, self.length, computed) {
            Verdict::Verified { .. } => Ok(Assurance::Digest),
            Verdict::LengthOnly => Ok(Assurance::Length),
            Verdict::NothingDeclared => Ok(Assurance::None),
            Verdict::Mismatch { what } => Err(what),
        }
    }
}

/// Result for a judged member in place. The manifest supplies what a server's response would.
pub(crate) fn verified(
    entry: &ManifestEntry,
    computed: Computed,
    assurance: Assurance,
    location: Location,
) -> MemberResult {
    let stored = StoredBitstream {
        location,
        computed,
        media_type: entry.metadata.media_type.clone(),
        encoding: entry.metadata.encoding.as_deref().and_then(content_coding),
        validators: Validators::default(),
        modified: None,
        final_url: None,
    };
    MemberResult::Verified { stored, assurance }
}
