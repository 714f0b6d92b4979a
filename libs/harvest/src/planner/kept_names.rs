//! The kept names of packages of Resource Dumps (docs/adr/0099). A package that did not change is not read again, and
//! neither is one that an interrupted process settled. What their dump leaves out is found all the same.

use futures::TryStreamExt;
use model::{KeptNames, PackageNames, PackageRecord, PackageState, SliceSet};
use resourcesync::Capability;

use crate::error::HarvestError;
use crate::planner::Planner;
use crate::run::RunContext;

/// What is known of the names that a package lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    All,
    /// The Source's own mistakes hide some of them.
    Doubtful,
    /// They were not kept: an earlier version of Thresher settled the package, or another version of the package has
    /// replaced them.
    Lost,
}

/// Whether the absence of a name in a package means something. A dump of changes does not list what did not change.
pub(crate) fn are_kept(record: &PackageRecord) -> bool {
    record.capability == Capability::ResourceDump
}

impl Planner {
    /// Takes what an unchanged package lists as named by its dump. If that is not known, nothing is concluded from the
    /// dump.
    pub(crate) async fn name_kept(
        &mut self,
        ctx: &mut RunContext,
        uri: &str,
        record: &PackageRecord,
    ) -> Result<(), HarvestError> {
        if !are_kept(record) || !self.reconciler.records_names_of(&record.set) {
            return Ok(());
        }
        // A dump may have many unchanged packages.
        ctx.check_stop()?;
        let mut all = ctx.catalog().await?.names_of_package(uri).await?;
        let mut seen = Seen::of(record);
        while let Some((_, kept)) = all.try_next().await? {
            if seen.add(&kept) {
                for name in &kept.names {
                    self.reconciler.note_name(ctx, uri, &record.set, name);
                }
                self.reconciler.make_room(ctx).await;
            }
        }
        match seen.known() {
            Known::All => {}
            Known::Doubtful => self.reconciler.ignore_absences(&record.set),
            Known::Lost => {
                self.reconciler.ignore_absences(&record.set);
                self.reconciler.lost_names.insert(record.set.clone());
            }
        }
        Ok(())
    }
}

/// What is known of the names that a package lists.
pub(crate) async fn known(
    ctx: &mut RunContext,
    uri: &str,
    record: &PackageRecord,
) -> Result<Known, HarvestError> {
    let mut all = ctx.catalog().await?.names_of_package(uri).await?;
    let mut seen = Seen::of(record);
    while let Some((_, kept)) = all.try_next().await? {
        seen.add(&kept);
    }
    Ok(seen.known())
}

/// The slices of a package whose names were found.
struct Seen {
    /// Those to be found; none if they were not kept.
    expected: Option<KeptNames>,
    found: SliceSet,
    /// Slices that this run is to settle yet: they tell their names then.
    open: SliceSet,
    is_doubtful: bool,
}

impl Seen {
    fn of(record: &PackageRecord) -> Self {
        let mut open = SliceSet::default();
        let expected = match &record.state {
            PackageState::Opened { contents, done, .. } => {
                done.missing(contents.slices).for_each(|number| {
                    open.insert(number);
                });
                Some(KeptNames { seq: record.seq, slices: contents.slices })
            }
            PackageState::Wanted | PackageState::Stored { .. } => {
                Some(KeptNames { seq: record.seq, slices: 0 })
            }
            PackageState::Done | PackageState::Failed => {
                record.settled.as_ref().and_then(|settled| settled.names)
            }
        };
        Self { expected, found: SliceSet::default(), open, is_doubtful: false }
    }

    /// Adds kept names. Returns whether they are of the package's version.
    fn add(&mut self, kept: &PackageNames) -> bool {
        let is_expected = self.expected.is_some_and(|expected| expected.seq == kept.seq);
        if is_expected {
            self.found.extend(&kept.slices);
            self.is_doubtful |= kept.doubtful;
        }
        is_expected
    }

    fn known(&self) -> Known {
        let is_known = |number: u32| self.found.contains(number) || self.open.contains(number);
        let are_all = self.expected.is_some_and(|expected| (0..expected.slices).all(is_known));
        match (are_all, self.is_doubtful) {
            (true, false) => Known::All,
            (true, true) => Known::Doubtful,
            (false, _) => Known::Lost,
        }
    }
}
