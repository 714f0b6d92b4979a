//! Collections while a harvest begins.

use catalog::Batch;
use fixity::{Computed, Sha256};
use model::{
    Assurance, Bitstream, Counters, Declaration, Listing, Location, ManualClock, Mode, Phase, ResourceRecord,
    RunId, RunRecord, SetId,
};

use super::*;

/// A resource that was deleted before all retention times.
fn tombstone(location: &Location, content: &[u8]) -> ResourceRecord {
    let set = SetId::new("http://e.org/caps.xml");
    ResourceRecord {
        bitstream: None,
        declaration: Declaration::default(),
        listing: Listing {
            document: "http://e.org/list.xml".into(),
            set: set.clone(),
            change: None,
            change_time: None,
            as_of: None,
            latest: None,
            links: None,
            linked: None,
        },
        sets: vec![set],
        deleted: Some(Bitstream {
            location: location.clone(),
            computed: Computed::of(content),
            assurance: Assurance::None,
            media_type: None,
            encoding: None,
            validators: Default::default(),
            final_url: None,
            stored_at: Timestamp::UNIX_EPOCH,
        }),
        collected: None,
        absent: None,
        settled_at: Timestamp::UNIX_EPOCH,
    }
}

fn run(phase: Phase) -> RunRecord {
    RunRecord {
        id: RunId::fresh(),
        mode: Mode::Baseline,
        phase,
        options: String::new(),
        view: false,
        started_at: Timestamp::UNIX_EPOCH,
        finished_at: None,
        cancelled: false,
        counters: Counters::default(),
    }
}

#[tokio::test]
async fn a_harvest_that_began_since_it_was_looked_is_not_shut_out_and_keeps_all_it_has() {
    let store = Store::in_memory();
    let source: SourceId = "s".parse().unwrap();
    let path = Key::Catalog(source.clone()).to_string();
    let bytes = bytes::Bytes::from_static(b"deleted");
    let config = CatalogConfig::default();
    let harvest = Catalog::open(store.object_store(), &path, config.clone()).await.unwrap();
    let location =
        store.put_bitstream(store::NewBitstream::Memory(Sha256::of(&bytes), bytes.clone())).await.unwrap();
    let mut batch = Batch::new();
    batch.put_resource(&"http://e.org/1".parse().unwrap(), &tombstone(&location, &bytes));
    batch.put_run(&run(Phase::Planning));
    harvest.commit(batch).await.unwrap();

    let clock = ManualClock::new(Timestamp::now());
    let options = Options { keep_for: SignedDuration::ZERO, dry_run: false, as_owner: true };
    let times = Times::new(clock.now(), options.keep_for);
    let marks = Marks::new();
    let report = Report::default();
    let mut collection =
        Collection { store: &store, options: &options, clock: &clock, times, config, marks, report };
    let source_marks = collection.tidy_up(&source, &[], 1, &[]).await.unwrap();
    assert_eq!(source_marks.unfinished, Some(Timestamp::UNIX_EPOCH));
    assert_eq!((collection.report.tombstones.left, collection.report.tombstones.given_up), (1, 0));
    let sha256 = Sha256::of(&bytes);
    assert!(collection.marks.objects.take(sha256.as_bytes()[0]).unwrap().contains(&sha256));
    let mut batch = Batch::new();
    batch.put_run(&run(Phase::Finished));
    harvest.commit(batch).await.expect("it is still the owner");
}
