use std::time::Duration;

use fixity::Sha256;
use model::{
    CapabilityLink, Counters, DocumentState, MissedChanges, PendingRescan, Prefer, RunId, Validators,
};
use resourcesync::{Capability, Root};

use super::*;
use crate::queued_document;

const CHANGES: &str = "http://h/changelist.xml";
const LIST: &str = "http://h/resourcelist.xml";

fn minute(n: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + n * 60).unwrap()
}

/// A Source with a list and a Change List, after a run of minute 0 that ended in minute 1.
struct Case {
    run: RunRecord,
    options: HarvestOptions,
    discovery: Option<DiscoveryRecord>,
    sets: HashMap<SetId, SetRecord>,
    unsettled: u64,
    now: Timestamp,
}

fn id() -> SetId {
    SetId::new("http://h/capabilitylist.xml")
}

impl Case {
    fn new() -> Self {
        let options = HarvestOptions::default();
        let set = SetRecord {
            capabilities: vec![
                CapabilityLink::new(Capability::ResourceList, LIST),
                CapabilityLink::new(Capability::ChangeList, CHANGES),
            ],
            has_baseline: true,
            ..SetRecord::default()
        };
        Self {
            run: RunRecord {
                id: RunId::fresh(),
                mode: Mode::Incremental,
                phase: Phase::Finished,
                options: options.fingerprint(),
                view: false,
                started_at: minute(0),
                finished_at: Some(minute(1)),
                cancelled: false,
                counters: Counters::default(),
            },
            options,
            discovery: Some(DiscoveryRecord {
                entry: "http://h/".to_owned(),
                looked_up_at: minute(0),
                sets: vec![id()],
                failures: 0,
                documents: Vec::new(),
            }),
            sets: HashMap::from([(id(), set)]),
            unsettled: 0,
            now: minute(1),
        }
    }

    /// A Source with a list only.
    fn listed() -> Self {
        let mut case = Self::new();
        case.set(|set| drop(set.capabilities.pop()));
        case.run.mode = Mode::Baseline;
        case
    }

    fn set(&mut self, change: impl FnOnce(&mut SetRecord)) {
        change(self.sets.get_mut(&id()).unwrap());
    }

    fn end(&self) -> RunEnd<'_> {
        RunEnd {
            run: &self.run,
            entry: "http://h/",
            options: &self.options,
            discovery: self.discovery.as_ref(),
            sets: &self.sets,
            unsettled: self.unsettled,
            now: self.now,
        }
    }

    fn next(&self) -> Result<NextRun, NoPoll> {
        self.end().next_run()
    }

    /// A document that the run read.
    fn read(&self, kind: Capability) -> DocumentRecord {
        let mut record = queued_document(self.run.id, &id(), &kind, None);
        record.state = DocumentState::Done;
        record.digest = Some(Sha256::of(b"abc"));
        record.validators.etag = Some("\"1\"".to_owned());
        record
    }
}

fn waiting(uncompared: bool) -> Option<PendingRescan> {
    Some(PendingRescan { since: minute(0), looked_at: minute(0), uncompared, guarded_percent: None })
}

#[track_caller]
fn is_refused(why: NoPoll, change: impl FnOnce(&mut Case)) {
    let mut case = Case::new();
    change(&mut case);
    assert_eq!(case.next(), Err(why));
}

#[test]
fn an_idle_run_requests_its_change_list_or_its_list_until_discovery_expires() {
    let until = minute(60);
    assert_eq!(Case::new().next(), Ok(NextRun { documents: vec![CHANGES.to_owned()], until }));
    assert_eq!(Case::listed().next(), Ok(NextRun { documents: vec![LIST.to_owned()], until }));
    let mut baseline = Case::new();
    baseline.run.mode = Mode::Baseline;
    assert_eq!(baseline.next(), Ok(NextRun { documents: vec![CHANGES.to_owned()], until }));
}

#[test]
fn a_run_that_is_no_finished_sync_leaves_nothing_to_poll() {
    is_refused(NoPoll::Unfinished, |case| case.run.phase = Phase::Dispatching);
    is_refused(NoPoll::Unfinished, |case| case.run.cancelled = true);
    is_refused(NoPoll::NoSync, |case| case.run.mode = Mode::Audit);
    is_refused(NoPoll::NoSync, |case| case.run.mode = Mode::Repair);
}

#[test]
fn problems_are_tried_again_by_a_run() {
    is_refused(NoPoll::Unsettled, |case| case.unsettled = 1);
}

#[test]
fn a_run_that_reads_everything_again_is_not_replaced() {
    is_refused(NoPoll::OtherOptions, |case| case.options.strict = true);
    is_refused(NoPoll::Rediscovers, |case| case.options.rediscover = true);
    is_refused(NoPoll::Rediscovers, |case| case.options.mode = Some(Mode::Baseline));
}

#[test]
fn without_current_discovery_nothing_is_polled() {
    is_refused(NoPoll::NotDiscovered, |case| case.discovery = None);
    is_refused(NoPoll::NotDiscovered, |case| case.discovery.as_mut().unwrap().failures = 1);
    is_refused(NoPoll::NotDiscovered, |case| {
        case.discovery.as_mut().unwrap().entry = "http://other/".to_owned()
    });
    is_refused(NoPoll::NotDiscovered, |case| case.now = minute(60));
    is_refused(NoPoll::NotDiscovered, |case| case.now = minute(-1));
    is_refused(NoPoll::NotDiscovered, |case| case.options.rediscover_after = Duration::ZERO);
    is_refused(NoPoll::NothingOffered, |case| case.set(|set| set.capabilities.clear()));
}

#[test]
fn a_set_that_is_not_whole_is_read_by_a_run() {
    is_refused(NoPoll::NoBaseline, |case| case.set(|set| set.has_baseline = false));
    is_refused(NoPoll::NoBaseline, |case| case.set(|set| set.partly_held = true));
    is_refused(NoPoll::MissedChanges, |case| {
        let missed = MissedChanges { changes: 1, oldest: minute(0), latest: minute(0) };
        case.set(|set| set.missed = Some(missed));
    });
    // A set that offers changes only has no baseline.
    let mut bare = Case::new();
    bare.set(|set| {
        set.capabilities.remove(0);
        (set.has_baseline, set.partly_held) = (false, true);
    });
    assert_eq!(bare.next().unwrap().documents, [CHANGES]);
}

#[test]
fn what_waits_for_a_rescan_ends_a_poll_when_the_rescan_is_due() {
    is_refused(NoPoll::Rescan, |case| case.set(|set| set.waiting = waiting(true)));
    let mut case = Case::new();
    case.set(|set| set.waiting = waiting(false));
    case.options.rediscover_after = Duration::from_secs(24 * 3_600);
    assert_eq!(case.next().unwrap().until, minute(60), "an hour after the last rescan");
    case.now = minute(60);
    assert_eq!(case.next(), Err(NoPoll::Rescan));
    // Where absent resources are kept, no rescan comes.
    case.options.absent = Absent::Keep;
    assert_eq!(case.next().unwrap().until, minute(24 * 60));
}

#[test]
fn a_set_without_usable_documents_counts_for_nothing() {
    let mut case = Case::new();
    let other = SetId::new("http://h/archives.xml");
    case.sets.insert(other.clone(), SetRecord::default());
    case.discovery.as_mut().unwrap().sets.push(other);
    assert_eq!(case.next().unwrap().documents, [CHANGES]);
}

#[test]
fn a_document_is_compared_if_this_run_read_all_of_it() {
    let case = Case::new();
    let read = case.read(Capability::ChangeList);
    let polled = case.end().document(CHANGES, &read).unwrap();
    assert_eq!(
        (polled.uri.as_str(), &polled.validators, polled.digest),
        (CHANGES, &read.validators, read.digest)
    );
    let without = |change: fn(&mut DocumentRecord)| {
        let mut record = read.clone();
        change(&mut record);
        case.end()
            .document(CHANGES, &record)
            .map(|polled| (polled.validators.is_empty(), polled.digest.is_none()))
    };
    assert_eq!(without(|record| record.run = RunId::fresh()), Err(NoPoll::NotRead));
    assert_eq!(without(|record| record.state = DocumentState::Failed), Err(NoPoll::NotRead));
    assert_eq!(without(|record| record.packages = 1), Err(NoPoll::NotRead), "a package is not settled");
    assert_eq!(without(|record| record.digest = None), Ok((false, true)));
    assert_eq!(without(|record| record.validators = Validators::default()), Ok((true, false)));
    let neither = |record: &mut DocumentRecord| (record.validators, record.digest) = Default::default();
    assert_eq!(without(neither), Err(NoPoll::Unrecognizable));
}

#[test]
fn only_not_modified_says_that_a_dump_or_a_list_with_absences_brings_no_work() {
    let mut case = Case::listed();
    case.options.prefer = Some(Prefer::List);
    let mut dump = case.read(Capability::ResourceDump);
    (dump.packages, dump.unpacked) = (2, Some(7));
    assert_eq!(case.end().document(LIST, &dump).unwrap().digest, None);
    dump.validators = Validators::default();
    assert_eq!(case.end().document(LIST, &dump), Err(NoPoll::Unrecognizable));

    let list = case.read(Capability::ResourceList);
    assert_eq!(case.end().document(LIST, &list).unwrap().digest, list.digest);
    case.set(|set| set.waiting = waiting(false));
    assert_eq!(case.end().document(LIST, &list).unwrap().digest, None);
    case.options.absent = Absent::Keep;
    assert_eq!(case.end().document(LIST, &list).unwrap().digest, list.digest);
}

#[test]
fn open_parts_of_an_index_are_requested_again_and_closed_ones_that_were_read_before_are_not() {
    let case = Case::new();
    let mut part = case.read(Capability::ChangeList);
    part.root = Some(Root::UrlSet);
    assert!(case.end().is_requested_again(&part));
    part.run = RunId::fresh();
    assert!(case.end().is_requested_again(&part), "an open part");
    part.until = Some(minute(0));
    assert!(!case.end().is_requested_again(&part), "a closed part");
    part.run = case.run.id;
    assert!(case.end().is_requested_again(&part), "its index may not say that it is closed");
}
