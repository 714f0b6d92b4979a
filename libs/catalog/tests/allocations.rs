//! How often a commit allocates for each record, the database's own rows included. A count, not a time, so that it is the same wherever the tests run.

use std::sync::Arc;

use allocation_counter::measure;
use catalog::{Batch, Catalog, CatalogConfig};
use model::{Account, Action, Declaration, Listing, PendingRecord, ResourceUri, Seq, SetId, Why};
use object_store::memory::InMemory;
use tokio::runtime::Builder;

const RECORDS: u64 = 500;

fn plan(n: u64) -> (ResourceUri, PendingRecord) {
    let uri: ResourceUri = format!("http://h/{n:06}").parse().unwrap();
    let listing = Listing {
        document: "http://h/list.xml".into(),
        set: SetId::new("http://h/caps.xml"),
        change: None,
        change_time: None,
        as_of: None,
        latest: None,
    };
    let record = PendingRecord {
        seq: Seq::new(n),
        action: Action::Fetch { lane: uri.lane().unwrap() },
        declaration: Declaration::default(),
        listing,
        attempts: 0,
        next_attempt_at: None,
        candidate: None,
        mend: false,
        account: Account::of(Why::New),
    };
    (uri, record)
}

/// What is allocated for each record by putting it and by removing it, until that is durable.
fn allocations() -> (f64, f64) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let store = Arc::new(InMemory::new());
    let opened = runtime.block_on(Catalog::open(store, "catalogs/a", CatalogConfig::default()));
    let catalog = opened.unwrap();
    let plans: Vec<_> = (0..RECORDS).map(plan).collect();
    let each = |fill: &dyn Fn(&mut Batch)| {
        let all = measure(|| {
            let mut batch = Batch::new();
            fill(&mut batch);
            runtime.block_on(catalog.commit(batch)).unwrap();
        });
        all.count_total as f64 / RECORDS as f64
    };
    let put = each(&|batch| plans.iter().for_each(|(uri, plan)| batch.put_pending(uri, plan)));
    let removed = each(&|batch| plans.iter().for_each(|(uri, _)| batch.delete_pending(uri)));
    (put, removed)
}

#[test]
fn commit_allocates_no_more_for_each_record_than_it_needs() {
    let (put, removed) = allocations();
    // The key as it is asked for; all else is the database's: a node of the table in memory, and what its iterators and blocks make of a row. Keys and
    // records are parts of one allocation; with one for each of them, and one for its first clone, it would be three more.
    assert!(put < 8.0, "{put} for each record that is put");
    // The database makes a copy of each key that is removed.
    assert!(removed < 10.0, "{removed} for each record that is removed");
}
