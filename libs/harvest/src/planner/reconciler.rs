//! Entries that wait to be joined with the catalog, and the names that the lists of each set contain.

use std::collections::{HashMap, HashSet};

use model::{DocumentRecord, ResourceUri, SetId};
use planning::ListedEntry;
use reconcile::{Absences, SpoolError};
use resourcesync::Capability;

use crate::planner::reconcile::spool::Spool;
use crate::run::RunContext;
use crate::run::document_queue::is_notification;

/// State of the reconciliation.
#[derive(Debug, Default)]
pub(crate) struct Reconciler {
    /// Entries that wait for the merge join.
    pub(crate) spool: Spool,
    /// Absences of each set, from the lists read in this process; none if they cannot be known.
    pub(crate) absences: HashMap<SetId, Option<Absences>>,
    /// Sets with an unchanged package whose names are not known.
    pub(crate) lost_names: HashSet<SetId>,
    /// Names of the package that is being settled; none between packages.
    of_package: Option<Vec<ResourceUri>>,
}

impl Reconciler {
    /// Whether the entries of a document are spooled for the merge join. Not for a set without stored resources:
    /// there is nothing to join with. Not for a hub delivery, which is planned before its message is acknowledged.
    /// Not for a dump, which lists packages.
    pub(crate) fn is_spooled(&self, ctx: &RunContext, record: &DocumentRecord) -> bool {
        let has_baseline = ctx.sets.get(&record.set).is_some_and(|set| set.has_baseline);
        let is_dump = matches!(record.capability, Capability::ResourceDump | Capability::ChangeDump);
        // Entries of landing pages are planned page by page.
        let lists_pages = ctx.sets.get(&record.set).is_some_and(|set| set.pages.is_some());
        let may_be_stored = (has_baseline || record.tells_changes()) && !lists_pages;
        may_be_stored && !is_dump && !is_notification(record) && self.has_room()
    }

    /// Whether there is disk space for the spool.
    pub(crate) fn has_room(&self) -> bool {
        !self.spool.is_broken
    }

    /// Starts to record the names in a set's lists. Without disk space for them, the run concludes nothing from
    /// absences.
    pub(crate) fn expect_names(&mut self, set: &SetId) {
        let absences = self.has_room().then(|| Absences { is_fresh: true, found: None });
        self.absences.entry(set.clone()).or_insert(absences);
    }

    /// Concludes nothing from absences in this set: not everything that it lists is read.
    pub(crate) fn ignore_absences(&mut self, set: &SetId) {
        self.absences.insert(set.clone(), None);
    }

    /// Whether names of this set are recorded.
    pub(crate) fn records_names_of(&self, set: &SetId) -> bool {
        matches!(self.absences.get(set), Some(Some(_)))
    }

    /// Spools entries of the document with this number. Returns whether there was disk space.
    pub(crate) async fn spool_entries(
        &mut self,
        ctx: &mut RunContext,
        number: usize,
        set: &SetId,
        entries: &[ListedEntry],
    ) -> bool {
        self.spool.undecided += entries.len() as u64;
        let spooled = self.spool.entries();
        let added = entries.iter().try_for_each(|entry| spooled.add(entry, number));
        if let Some(Some(absences)) = self.absences.get_mut(set) {
            absences.is_fresh = true;
        }
        if let Err(error) = added {
            self.give_up(ctx, &error);
        }
        self.make_room(ctx).await
    }

    /// Begins to collect the names that a package lists.
    pub(crate) fn collect_names(&mut self) {
        self.of_package = Some(Vec::new());
    }

    /// The names that were noted since.
    pub(crate) fn collected_names(&mut self) -> Vec<ResourceUri> {
        self.of_package.take().unwrap_or_default()
    }

    /// Whether names of this set are collected or recorded.
    pub(crate) fn takes_names_of(&self, set: &SetId) -> bool {
        self.of_package.is_some() || self.records_names_of(set)
    }

    /// Records that a set's list contains a resource. The caller must call `make_room` now and then.
    pub(crate) fn note_name(&mut self, ctx: &mut RunContext, document: &str, set: &SetId, uri: &ResourceUri) {
        if let Some(names) = &mut self.of_package {
            names.push(uri.clone());
        }
        let Some(Some(absences)) = self.absences.get_mut(set) else { return };
        absences.is_fresh = true;
        let number = self.spool.number(document, set);
        if let Err(error) = self.spool.entries().add_name(uri, number) {
            self.give_up(ctx, &error);
        }
    }

    /// Writes full memory buffers to the disk. Returns whether there was disk space, now and earlier.
    pub(crate) async fn make_room(&mut self, ctx: &mut RunContext) -> bool {
        if let Some(entries) = &mut self.spool.entries
            && let Err(error) = entries.make_room().await
        {
            self.give_up(ctx, &error);
        }
        self.has_room()
    }

    /// Drops the spool for lack of disk space. Its documents are read again and planned entry by entry. The recorded
    /// names are dropped too.
    pub(crate) fn give_up(&mut self, ctx: &mut RunContext, error: &SpoolError) {
        tracing::warn!(%error, "no room for the spool: documents are read again, absences are not looked for in this run");
        self.spool = Spool { is_broken: true, ..Spool::default() };
        self.absences.values_mut().for_each(|absences| *absences = None);
        ctx.discard_held_back();
    }
}
