//! The packages of a run in the order in which they are settled. Only the next few are ever in memory, however many there are.

use std::collections::{BTreeSet, VecDeque};

use catalog::Catalog;
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{PackageRecord, PackageState, RunId};

use crate::error::HarvestError;

/// Packages known by name at a time.
const AHEAD: usize = 1_000;

/// Where a package stands among the others: the end of its interval, its beginning, its place in its dump. Of a package that
/// says nothing the order is that of the dump.
pub(crate) type Order = (Option<Timestamp>, Option<Timestamp>, u64);

/// The packages that are still to be taken in hand.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    next: VecDeque<(Order, String)>,
    /// The last one that was handed out.
    last: Option<(Order, String)>,
    has_more: bool,
}

impl Waiting {
    /// Those of `run` that are not settled.
    pub(crate) async fn of(catalog: &Catalog, run: RunId) -> Result<Self, HarvestError> {
        let mut waiting = Self { has_more: true, ..Self::default() };
        waiting.look(catalog, run).await?;
        Ok(waiting)
    }

    /// Whether there was none when it was last looked.
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

    /// Finds those that come next after the last one, a bounded number of them.
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

/// Whether something is still to be done about a package.
pub(crate) fn is_open(record: &PackageRecord) -> bool {
    !matches!(record.state, PackageState::Done | PackageState::Failed)
}

/// Where a package stands among the others.
pub(crate) fn order(record: &PackageRecord) -> Order {
    if !record.capability.tells_changes() {
        return (None, None, record.position);
    }
    let instant = |time: Option<resourcesync::Datetime>| time.map(|time| time.instant());
    let (from, until) = (instant(record.metadata.from), instant(record.metadata.until));
    (until.or(from), from, record.position)
}
