use bus::MemoryBus;
use bytes::Bytes;
use fixity::{Computed, Sha256};
use model::{Declaration, Disposition, JobId, ProblemReason, RunId, Seq};
use store::{PackLimits, PackMember, SharedPacks};
use testkit::gated::GatedObjects;

use super::*;

/// A received bitstream, last modified at this second of a day, and its location.
async fn received(store: &Store, content: &'static [u8], modified: Option<i64>) -> StoredBitstream {
    let computed = Computed::of(content);
    let location = store
        .put_bitstream(store::NewBitstream::Memory(computed.sha256(), Bytes::from_static(content)))
        .await
        .unwrap();
    let modified = modified.map(second);
    let validators = Validators::default();
    StoredBitstream {
        location,
        computed,
        media_type: None,
        encoding: None,
        validators,
        modified,
        final_url: None,
    }
}

/// A bitstream under its digest that no job says it has put.
fn received_nowhere(content: &[u8]) -> StoredBitstream {
    let computed = Computed::of(content);
    let location = Location::Object { sha256: computed.sha256() };
    let validators = Validators::default();
    let (media_type, encoding, modified, final_url) = (None, None, None, None);
    StoredBitstream { location, computed, media_type, encoding, validators, modified, final_url }
}

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + second).unwrap()
}

async fn judged(content: &'static [u8], declaration: Declaration) -> OutcomeResult {
    let store = Store::in_memory();
    let stored = received(&store, content, None).await;
    judge_one(store, declaration, FetchedResult::Stored(Arc::new(stored))).await
}

async fn judge_one(store: Store, declaration: Declaration, result: FetchedResult) -> OutcomeResult {
    judge_listed(store, declaration, None, result).await
}

async fn judge_listed(
    store: Store,
    declaration: Declaration,
    listed_until: Option<Timestamp>,
    result: FetchedResult,
) -> OutcomeResult {
    judge_put(store, declaration, listed_until, result, Vec::new()).await
}

async fn judge_put(
    store: Store,
    declaration: Declaration,
    listed_until: Option<Timestamp>,
    result: FetchedResult,
    put: Vec<Location>,
) -> OutcomeResult {
    let (uri, seq) = ("http://h/a".parse().unwrap(), Seq::new(1));
    let job = VerifyJob {
        id: JobId::fresh(),
        source: "s".parse().unwrap(),
        run: RunId::fresh(),
        origin: "http://h".parse().unwrap(),
        items: vec![Fetched { uri, seq, declaration, listed_until, result, patch: None }],
        requests: 1,
        elapsed_ms: 1,
        put,
    };
    let verifier = Verifier::new(store, Arc::new(MemoryBus::new(4)));
    verifier.judge(&job).await.unwrap().items.remove(0).result
}

fn declares(content: &[u8]) -> Declaration {
    Declaration { digests: vec![Sha256::of(content).into()], ..Declaration::default() }
}

#[tokio::test]
async fn equal_digests_are_verified() {
    let result = judged(b"abc", declares(b"abc")).await;
    assert!(matches!(result, OutcomeResult::Verified { assurance: Assurance::Digest, .. }), "{result:?}");
}

#[tokio::test]
async fn other_bytes_than_declared_are_refused_with_both_values() {
    let OutcomeResult::Failed(failure) = judged(b"abc", declares(b"xyz")).await else {
        panic!("verified what differs")
    };
    assert_eq!(failure.reason, ProblemReason::DigestMismatch);
    assert_eq!(failure.evidence.expected.unwrap(), format!("sha-256:{}", Sha256::of(b"xyz")));
    assert_eq!(failure.evidence.computed.unwrap(), format!("sha-256:{}", Sha256::of(b"abc")));
}

#[tokio::test]
async fn another_length_is_refused_and_the_same_one_is_little_assurance() {
    let declared = |length| Declaration { length: Some(length), ..Declaration::default() };
    let OutcomeResult::Failed(failure) = judged(b"abc", declared(4)).await else {
        panic!("verified what differs")
    };
    assert_eq!(failure.reason, ProblemReason::LengthMismatch);
    let result = judged(b"abc", declared(3)).await;
    assert!(matches!(result, OutcomeResult::Verified { assurance: Assurance::Length, .. }), "{result:?}");
    let result = judged(b"abc", Declaration::default()).await;
    assert!(matches!(result, OutcomeResult::Verified { assurance: Assurance::None, .. }), "{result:?}");
}

#[tokio::test]
async fn bytes_that_are_not_in_the_store_are_never_verified() {
    let stored = Arc::new(received(&Store::in_memory(), b"abc", None).await);
    for result in [FetchedResult::Stored(Arc::clone(&stored)), FetchedResult::Kept(stored)] {
        let OutcomeResult::Failed(failure) = judge_one(Store::in_memory(), declares(b"abc"), result).await
        else {
            panic!("verified what is not there")
        };
        assert_eq!(failure.reason, ProblemReason::MissingBytes);
        assert_eq!(failure.disposition, Disposition::Retry { after: None });
    }
}

#[tokio::test]
async fn what_the_store_acknowledged_is_not_asked_for_and_nothing_else_is_trusted() {
    let (objects, gate) = GatedObjects::closed();
    gate.open(1);
    let store = Store::over_objects(Arc::clone(&objects), "memory", std::env::temp_dir());
    let packs = SharedPacks::new(store.clone(), PackLimits::default());
    let mut batch = packs.batch(Timestamp::UNIX_EPOCH);
    let (uri, computed) = ("http://h/a".parse().unwrap(), Computed::of(b"abc"));
    let (media_type, last_modified) = (None, None);
    let member = PackMember { uri: &uri, bytes: b"abc", computed: &computed, media_type, last_modified };
    batch.add(member).unwrap();
    let packed = packs.store(&"s".parse().unwrap(), batch).await.unwrap();
    let stored = StoredBitstream { location: packed.members[0].clone(), ..received_nowhere(b"abc") };
    let judged = |stored: &StoredBitstream, put: Vec<Location>| {
        let result = FetchedResult::Stored(Arc::new(stored.clone()));
        judge_put(store.clone(), declares(b"abc"), None, result, put)
    };
    let whole = packed.pack.unwrap();
    let is_verified = |result| matches!(result, OutcomeResult::Verified { assurance: Assurance::Digest, .. });
    assert!(is_verified(judged(&stored, vec![whole.clone()]).await));
    assert_eq!(objects.heads(), 0);

    let own = received_nowhere(b"abc");
    assert!(is_verified(judged(&own, vec![whole.clone(), own.location.clone()]).await));
    assert_eq!(objects.heads(), 0);

    // Only what was acknowledged: another pack and another object are asked for.
    assert!(is_verified(judged(&stored, vec![own.location.clone()]).await));
    assert!(!is_verified(judged(&own, vec![whole.clone()]).await), "no job says that it was put");
    assert_eq!(objects.heads(), 2);

    // A bitstream behind the end of what was acknowledged is not there.
    let Location::Pack { source, pack, method, .. } = whole else { panic!("{whole:?}") };
    let shorter = Location::Pack { source, pack, offset: 0, stored_length: 3, method };
    assert!(!is_verified(judged(&stored, vec![shorter]).await));
    assert_eq!(objects.heads(), 2);
}

#[tokio::test]
async fn a_kept_candidate_is_read_whatever_a_job_says_of_it() {
    let kept = received_nowhere(b"abc");
    let put = vec![kept.location.clone()];
    let result = FetchedResult::Kept(Arc::new(kept));
    let OutcomeResult::Failed(failure) =
        judge_put(Store::in_memory(), declares(b"abc"), None, result, put).await
    else {
        panic!("verified what is not there")
    };
    assert_eq!(failure.reason, ProblemReason::MissingBytes);
}

#[tokio::test]
async fn other_bytes_of_a_certainly_later_time_have_changed_again_and_are_kept_as_a_candidate() {
    let store = Store::in_memory();
    let stored = received(&store, b"later", Some(10)).await;
    let judged = |listed_until| {
        let result = FetchedResult::Stored(Arc::new(stored.clone()));
        judge_listed(store.clone(), declares(b"listed"), listed_until, result)
    };
    let OutcomeResult::Failed(failure) = judged(Some(second(9))).await else { panic!("taken") };
    assert_eq!(failure.reason, ProblemReason::ChangedAgain);
    assert_eq!(failure.evidence.candidate.as_deref(), Some(&stored));
    for uncertain in [Some(second(10)), Some(second(11)), None] {
        let OutcomeResult::Failed(failure) = judged(uncertain).await else { panic!("taken") };
        assert_eq!(failure.reason, ProblemReason::DigestMismatch, "{uncertain:?}");
        assert_eq!(failure.evidence.candidate, None, "what may be damaged is no candidate");
    }
}

#[tokio::test]
async fn what_is_declared_is_verified_however_new_it_is() {
    let store = Store::in_memory();
    let stored = Arc::new(received(&store, b"abc", Some(10)).await);
    for result in [FetchedResult::Stored(Arc::clone(&stored)), FetchedResult::Kept(Arc::clone(&stored))] {
        let result = judge_listed(store.clone(), declares(b"abc"), Some(second(1)), result).await;
        let OutcomeResult::Verified { stored: verified, assurance } = result else { panic!("{result:?}") };
        assert_eq!((verified, assurance), (Arc::clone(&stored), Assurance::Digest));
    }
}

#[tokio::test]
async fn a_candidate_whose_bytes_were_damaged_meanwhile_is_not_there() {
    let store = Store::in_memory();
    let mut stored = received(&store, b"abd", None).await;
    stored.computed = Computed::of(b"abc");
    let result = judge_one(store, declares(b"abc"), FetchedResult::Kept(Arc::new(stored))).await;
    let OutcomeResult::Failed(failure) = result else { panic!("verified damaged bytes") };
    assert_eq!(failure.reason, ProblemReason::MissingBytes);
}

#[tokio::test]
async fn what_was_not_stored_passes_as_it_is() {
    let deferred = judge_one(Store::in_memory(), Declaration::default(), FetchedResult::Deferred).await;
    assert_eq!(deferred, OutcomeResult::Deferred);
    let same = judge_one(Store::in_memory(), Declaration::default(), FetchedResult::NotModified).await;
    assert_eq!(same, OutcomeResult::NotModified);
}

#[tokio::test]
async fn failures_that_exceed_a_message_are_deferred_and_the_first_ones_are_told() {
    let stored = StoredBitstream {
        final_url: Some("x".repeat(500)),
        modified: Some(second(2)),
        ..received_nowhere(b"abc")
    };
    let put = stored.location.clone();
    let verified = FetchedResult::Stored(Arc::new(received_nowhere(b"abc")));
    let item = |n: usize| Fetched {
        uri: format!("http://h/{n}").parse().unwrap(),
        seq: Seq::new(1),
        declaration: declares(if n == 767 { b"abc" } else { b"xyz" }),
        listed_until: Some(second(1)),
        result: if n == 767 { verified.clone() } else { FetchedResult::Stored(Arc::new(stored.clone())) },
        patch: None,
    };
    let job = VerifyJob {
        id: JobId::fresh(),
        source: "s".parse().unwrap(),
        run: RunId::fresh(),
        origin: "http://h".parse().unwrap(),
        items: (0..768).map(item).collect(),
        requests: 768,
        elapsed_ms: 1,
        put: vec![put],
    };
    let verifier = Verifier::new(Store::in_memory(), Arc::new(MemoryBus::new(4)));
    let outcomes = verifier.judge(&job).await.unwrap();
    let bytes = model::encode(&outcomes).len();
    assert!((MAX_PAYLOAD / 2..=MAX_PAYLOAD).contains(&bytes), "{bytes}");
    let told =
        outcomes.items.iter().take_while(|item| matches!(item.result, OutcomeResult::Failed(_))).count();
    assert!((100..767).contains(&told), "{told}");
    assert!(outcomes.items[told..767].iter().all(|item| item.result == OutcomeResult::Deferred));
    assert!(matches!(outcomes.items[767].result, OutcomeResult::Verified { .. }));
}
