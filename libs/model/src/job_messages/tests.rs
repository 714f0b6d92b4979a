use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};
use std::sync::Arc;

use fixity::{Algorithm, Hasher};
use jiff::{SignedDuration, Timestamp};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::{
    Assurance, Declaration, Disposition, Evidence, Failure, FetchItem, FetchJob, Fetched, FetchedResult,
    JobId, Location, Message, Method, Origin, Outcome, OutcomeResult, Outcomes, PackId, PackageId, Patch,
    PatchBase, PatchItem, PatchUnused, PatchUse, ProblemReason, ResourceUri, Robots, RunId, Seq, SourceId,
    StoredBitstream, Terms, Validators, VerifyJob, encode,
};

fn any_text() -> impl Strategy<Value = String> {
    let nasty = vec(prop_oneof![Just('\u{1}'), Just('"'), Just('\\'), Just('ä'), Just('\n')], 0..40);
    prop_oneof![".{0,60}", nasty.prop_map(String::from_iter)]
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), Just(u64::MAX)]
}

fn moment() -> impl Strategy<Value = Timestamp> {
    let seconds = Timestamp::MIN.as_second() + 1..Timestamp::MAX.as_second();
    let any = (seconds, 0..1_000_000_000i32).prop_map(|(s, n)| Timestamp::new(s, n).unwrap());
    prop_oneof![any, Just(Timestamp::MIN), Just(Timestamp::MAX)]
}

fn uri() -> impl Strategy<Value = ResourceUri> {
    any_text().prop_map(|path| ResourceUri::try_from(format!("https://example.org/{path}")).unwrap())
}

fn source() -> impl Strategy<Value = SourceId> {
    "[a-z0-9-]{1,80}".prop_map(|id| id.parse().unwrap())
}

fn origin() -> impl Strategy<Value = Origin> {
    "https://[a-z]{1,60}\\.org".prop_map(|origin| origin.parse().unwrap())
}

fn validators() -> impl Strategy<Value = Validators> {
    (option::of(any_text()), option::of(any_text()))
        .prop_map(|(etag, last_modified)| Validators { etag, last_modified })
}

fn algorithms() -> impl Strategy<Value = Vec<Algorithm>> {
    proptest::sample::subsequence(Algorithm::ALL.to_vec(), 0..=Algorithm::ALL.len())
}

fn declaration() -> impl Strategy<Value = Declaration> {
    let texts = (vec(any_text(), 0..3), option::of(any_text()), option::of(any_text()));
    (algorithms(), texts, option::of(number()), option::of(moment())).prop_map(
        |(algorithms, (unjudged, media_type, encoding), length, lastmod)| {
            let digests = Hasher::new(algorithms).finish().digests().to_vec();
            Declaration { digests, unjudged, length, media_type, encoding, lastmod }
        },
    )
}

fn location() -> impl Strategy<Value = Location> {
    let method = prop_oneof![Just(Method::Stored), Just(Method::Deflated)];
    (0..3, source(), number(), number(), method).prop_map(|(kind, source, offset, stored_length, method)| {
        match kind {
            0 => Location::Object { sha256: fixity::Sha256::of(b"abc") },
            1 => Location::Pack { source, pack: PackId::fresh(), offset, stored_length, method },
            _ => Location::Package { source, package: PackageId::fresh(), offset, stored_length, method },
        }
    })
}

fn stored() -> impl Strategy<Value = StoredBitstream> {
    let texts = (option::of(any_text()), option::of(any_text()), option::of(any_text()));
    (location(), algorithms(), texts, validators(), option::of(moment())).prop_map(
        |(location, algorithms, (media_type, encoding, final_url), validators, modified)| {
            let computed = Hasher::new(algorithms).finish();
            StoredBitstream { location, computed, media_type, encoding, validators, modified, final_url }
        },
    )
}

fn failure() -> impl Strategy<Value = Failure> {
    let seen = (any_text(), vec(any_text(), 0..3), option::of(stored()), option::of(any::<u16>()));
    let disposition = prop_oneof![
        Just(Disposition::Refuse),
        Just(Disposition::Retry { after: None }),
        Just(Disposition::Retry { after: Some(SignedDuration::MIN) }),
    ];
    (seen, disposition).prop_map(|((text, redirects, candidate, status), disposition)| Failure {
        reason: ProblemReason::HttpClientError,
        message: text.clone(),
        disposition,
        evidence: Evidence {
            redirects,
            status,
            headers: BTreeMap::from([("etag".to_owned(), text)]),
            candidate: candidate.map(Box::new),
            ..Evidence::default()
        },
    })
}

fn fetched_result() -> impl Strategy<Value = FetchedResult> {
    prop_oneof![
        stored().prop_map(|stored| FetchedResult::Stored(Arc::new(stored))),
        stored().prop_map(|stored| FetchedResult::Kept(Arc::new(stored))),
        Just(FetchedResult::NotModified),
        Just(FetchedResult::Deferred),
        failure().prop_map(FetchedResult::Failed),
    ]
}

fn outcome_result() -> impl Strategy<Value = OutcomeResult> {
    let assurance = prop_oneof![Just(Assurance::Digest), Just(Assurance::Length), Just(Assurance::None)];
    prop_oneof![
        (stored().prop_map(Arc::new), assurance)
            .prop_map(|(stored, assurance)| OutcomeResult::Verified { stored, assurance }),
        Just(OutcomeResult::NotModified),
        Just(OutcomeResult::Deferred),
        failure().prop_map(OutcomeResult::Failed),
    ]
}

fn terms() -> impl Strategy<Value = Terms> {
    (option::of(1..u32::MAX), option::of(any_text()), option::of(any_text())).prop_map(
        |(rate, contact, credential)| Terms {
            requests_per_second: rate.and_then(NonZeroU32::new),
            robots: rate.map(|_| Robots::Obey),
            contact,
            credential,
            allow_networks: rate
                .map(|rate| Ipv4Addr::from(rate).to_string().parse().unwrap())
                .into_iter()
                .collect(),
            entry: rate.map(|rate| format!("http://h{rate}.example").parse().unwrap()),
            per_origin: rate.and_then(|rate| NonZeroU16::new(rate as u16)),
            max_body_bytes: rate.and_then(|rate| NonZeroU64::new(rate.into())),
            accept_html: rate.is_none(),
        },
    )
}

fn fetch_item() -> impl Strategy<Value = FetchItem> {
    let held = (validators(), option::of(any_text()));
    (uri(), number(), declaration(), option::of(moment()), held, any::<bool>()).prop_map(
        |(uri, seq, declaration, listed_until, (held, held_type), repair)| FetchItem {
            uri,
            seq: Seq::new(seq),
            declaration,
            listed_until,
            held,
            repair,
            held_type,
            from: None,
            patch: None,
        },
    )
}

fn fetched() -> impl Strategy<Value = Fetched> {
    (uri(), number(), declaration(), option::of(moment()), fetched_result()).prop_map(
        |(uri, seq, declaration, listed_until, result)| Fetched {
            uri,
            seq: Seq::new(seq),
            declaration,
            listed_until,
            result,
            patch: None,
        },
    )
}

fn fetch_job() -> impl Strategy<Value = FetchJob> {
    (source(), origin(), terms(), vec(fetch_item(), 0..4)).prop_map(|(source, origin, terms, items)| {
        FetchJob { id: JobId::fresh(), source, run: RunId::fresh(), origin, terms, items }
    })
}

fn verify_job() -> impl Strategy<Value = VerifyJob> {
    (source(), origin(), vec(fetched(), 0..4), number(), number(), vec(location(), 0..3)).prop_map(
        |(source, origin, items, requests, elapsed_ms, put)| VerifyJob {
            id: JobId::fresh(),
            source,
            run: RunId::fresh(),
            origin,
            items,
            requests,
            elapsed_ms,
            put,
        },
    )
}

fn outcomes() -> impl Strategy<Value = Outcomes> {
    let outcome = (uri(), number(), outcome_result()).prop_map(|(uri, seq, result)| Outcome {
        uri,
        seq: Seq::new(seq),
        result,
        patch: None,
    });
    (source(), origin(), vec(outcome, 0..4), number(), number()).prop_map(
        |(source, origin, items, requests, elapsed_ms)| Outcomes {
            id: JobId::fresh(),
            source,
            run: RunId::fresh(),
            origin,
            items,
            requests,
            elapsed_ms,
        },
    )
}

/// How much the bound may exceed the encoding: the JSON around values that are left out or shorter, of each
/// item and of the message.
const AROUND: usize = 640;

#[track_caller]
fn is_bounded<M: Message>(message: &M, items: usize) -> Result<(), TestCaseError> {
    let told = message.size().expect("it is told");
    let is = encode(message).len();
    prop_assert!(told >= is, "{told} told of {is}");
    prop_assert!(told - is <= AROUND * (1 + items), "{told} told of {is}");
    Ok(())
}

proptest! {
    #[test]
    fn what_is_told_of_a_fetch_job_is_enough_and_not_much_more(job in fetch_job()) {
        is_bounded(&job, job.items.len())?;
    }

    #[test]
    fn what_is_told_of_a_verify_job_is_enough_and_not_much_more(job in verify_job()) {
        is_bounded(&job, job.items.len())?;
    }

    #[test]
    fn what_is_told_of_outcomes_is_enough_and_not_much_more(outcomes in outcomes()) {
        is_bounded(&outcomes, outcomes.items.len())?;
    }
}

#[test]
fn the_longest_of_everything_is_no_longer_than_is_told() {
    let last = Some(Timestamp::MIN);
    let stored = Arc::new(StoredBitstream {
        location: Location::Package {
            source: "s".repeat(80).parse().unwrap(),
            package: PackageId::fresh(),
            offset: u64::MAX,
            stored_length: u64::MAX,
            method: Method::Deflated,
        },
        computed: Hasher::new(Algorithm::ALL).finish(),
        media_type: Some("\u{1}".repeat(100)),
        encoding: Some("\u{1}".repeat(9)),
        validators: Validators { etag: Some("\"".repeat(100)), last_modified: Some("\\".repeat(100)) },
        modified: last,
        final_url: Some("\u{1f}".repeat(100)),
    });
    let declaration = Declaration {
        digests: stored.computed.digests().to_vec(),
        unjudged: vec!["\u{0}".repeat(10); 3],
        length: Some(u64::MAX),
        media_type: stored.media_type.clone(),
        encoding: Some("\u{7}".to_owned()),
        lastmod: last,
    };
    let uri: ResourceUri = format!("http://example.org/{}", "\\".repeat(100)).try_into().unwrap();
    let (source, origin): (SourceId, Origin) =
        ("s".repeat(80).parse().unwrap(), "https://e.org:65535".parse().unwrap());
    let id = JobId::fresh();
    let run = RunId::fresh();
    let seq = Seq::new(u64::MAX);
    let base = PatchBase {
        location: stored.location.clone(),
        computed: stored.computed.clone(),
        media_type: stored.media_type.clone(),
    };
    let step = Patch {
        url: uri.clone(),
        digests: declaration.digests.clone(),
        length: u64::MAX,
        makes: declaration.digests.clone(),
        makes_length: u64::MAX,
        stored: Some(Box::new(base.clone())),
    };
    let patched =
        PatchItem { base: Some(base), steps: vec![step; 8], unused: Some(PatchUnused::NotApplicable) };
    let used = PatchUse::Applied { patches: vec![uri.clone(); 8], bytes: u64::MAX, saved: u64::MAX };
    let fetch = FetchJob {
        id,
        source: source.clone(),
        run,
        origin: origin.clone(),
        terms: Terms { contact: Some("\u{1}".repeat(50)), ..Terms::default() },
        items: vec![FetchItem {
            uri: uri.clone(),
            seq,
            declaration: declaration.clone(),
            listed_until: last,
            held: stored.validators.clone(),
            repair: true,
            held_type: Some("\u{1}".repeat(9)),
            from: None,
            patch: Some(Box::new(patched)),
        }],
    };
    is_bounded(&fetch, 1).unwrap();
    let verify = VerifyJob {
        id,
        source: source.clone(),
        run,
        origin: origin.clone(),
        items: vec![Fetched {
            uri: uri.clone(),
            seq,
            declaration,
            listed_until: last,
            result: FetchedResult::Stored(Arc::clone(&stored)),
            patch: Some(Box::new(used.clone())),
        }],
        requests: u64::MAX,
        elapsed_ms: u64::MAX,
        put: vec![stored.location.clone(); 2],
    };
    is_bounded(&verify, 1).unwrap();
    let result = OutcomeResult::Verified { stored, assurance: Assurance::Digest };
    let items = vec![Outcome { uri, seq, result, patch: Some(Box::new(used)) }];
    let outcomes = Outcomes { id, source, run, origin, items, requests: u64::MAX, elapsed_ms: u64::MAX };
    is_bounded(&outcomes, 1).unwrap();
}
