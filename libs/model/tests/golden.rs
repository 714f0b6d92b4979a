//! Messages on the wire stay as they are: each file of `tests/golden` is a message as sent.
//! `<kind>.v<version>.json` is sent today; `<kind>.v<version>-<what>.json` was sent by an earlier version,
//! and is still read. To change a message on purpose, keep the earlier file under such a name and write
//! today's anew: `WRITE_GOLDEN=1 cargo test -p model --test golden`.
#![allow(missing_docs)]

use std::collections::BTreeMap;
use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fixity::{Algorithm, Computed, Hasher, Sha256};
use jiff::{SignedDuration, Timestamp};
use model::{
    Assurance, ChangeNotification, Contents, Declaration, Disposition, Evidence, Failure, FetchItem,
    FetchJob, Fetched, FetchedResult, JobId, Location, ManifestEntry, ManifestHeader, MemberOutcome,
    MemberResult, Message, Method, Origin, Outcome, OutcomeResult, Outcomes, PackageId, PackageJob,
    PackageOutcome, PackageResult, Patch, PatchBase, PatchItem, PatchUnused, PatchUse, ProblemReason,
    ResourceUri, Robots, RunId, Seq, SetId, SourceId, StoredBitstream, Terms, UnpackJob, UnpackTask,
    Validators, VerifyJob, decode, encode,
};
use resourcesync::{Capability, Datetime, Metadata};

const SHA1_OF_ABC: &str = "sha-1:a9993e364706816aba3e25717850c26c9cd0d89d";

#[test]
fn a_fetch_job_is_sent_as_it_is_written_here() {
    is_sent_as(&fetch_job());
}

#[test]
fn a_fetch_job_of_a_source_with_terms_is_sent_as_it_is_written_here() {
    let terms = Terms {
        requests_per_second: NonZeroU32::new(5),
        robots: Some(Robots::Obey),
        contact: Some("mailto:harvester@example.org".to_owned()),
        credential: Some("partner-1".to_owned()),
        allow_networks: vec!["10.1.0.0/16".parse().unwrap(), "fd00:1::7".parse().unwrap()],
        entry: Some("https://example.org".parse().unwrap()),
        per_origin: NonZeroU16::new(4),
        max_body_bytes: NonZeroU64::new(1 << 30),
        accept_html: true,
    };
    is_sent_as_example("with-terms", &FetchJob { terms, ..fetch_job() });
}

#[test]
fn a_fetch_job_that_mends_is_sent_as_it_is_written_here() {
    let mut job = fetch_job();
    job.items.iter_mut().for_each(|item| item.repair = true);
    is_sent_as_example("with-mends", &job);
}

#[test]
fn a_fetch_job_with_patches_and_what_became_of_them_are_sent_as_they_are_written_here() {
    let step = Patch {
        url: uri("a.patch"),
        digests: vec![Sha256::of(b"patch").into()],
        length: 40,
        makes: declaration().digests,
        makes_length: 1_014,
        stored: None,
    };
    let stored = in_pack();
    let base = PatchBase {
        location: stored.location,
        computed: stored.computed,
        media_type: Some("application/json".to_owned()),
    };
    let mut job = fetch_job();
    job.items[0].patch = Some(Box::new(PatchItem { base: Some(base), steps: vec![step], unused: None }));
    let unused = PatchItem { base: None, steps: vec![], unused: Some(PatchUnused::UnknownType) };
    job.items[1].patch = Some(Box::new(unused));
    is_sent_as_example("with-patches", &job);

    let applied = PatchUse::Applied { patches: vec![uri("a.patch")], bytes: 40, saved: 974 };
    let uses = [applied, PatchUse::Unused(PatchUnused::NotReceived)].map(|used| Some(Box::new(used)));
    let mut fetched = verify_job();
    let mut settled = outcomes();
    for (n, used) in uses.into_iter().enumerate() {
        fetched.items[n].patch.clone_from(&used);
        settled.items[n].patch = used;
    }
    is_sent_as_example("with-patches", &fetched);
    is_sent_as_example("with-patches", &settled);
}

#[test]
fn a_notice_is_sent_as_it_is_written_here() {
    is_sent_as(&ChangeNotification {
        source: "example-org-1".parse().unwrap(),
        set: SetId::new("https://example.org/capabilitylist.xml"),
        topic: "https://example.org/change/".to_owned(),
        subscription: "85eee6c0615cbd9f2d970c86c2fb9064".to_owned(),
        received_at: moment(),
        body: b"<urlset>\xff</urlset>".to_vec(),
    });
}

#[test]
fn a_verify_job_is_sent_as_it_is_written_here() {
    is_sent_as(&verify_job());
}

#[test]
fn a_verify_job_with_the_objects_that_were_put_is_sent_as_it_is_written_here() {
    let Location::Pack { source, pack, method, .. } = in_pack().location else { panic!("no pack") };
    let whole = Location::Pack { source, pack, offset: 0, stored_length: 1_300, method };
    is_sent_as_example("with-puts", &VerifyJob { put: vec![whole, object().location], ..verify_job() });
}

#[test]
fn outcomes_are_sent_as_they_are_written_here() {
    is_sent_as(&outcomes());
}

#[test]
fn an_unpack_job_is_sent_as_it_is_written_here() {
    is_sent_as(&unpack_job());
}

#[test]
fn an_unpack_job_for_earlier_versions_is_sent_as_it_is_written_here() {
    let task = UnpackTask::Open { settled: 2, keep_earlier: true };
    is_sent_as_example("with-earlier", &UnpackJob { task, ..unpack_job() });
}

#[test]
fn a_package_job_is_sent_as_it_is_written_here() {
    is_sent_as(&package_job());
}

#[test]
fn package_outcomes_are_sent_as_they_are_written_here() {
    for (name, result) in package_results() {
        is_sent_as_example(name, &package_outcome(result));
    }
}

#[test]
fn every_message_that_was_ever_sent_is_still_read() {
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        return; // The others are writing them.
    }
    let mut read = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let result = match name.split('.').next().unwrap() {
            FetchJob::KIND => decode::<FetchJob>(&bytes).map(drop),
            VerifyJob::KIND => decode::<VerifyJob>(&bytes).map(drop),
            Outcomes::KIND => decode::<Outcomes>(&bytes).map(drop),
            PackageJob::KIND => decode::<PackageJob>(&bytes).map(drop),
            PackageOutcome::KIND => decode::<PackageOutcome>(&bytes).map(drop),
            UnpackJob::KIND => decode::<UnpackJob>(&bytes).map(drop),
            ChangeNotification::KIND => decode::<ChangeNotification>(&bytes).map(drop),
            other => panic!("{name}: {other} is no message of this crate"),
        };
        result.unwrap_or_else(|error| panic!("{name} is not read any more: {error}"));
        read += 1;
    }
    assert!(read >= 3, "{read} files of messages");
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

#[track_caller]
fn is_sent_as<T: Message + PartialEq + std::fmt::Debug>(message: &T) {
    is_kept_as(&format!("{}.v{}.json", T::KIND, T::VERSION), message);
}

/// One of several forms of a message.
#[track_caller]
fn is_sent_as_example<T: Message + PartialEq + std::fmt::Debug>(example: &str, message: &T) {
    is_kept_as(&format!("{}.v{}.{example}.json", T::KIND, T::VERSION), message);
}

#[track_caller]
fn is_kept_as<T: Message + PartialEq + std::fmt::Debug>(name: &str, message: &T) {
    let file = folder().join(name);
    let sent: serde_json::Value = serde_json::from_slice(&encode(message)).unwrap();
    let sent = serde_json::to_string_pretty(&sent).unwrap() + "\n";
    if std::env::var_os("WRITE_GOLDEN").is_some() {
        std::fs::write(&file, &sent).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = sent.lines().zip(kept.lines()).find(|(sent, kept)| sent != kept);
    assert!(
        sent == kept,
        "{name} is not what is sent (first difference: {differs:?}). If the message was changed on purpose, keep the old file \
         beside it and write it anew: WRITE_GOLDEN=1 cargo test -p model --test golden"
    );
    assert_eq!(decode::<T>(kept.as_bytes()).unwrap(), *message, "what is read is what was sent");
}

fn fetch_job() -> FetchJob {
    FetchJob {
        id: job(),
        source: source(),
        run: run(),
        origin: origin(),
        terms: Terms::default(),
        items: vec![
            FetchItem {
                uri: uri("a"),
                seq: Seq::new(7),
                declaration: declaration(),
                listed_until: Some(moment()),
                held: validators(),
                repair: false,
                held_type: None,
                from: None,
                patch: None,
            },
            FetchItem {
                uri: uri("b"),
                seq: Seq::new(8),
                declaration: Declaration::default(),
                listed_until: None,
                held: Validators::default(),
                repair: false,
                held_type: None,
                from: None,
                patch: None,
            },
        ],
    }
}

fn verify_job() -> VerifyJob {
    let results = [
        FetchedResult::Stored(Arc::new(in_pack())),
        FetchedResult::Stored(Arc::new(object())),
        FetchedResult::Kept(Arc::new(in_pack())),
        FetchedResult::NotModified,
        FetchedResult::Deferred,
        FetchedResult::Failed(throttled()),
    ];
    let fetched = |(n, result)| Fetched {
        uri: uri(&format!("{n}")),
        seq: Seq::new(n),
        declaration: declaration(),
        listed_until: Some(moment()),
        result,
        patch: None,
    };
    VerifyJob {
        id: job(),
        source: source(),
        run: run(),
        origin: origin(),
        items: (1..).zip(results).map(fetched).collect(),
        requests: 6,
        elapsed_ms: 1_234,
        put: Vec::new(),
    }
}

fn outcomes() -> Outcomes {
    let verified = |stored, assurance| OutcomeResult::Verified { stored: Arc::new(stored), assurance };
    let results = [
        verified(in_pack(), Assurance::Digest),
        verified(object(), Assurance::Length),
        verified(object(), Assurance::None),
        OutcomeResult::NotModified,
        OutcomeResult::Deferred,
        OutcomeResult::Failed(throttled()),
        OutcomeResult::Failed(mismatch()),
        OutcomeResult::Failed(changed_again()),
    ];
    let outcome = |(n, result)| Outcome { uri: uri(&format!("{n}")), seq: Seq::new(n), result, patch: None };
    Outcomes {
        id: job(),
        source: source(),
        run: run(),
        origin: origin(),
        items: (1..).zip(results).map(outcome).collect(),
        requests: 6,
        elapsed_ms: 1_234,
    }
}

fn unpack_job() -> UnpackJob {
    UnpackJob {
        id: job(),
        source: source(),
        run: run(),
        origin: origin(),
        uri: uri("dump.zip"),
        seq: Seq::new(7),
        declaration: declaration(),
        stored: whole_package(),
        task: UnpackTask::Slice { index: package("CC"), number: 3 },
    }
}

fn package_job() -> PackageJob {
    PackageJob {
        id: job(),
        source: source(),
        run: run(),
        origin: origin(),
        terms: Terms::default(),
        uri: uri("dump.zip"),
        seq: Seq::new(7),
        declaration: declaration(),
        held: validators(),
    }
}

fn package_outcome(result: PackageResult) -> PackageOutcome {
    PackageOutcome {
        id: job(),
        source: source(),
        run: run(),
        origin: origin(),
        uri: uri("dump.zip"),
        seq: Seq::new(7),
        requests: 4,
        elapsed_ms: 1_234,
        result,
    }
}

fn package_results() -> Vec<(&'static str, PackageResult)> {
    let member = StoredBitstream { location: at(512, 2, Method::Deflated), ..object() };
    let results = [
        MemberResult::Verified { stored: member, assurance: Assurance::Digest },
        MemberResult::NoMember,
        MemberResult::Failed(mismatch()),
        MemberResult::BadEntry("the entry has no loc".to_owned()),
    ];
    let item = |(n, result)| MemberOutcome {
        entry: ManifestEntry {
            loc: format!("https://example.org/{n}"),
            lastmod: Some(datetime()),
            metadata: Metadata { path: Some(format!("/{n}")), length: Some(3), ..Metadata::default() },
            links: None,
            line: n,
            column: 3,
            earlier: false,
        },
        result,
        patch: None,
    };
    let items: Vec<_> = (1..).zip(results).map(item).collect();
    let mut earlier = items[..1].to_vec();
    earlier[0].entry.earlier = true;
    vec![
        (
            "stored",
            PackageResult::Stored(StoredBitstream { location: whole_package().location, ..in_pack() }),
        ),
        ("not-modified", PackageResult::NotModified),
        ("deferred", PackageResult::Deferred { received: 8_388_608 }),
        ("opened", PackageResult::Opened(contents())),
        ("opened-with-earlier", PackageResult::Opened(Contents { keeps_earlier: true, ..contents() })),
        ("slice", slice(items, Vec::new())),
        ("slice-with-earlier", slice(earlier, Vec::new())),
        ("last-slice", slice(Vec::new(), vec!["thumbs.db".to_owned()])),
        ("interrupted", PackageResult::Interrupted { settled: 3 }),
        ("failed", PackageResult::Failed(throttled())),
    ]
}

fn slice(items: Vec<MemberOutcome>, unlisted_names: Vec<String>) -> PackageResult {
    PackageResult::Slice { number: 3, items, unlisted: unlisted_names.len() as u64, unlisted_names }
}

fn contents() -> Contents {
    Contents {
        manifest: ManifestHeader {
            capability: Some(Capability::ResourceDumpManifest),
            at: Some(datetime()),
            completed: Some(datetime()),
            from: None,
            until: None,
            quirks: BTreeMap::from([("bom".to_owned(), 1)]),
        },
        entries: 900,
        overtaken: 2,
        keeps_earlier: false,
        slices: 4,
        index: Some(package("CC")),
        unlisted: 1,
        unlisted_names: vec!["thumbs.db".to_owned()],
    }
}

fn whole_package() -> StoredBitstream {
    StoredBitstream { location: at(0, 3, Method::Stored), ..object() }
}

fn at(offset: u64, stored_length: u64, method: Method) -> Location {
    Location::Package { source: source(), package: package("BB"), offset, stored_length, method }
}

fn package(end: &str) -> PackageId {
    format!("01JD7ZK1V0AAAAAAAAAAAAAA{end}").parse().unwrap()
}

fn datetime() -> Datetime {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

fn job() -> JobId {
    "01JD7ZK1V0Q8Z3M5N7P9R2T4W6".parse().unwrap()
}

fn run() -> RunId {
    "01JD7ZK1V0AAAAAAAAAAAAAAAA".parse().unwrap()
}

fn source() -> SourceId {
    "example-org-0123456789ab".parse().unwrap()
}

fn origin() -> Origin {
    "https://example.org".parse().unwrap()
}

fn uri(name: &str) -> ResourceUri {
    format!("https://example.org/{name}").parse().unwrap()
}

fn moment() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

fn computed() -> Computed {
    let mut hasher = Hasher::new([Algorithm::Sha1]);
    hasher.update(b"abc");
    hasher.finish()
}

fn declaration() -> Declaration {
    Declaration {
        digests: fixity::parse_hashes(SHA1_OF_ABC).known,
        unjudged: vec!["whirlpool:0123".to_owned()],
        length: Some(3),
        media_type: Some("text/plain".to_owned()),
        encoding: Some("gzip".to_owned()),
        lastmod: Some(moment()),
    }
}

fn validators() -> Validators {
    Validators {
        etag: Some("\"v1\"".to_owned()),
        last_modified: Some("Fri, 02 Jan 2026 03:04:05 GMT".to_owned()),
    }
}

fn in_pack() -> StoredBitstream {
    StoredBitstream {
        location: Location::Pack {
            source: source(),
            pack: "01JD7ZK1V0BBBBBBBBBBBBBBBB".parse().unwrap(),
            offset: 512,
            stored_length: 3,
            method: Method::Stored,
        },
        computed: computed(),
        media_type: Some("text/plain".to_owned()),
        encoding: None,
        validators: validators(),
        modified: Some(moment()),
        final_url: Some("https://example.org/elsewhere".to_owned()),
    }
}

fn object() -> StoredBitstream {
    StoredBitstream {
        location: Location::Object { sha256: Sha256::of(b"abc") },
        computed: Computed::of(b"abc"),
        media_type: None,
        encoding: None,
        validators: Validators::default(),
        modified: None,
        final_url: None,
    }
}

fn throttled() -> Failure {
    Failure {
        reason: ProblemReason::Throttled,
        message: "the server asks for patience".to_owned(),
        disposition: Disposition::Retry { after: Some(SignedDuration::from_secs(90)) },
        evidence: Evidence {
            final_url: Some("https://example.org/elsewhere".to_owned()),
            status: Some(503),
            ..Evidence::default()
        },
    }
}

fn mismatch() -> Failure {
    Failure {
        reason: ProblemReason::LengthMismatch,
        message: "another length than declared".to_owned(),
        disposition: Disposition::Refuse,
        evidence: Evidence {
            expected: Some("4 bytes".to_owned()),
            computed: Some("3 bytes".to_owned()),
            ..Evidence::default()
        },
    }
}

fn changed_again() -> Failure {
    Failure {
        reason: ProblemReason::ChangedAgain,
        message: "a later version than the one listed".to_owned(),
        disposition: Disposition::Retry { after: None },
        evidence: Evidence { candidate: Some(Box::new(in_pack())), ..mismatch().evidence },
    }
}
