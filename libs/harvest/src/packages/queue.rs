//! The packages of a run in settlement order. Only the next few are in memory, however many there are.

use std::collections::{BTreeSet, VecDeque};

use catalog::Catalog;
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{PackageRecord, PackageState, RunId};

use crate::error::HarvestError;

/// Package names in memory at a time.
const AHEAD: usize = 1_000;

/// Sort key of a package: the end of its interval, its beginning, its position in its dump. Packages without an
/// interval keep the dump's order.
pub(crate) type Order = (Option<Timestamp>, Option<Timestamp>, u64);

/// The packages that wait to be processed.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    next: VecDeque<(Order, String)>,
    /// The last one that was returned.
    last: Option<(Order, String)>,
    has_more: bool,
}

impl Waiting {
    /// Packages of `run` that are not settled.
    pub(crate) async fn of(catalog: &Catalog, run: RunId) -> Result<Self, HarvestError> {
        let mut waiting = Self { has_more: true, ..Self::default() };
        waiting.look(catalog, run).await?;
        Ok(waiting)
    }

    /// Whether the last search found none.
    pub(crate) fn is_empty(&self) -> bool {
        self.next.is_empty() && !self.has_more
    }

    /// The next one.
    pub(crate) async fn next(
        &mut self,
        catalog: &Catalog,
        run: RunId,
    ) -> Result<Option<(Order, String)>, HarvestError> {
        if self.next.is_empty() && self.has_more {
            self.look(catalog, run).await?;
        }
        let next = self.next.pop_front();
        if next.is_some() {
            self.last.clone_from(&next);
        }
        Ok(next)
    }

    /// Finds a bounded number of packages after the last one.
    async fn look(&mut self, catalog: &Catalog, run: RunId) -> Result<(), HarvestError> {
        let mut found: BTreeSet<(Order, String)> = BTreeSet::new();
        self.has_more = false;
        let mut packages = catalog.scan_packages().await?;
        while let Some((uri, record)) = packages.try_next().await? {
            if record.run != run || !is_open(&record) {
                continue;
            }
            let package = (order(&record), uri);
            if self.last.as_ref().is_some_and(|last| package <= *last) {
                continue;
            }
            found.insert(package);
            if found.len() > AHEAD {
                found.pop_last();
                self.has_more = true;
            }
        }
        self.next = found.into_iter().collect();
        Ok(())
    }
}

/// Whether a package needs further work.
pub(crate) fn is_open(record: &PackageRecord) -> bool {
    !matches!(record.state, PackageState::Done | PackageState::Failed)
}

/// Sort key of a package.
pub(crate) fn order(record: &PackageRecord) -> Order {
    if !record.capability.tells_changes() {
        return (None, None, record.position);
    }
    let instant = |time: Option<resourcesync::Datetime>| time.map(|time| time.instant());
    let from = instant(record.metadata.from);
    let until = instant(record.metadata.until);
    (until.or(from), from, record.position)
}

#[cfg(test)]
mod tests {
    use catalog::{Batch, CatalogConfig};
    use model::{Seq, SetId};
    use resourcesync::{Capability, Metadata};
    use store::Store;

    use super::*;

    fn package(capability: Capability, run: RunId, position: u64) -> PackageRecord {
        PackageRecord {
            seq: Seq::new(position),
            run,
            document: "http://h/dump.xml".to_owned(),
            set: SetId::new("http://h/caps.xml"),
            capability,
            declaration: Default::default(),
            metadata: Metadata::default(),
            selection: None,
            position,
            named: 1,
            contents: None,
            manifest_copy: None,
            state: PackageState::Wanted,
            settled: None,
            attempts: 0,
            next_attempt_at: None,
            job: None,
            kept: false,
        }
    }

    /// A package of changes, from one day of a month until another.
    fn changes(from: Option<u32>, until: Option<u32>, position: u64) -> PackageRecord {
        let day = |day: u32| format!("2026-01-{day:02}").parse().unwrap();
        let mut record = package(Capability::ChangeDump, RunId::fresh(), position);
        (record.metadata.from, record.metadata.until) = (from.map(day), until.map(day));
        record
    }

    /// A catalog with these packages.
    async fn catalog(packages: impl IntoIterator<Item = (String, PackageRecord)>) -> Catalog {
        let store = Store::in_memory().object_store();
        let catalog = Catalog::open(store, "catalogs/a", CatalogConfig::default()).await.unwrap();
        let mut batch = Batch::new();
        for (uri, record) in packages {
            batch.put_package(&uri, &record);
        }
        catalog.commit(batch).await.unwrap();
        catalog
    }

    /// All packages that are returned.
    async fn all(waiting: &mut Waiting, catalog: &Catalog, run: RunId) -> Vec<String> {
        let mut uris = Vec::new();
        while let Some((_, uri)) = waiting.next(catalog, run).await.unwrap() {
            uris.push(uri);
        }
        uris
    }

    #[test]
    fn changes_are_in_the_order_of_the_ends_of_their_intervals_then_of_their_beginnings_and_places() {
        let expected = [
            changes(None, None, 9),
            changes(Some(1), Some(2), 7),
            changes(Some(3), None, 6),
            changes(Some(1), Some(4), 5),
            changes(Some(3), Some(4), 3),
            changes(Some(3), Some(4), 4),
        ];
        let mut orders: Vec<Order> = expected.iter().map(order).collect();
        orders.reverse();
        orders.sort();
        assert_eq!(orders, expected.iter().map(order).collect::<Vec<_>>());
    }

    #[test]
    fn resources_are_in_the_order_of_their_dump_whatever_it_says_of_their_moments() {
        let record = PackageRecord { capability: Capability::ResourceDump, ..changes(Some(1), Some(2), 5) };
        assert_eq!(order(&record), (None, None, 5));
    }

    #[tokio::test]
    async fn all_open_packages_of_a_run_are_handed_out_once_and_in_their_order_however_many_there_are() {
        let run = RunId::fresh();
        let many = 2 * AHEAD as u64 + 7;
        // Their names are in the opposite order.
        let uri = |position: u64| format!("http://h/{:06}", many - position);
        let named = (0..many).map(|n| (uri(n), package(Capability::ResourceDump, run, n)));
        let others = [
            PackageRecord { state: PackageState::Done, ..package(Capability::ResourceDump, run, 1) },
            PackageRecord { state: PackageState::Failed, ..package(Capability::ResourceDump, run, 2) },
            package(Capability::ResourceDump, RunId::fresh(), 3),
        ];
        let others = (0..).zip(others).map(|(n, record): (u32, _)| (format!("http://h/other/{n}"), record));
        let catalog = catalog(named.chain(others)).await;
        let mut waiting = Waiting::of(&catalog, run).await.unwrap();
        assert_eq!(waiting.next.len(), AHEAD, "no more are known by name");
        assert!(!waiting.is_empty());
        assert_eq!(all(&mut waiting, &catalog, run).await, (0..many).map(uri).collect::<Vec<_>>());
        assert!(waiting.is_empty());
    }

    #[tokio::test]
    async fn what_was_handed_out_does_not_come_again_and_what_is_settled_meanwhile_is_passed_over() {
        let run = RunId::fresh();
        let many = AHEAD as u64 + 3;
        let uri = |position: u64| format!("http://h/{position:06}");
        let catalog = catalog((0..many).map(|n| (uri(n), package(Capability::ResourceDump, run, n)))).await;
        let mut waiting = Waiting::of(&catalog, run).await.unwrap();
        let mut batch = Batch::new();
        let last = many - 1;
        let done =
            PackageRecord { state: PackageState::Done, ..package(Capability::ResourceDump, run, last) };
        batch.put_package(&uri(last), &done);
        catalog.commit(batch).await.unwrap();
        assert_eq!(all(&mut waiting, &catalog, run).await, (0..last).map(uri).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_run_without_packages_has_nothing_waiting() {
        let catalog = catalog([]).await;
        let mut waiting = Waiting::of(&catalog, RunId::fresh()).await.unwrap();
        assert!(waiting.is_empty());
        assert_eq!(waiting.next(&catalog, RunId::fresh()).await.unwrap(), None);
    }
}
