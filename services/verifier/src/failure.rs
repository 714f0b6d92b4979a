//! Failures of bytes that do not match their declaration.

use fixity::Mismatch;
use model::{Disposition, Evidence, Failure, ProblemReason, ResourceUri, StoredBitstream, Validators, bytes};

/// The bytes may be damaged in transit, or the Source lists or serves them wrongly: another attempt can tell.
pub(crate) fn mismatch(uri: &ResourceUri, what: &Mismatch, stored: StoredBitstream) -> Failure {
    let (noun, evidence) = seen(what, &stored);
    let reason = match what {
        Mismatch::Length { .. } => ProblemReason::LengthMismatch,
        Mismatch::Digest { .. } => ProblemReason::DigestMismatch,
    };
    Failure {
        reason,
        message: format!(
            "{uri} has another {noun} than its Source declares: {what}. It was not taken; what was held before is kept. \
             Either it has changed since it was listed, then the next list settles it, or the Source serves or lists it wrongly"
        ),
        disposition: Disposition::Retry { after: None },
        evidence,
    }
}

/// A later version than the listed one. A retry would get the same bytes; a later list will declare them.
pub(crate) fn changed_again(uri: &ResourceUri, what: &Mismatch, stored: StoredBitstream) -> Failure {
    let (noun, evidence) = seen(what, &stored);
    let modified = stored.modified.map_or(String::new(), |time| format!(" (last modified {time})"));
    Failure {
        reason: ProblemReason::ChangedAgain,
        message: format!(
            "{uri} has changed again since it was listed{modified}, and has another {noun} than declared: {what}. It is kept \
             as a candidate and not served; what was held before is kept too. The next list that declares its digest settles it"
        ),
        disposition: Disposition::Retry { after: None },
        evidence: Evidence { candidate: Some(Box::new(stored)), ..evidence },
    }
}

fn seen(what: &Mismatch, stored: &StoredBitstream) -> (&'static str, Evidence) {
    let (noun, expected, computed) = match what {
        Mismatch::Length { expected, computed } => ("length", bytes(*expected), bytes(*computed)),
        Mismatch::Digest { expected, computed } => ("digest", expected.to_string(), computed.to_string()),
    };
    let Validators { etag, last_modified } = stored.validators.clone();
    let length = Some(stored.computed.length().to_string());
    let said = [
        ("content-type", stored.media_type.clone()),
        ("content-length", length),
        ("etag", etag),
        ("last-modified", last_modified),
    ];
    let headers = said.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    let evidence = Evidence {
        final_url: stored.final_url.clone(),
        headers,
        expected: Some(expected),
        computed: Some(computed),
        ..Evidence::default()
    };
    (noun, evidence)
}

/// The bytes are missing in the store, or are not those that were stored.
pub(crate) fn not_there(uri: &ResourceUri) -> Failure {
    Failure {
        reason: ProblemReason::MissingBytes,
        message: format!("the bytes fetched for {uri} are not in the store; they are fetched again"),
        disposition: Disposition::Retry { after: None },
        evidence: Evidence::default(),
    }
}
