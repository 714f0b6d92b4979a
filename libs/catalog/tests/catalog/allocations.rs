//! Allocations of a commit per record, including the database's own rows. A count, not a time, so that it is
//! the same wherever the tests run.

use std::sync::Arc;

use allocation_counter::measure;
use catalog::{Batch, Catalog, CatalogConfig};
use object_store::memory::InMemory;
use tokio::runtime::Builder;

use crate::records::{pending, uri};

const RECORDS: u64 = 500;

/// Allocations per record for putting it and for removing it, until that is durable.
fn allocations() -> (f64, f64) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let store = Arc::new(InMemory::new());
    let opened = runtime.block_on(Catalog::open(store, "catalogs/a", CatalogConfig::default()));
    let catalog = opened.unwrap();
    let plans: Vec<_> = (0..RECORDS).map(|n| (uri(&format!("{n:06}")), pending(n))).collect();
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
    // One is the key of the read. All others are the database's: a node of the table in memory, and the
    // copies of a row in its iterators and blocks. Keys and records are parts of one allocation; with one for
    // each of them, and one for its first clone, it would be three more.
    assert!(put < 8.0, "{put} for each record that is put");
    // The database makes a copy of each key that is removed.
    assert!(removed < 10.0, "{removed} for each record that is removed");
}
