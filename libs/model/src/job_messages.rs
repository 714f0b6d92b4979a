//! Messages of jobs: their kinds, and an upper bound of their length on the wire, without encoding them. A message that
//! stays within a process is only measured, and most are far below any limit.
//!
//! Each constant is the encoding around the values, with the longest numbers and times. Failures are few, and
//! are encoded to be measured.

use fixity::{Computed, Digest};

use crate::wire::{Message, written};
use crate::{
    Declaration, FetchItem, FetchJob, Fetched, FetchedResult, Location, Outcome, OutcomeResult, Outcomes,
    PatchUse, SourceId, StoredBitstream, Terms, Validators, VerifyJob,
};

const FETCH_JOB: usize = r#"{"kind":"fetch-job","version":65535,"body":{"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","source":,"run":"01ARZ3NDEKTSV4RRFFQ69G5FAV","lane":,"terms":,"items":[]}}"#.len();
const FETCH_ITEM: usize = r#"{"uri":,"seq":18446744073709551615,"declaration":,"listed_until":"-009999-01-02T01:59:59.999999999Z","held":,"mend":true,"held_type":,"from":,"patch":},"#.len();
const VERIFY_JOB: usize = r#"{"kind":"verify-job","version":65535,"body":{"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","source":,"run":"01ARZ3NDEKTSV4RRFFQ69G5FAV","lane":,"items":[],"requests":18446744073709551615,"elapsed_ms":18446744073709551615,"put":[]}}"#.len();
const FETCHED: usize = r#"{"uri":,"seq":18446744073709551615,"declaration":,"listed_until":"-009999-01-02T01:59:59.999999999Z","result":,"patch":},"#.len();
const OUTCOMES: usize = r#"{"kind":"outcomes","version":65535,"body":{"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","source":,"run":"01ARZ3NDEKTSV4RRFFQ69G5FAV","lane":,"items":[],"requests":18446744073709551615,"elapsed_ms":18446744073709551615}}"#.len();
const OUTCOME: usize = r#"{"uri":,"seq":18446744073709551615,"result":,"patch":},"#.len();
const RESULT: usize = r#"{"verified":{"stored":,"assurance":"digest"}}"#.len();
const STORED: usize = r#"{"location":,"computed":,"media_type":,"encoding":,"validators":,"modified":"-009999-01-02T01:59:59.999999999Z","final_url":}"#.len();
const OBJECT: usize =
    r#"{"kind":"object","sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}"#.len();
const MEMBER: usize = r#"{"kind":"package","source":,"package":"01ARZ3NDEKTSV4RRFFQ69G5FAV","offset":18446744073709551615,"stored_length":18446744073709551615,"method":"deflated"}"#.len();
const COMPUTED: usize = r#"{"length":18446744073709551615,"digests":[]}"#.len();
const DECLARATION: usize = r#"{"digests":[],"unjudged":[],"length":18446744073709551615,"media_type":,"encoding":,"lastmod":"-009999-01-02T01:59:59.999999999Z"}"#.len();
const VALIDATORS: usize = r#"{"etag":,"last_modified":}"#.len();

fn fetch_job(job: &FetchJob) -> usize {
    let FetchJob { id: _, source, run: _, origin, terms, items } = job;
    let terms = if *terms == Terms::default() { 0 } else { written(terms) };
    let items: usize = items.iter().map(fetch_item).sum();
    FETCH_JOB + text(source.as_str()) + text(origin.as_str()) + terms + items
}

fn verify_job(job: &VerifyJob) -> usize {
    let VerifyJob { id: _, source, run: _, origin, items, requests: _, elapsed_ms: _, put } = job;
    let items: usize = items.iter().map(fetched).sum();
    let put: usize = put.iter().map(|object| location(object) + 1).sum();
    VERIFY_JOB + text(source.as_str()) + text(origin.as_str()) + items + put
}

fn outcomes(outcomes: &Outcomes) -> usize {
    let Outcomes { id: _, source, run: _, origin, items, requests: _, elapsed_ms: _ } = outcomes;
    let items: usize = items.iter().map(outcome).sum();
    OUTCOMES + text(source.as_str()) + text(origin.as_str()) + items
}

fn fetch_item(item: &FetchItem) -> usize {
    let FetchItem {
        uri,
        seq: _,
        declaration: declared,
        listed_until: _,
        held,
        repair: _,
        held_type,
        from,
        patch,
    } = item;
    let from = from.as_ref().map_or(0, |from| text(from.as_str()));
    // Few items have patches. They are encoded to be measured, like failures.
    let patch = patch.as_ref().map_or(0, written);
    from + patch
        + FETCH_ITEM
        + text(uri.as_str())
        + declaration(declared)
        + validators(held)
        + optional(held_type)
}

fn fetched(fetched: &Fetched) -> usize {
    let Fetched { uri, seq: _, declaration: declared, listed_until: _, result, patch } = fetched;
    let patch = patch.as_ref().map_or(0, written);
    patch + FETCHED + text(uri.as_str()) + declaration(declared) + RESULT + result.bytes()
}

fn outcome(outcome: &Outcome) -> usize {
    let Outcome { uri, seq: _, result, patch } = outcome;
    let result = match result {
        OutcomeResult::Verified { stored: of, assurance: _ } => stored(of),
        OutcomeResult::NotModified | OutcomeResult::Deferred => 0,
        OutcomeResult::Failed(failure) => written(failure),
    };
    let patch = patch.as_ref().map_or(0, written);
    patch + OUTCOME + text(uri.as_str()) + RESULT + result
}

fn stored(stored: &StoredBitstream) -> usize {
    let StoredBitstream {
        location: place,
        computed: of,
        media_type,
        encoding,
        validators: given,
        modified: _,
        final_url,
    } = stored;
    STORED + location(place) + around(of, [media_type, encoding, final_url], given)
}

/// The values of a stored bitstream beside its location.
fn around(of: &Computed, texts: [&Option<String>; 3], given: &Validators) -> usize {
    computed(of) + texts.into_iter().map(optional).sum::<usize>() + validators(given)
}

fn location(location: &Location) -> usize {
    match location {
        Location::Object { sha256: _ } => OBJECT,
        Location::Pack { source, .. } | Location::Package { source, .. } => MEMBER + text(source.as_str()),
    }
}

fn computed(computed: &Computed) -> usize {
    COMPUTED + digests(computed.digests())
}

fn declaration(declaration: &Declaration) -> usize {
    let Declaration { digests: declared, unjudged, length: _, media_type, encoding, lastmod: _ } =
        declaration;
    let unjudged: usize = unjudged.iter().map(|digest| text(digest) + 1).sum();
    DECLARATION + digests(declared) + unjudged + optional(media_type) + optional(encoding)
}

fn validators(validators: &Validators) -> usize {
    let Validators { etag, last_modified } = validators;
    VALIDATORS + optional(etag) + optional(last_modified)
}

/// `"<algorithm>:<hexadecimal digits>",` each.
fn digests(digests: &[Digest]) -> usize {
    digests.iter().map(|digest| 4 + digest.algorithm().as_str().len() + 2 * digest.bytes().len()).sum()
}

fn optional(value: &Option<String>) -> usize {
    value.as_deref().map_or(0, text)
}

/// A quoted text, in one pass. Chunks are so short that the extra bytes of a chunk fit into a byte: the
/// compiler can vectorize the count.
fn text(text: &str) -> usize {
    let escapes = |piece: &[u8]| piece.iter().map(|byte| escape(*byte)).sum::<u8>();
    2 + text.len() + text.as_bytes().chunks(32).map(|piece| usize::from(escapes(piece))).sum::<usize>()
}

/// The extra bytes of a byte in JSON. Control characters take at most six bytes, quotes and backslashes two.
fn escape(byte: u8) -> u8 {
    5 * u8::from(byte < 0x20) + u8::from(byte == b'"' || byte == b'\\')
}

impl FetchItem {
    /// An upper bound of the bytes that its result takes in a [`VerifyJob`], beside those of the result itself.
    pub fn result_envelope_bytes(&self) -> usize {
        FETCHED + text(self.uri.as_str()) + declaration(&self.declaration) + RESULT
    }
}

impl FetchedResult {
    /// An upper bound of its bytes on the wire.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Stored(of) | Self::Kept(of) => stored(of),
            Self::NotModified | Self::Deferred => 0,
            Self::Failed(failure) => written(failure),
        }
    }
}

impl PatchUse {
    /// Its bytes on the wire.
    pub fn bytes_on_the_wire(&self) -> usize {
        written(self)
    }
}

impl StoredBitstream {
    /// An upper bound of its bytes on the wire, before its location is known: it may be a member of a pack of this
    /// Source.
    pub fn bytes_before_it_is_stored(
        source: &SourceId,
        computed: &Computed,
        texts: [&Option<String>; 3],
        validators: &Validators,
    ) -> usize {
        STORED + MEMBER.max(OBJECT) + text(source.as_str()) + around(computed, texts, validators)
    }
}

impl Outcome {
    /// An upper bound of its bytes in [`Outcomes`] on the wire.
    pub fn bytes(&self) -> usize {
        outcome(self)
    }
}

impl Message for FetchJob {
    const KIND: &'static str = "fetch-job";
    const VERSION: u16 = 1;

    fn size(&self) -> Option<usize> {
        Some(fetch_job(self))
    }
}

impl Message for VerifyJob {
    const KIND: &'static str = "verify-job";
    const VERSION: u16 = 1;

    fn size(&self) -> Option<usize> {
        Some(verify_job(self))
    }
}

impl Message for Outcomes {
    const KIND: &'static str = "outcomes";
    const VERSION: u16 = 1;

    fn size(&self) -> Option<usize> {
        Some(outcomes(self))
    }
}

#[cfg(test)]
mod tests;
