//! Reconciles entries with the catalog by a merge join (docs/adr/0038). Entries of documents about possibly stored
//! resources are spooled and sorted by URI. Then they are joined with the catalog, which has the same order. An entry
//! that matches its stored record is settled by the join. The others are decided as usual. Absences, stored resources
//! without any entry, are found in the same pass.
//!
//! Until then the catalog does not record these documents as read: after a crash they are read again.

mod pass;
mod spool;

use planning::{Filter, ListedEntry};
use reconcile::{AbsenceSearch, Absences, Counting, EntrySorter, Joined, MergeJoin, Records, SpoolError};
use std::sync::Arc;

use catalog::Batch;
use model::{DocumentRecord, ResourceUri, SetId};
use resourcesync::Capability;

use crate::document::ReadDocument;

use crate::change_notifications::is_notice;
use crate::error::HarvestError;
use crate::harvest::Harvest;

use pass::Pass;
pub(crate) use spool::{Ahead, Spool};

/// Entries decided per batch.
const BATCH: usize = 4096;
/// Documents that may wait for the merge join.
const MOST_DOCUMENTS: usize = 4096;
/// Resources settled between two progress reports.
const SHOWN_EVERY: u64 = 16_384;

impl Harvest {
    /// Whether the entries of a document are spooled for the merge join. Not for a set without stored resources:
    /// there is nothing to join with. Not for a hub delivery, which is planned before its message is acknowledged.
    /// Not for a dump, which lists packages.
    pub(crate) fn is_spooled(&self, record: &DocumentRecord) -> bool {
        let has_baseline = self.sets.get(&record.set).is_some_and(|set| set.has_baseline);
        let is_dump = matches!(record.capability, Capability::ResourceDump | Capability::ChangeDump);
        let may_be_held = has_baseline || record.tells_changes();
        may_be_held && !is_dump && !is_notice(record) && self.has_room()
    }

    /// Whether there is disk space for the spool.
    pub(crate) fn has_room(&self) -> bool {
        !self.spool.is_broken
    }

    /// Starts the counters for a document that is recorded later.
    pub(crate) fn counted(&self) -> Ahead {
        Ahead::of(&self.run)
    }

    /// Keeps the counts since `before` back until the document is recorded as read.
    pub(crate) fn keep_back(&mut self, before: Ahead) {
        self.ahead = self.ahead.with(before, Ahead::of(&self.run));
    }

    /// The spool number of a document.
    pub(crate) fn spool_number(&mut self, document: &str, set: &SetId) -> usize {
        self.spool.number(document, set)
    }

    /// Spools entries of the document with this number. Returns whether there was disk space.
    pub(crate) async fn spool_entries(
        &mut self,
        number: usize,
        set: &SetId,
        entries: &[ListedEntry],
    ) -> bool {
        self.spool.asking += entries.len() as u64;
        let words = self.spool.words();
        let added = entries.iter().try_for_each(|planned| words.add(planned, number));
        if let Some(Some(silence)) = self.seen.get_mut(set) {
            silence.is_fresh = true;
        }
        if let Err(error) = added {
            self.give_up_spool(&error);
        }
        self.make_room().await
    }

    /// Keeps a document that was read to its end. It is recorded as read when its entries are planned.
    pub(crate) async fn await_plans(&mut self, read: ReadDocument) -> Result<(), HarvestError> {
        self.spool.read.push(read);
        if self.spool.read.len() >= MOST_DOCUMENTS {
            Box::pin(self.lay()).await?;
        }
        Ok(())
    }

    /// Records that a set's list contains a resource. The caller must call `make_room` now and then.
    pub(crate) fn note_named(&mut self, document: &str, set: &SetId, uri: &ResourceUri) {
        let Some(Some(silence)) = self.seen.get_mut(set) else { return };
        silence.is_fresh = true;
        let number = self.spool.number(document, set);
        if let Err(error) = self.spool.words().add_name(uri, number) {
            self.give_up_spool(&error);
        }
    }

    /// Writes full memory buffers to the disk. Returns whether there was disk space, now and earlier.
    pub(crate) async fn make_room(&mut self) -> bool {
        if let Some(words) = &mut self.spool.words
            && let Err(error) = words.make_room().await
        {
            self.give_up_spool(&error);
        }
        !self.spool.is_broken
    }

    /// Drops the spool for lack of disk space. Its documents are read again and planned entry by entry. The recorded
    /// names are dropped too.
    fn give_up_spool(&mut self, error: &SpoolError) {
        tracing::warn!(%error, "no room for what documents say: they are read again, and absences are not looked for in this run");
        self.spool = Spool { is_broken: true, ..Spool::default() };
        self.seen.values_mut().for_each(|silence| *silence = None);
        self.run = std::mem::take(&mut self.ahead).taken_from(&self.run);
    }

    /// Joins the spooled entries with the catalog and plans them. Returns whether that worked; if not, the documents
    /// must be read again.
    pub(crate) async fn lay(&mut self) -> Result<bool, HarvestError> {
        if self.spool.is_asking() {
            return self.lay_all().await;
        }
        self.ahead = Ahead::default();
        Ok(true)
    }

    /// Joins names with the catalog that were not joined yet. This finds the absences.
    pub(crate) async fn lay_names(&mut self) -> Result<bool, HarvestError> {
        let is_fresh = |silence: &Option<Absences>| silence.as_ref().is_some_and(|silence| silence.is_fresh);
        if self.seen.values().any(is_fresh) { self.lay_all().await } else { Ok(true) }
    }

    async fn lay_all(&mut self) -> Result<bool, HarvestError> {
        self.committed().await?;
        let Spool { words, documents, read, .. } = std::mem::take(&mut self.spool);
        match self.lay_beside(words.unwrap_or_else(EntrySorter::new), documents).await {
            Err(HarvestError::Spool(error)) => {
                self.give_up_spool(&error);
                return Ok(false);
            }
            laid => laid?,
        }
        let mut batch = Batch::new();
        for read in read {
            self.note_read(&mut batch, read).await?;
        }
        self.ahead = Ahead::default();
        self.commit(batch).await?;
        Ok(true)
    }

    async fn lay_beside(
        &mut self,
        words: EntrySorter,
        documents: Vec<(Arc<str>, SetId)>,
    ) -> Result<(), HarvestError> {
        let mut listening = Vec::new();
        for (set, silence) in &mut self.seen {
            if let Some(silence) = silence.as_mut().filter(|silence| silence.is_fresh) {
                listening.push((set.clone(), AbsenceSearch::after(silence.found.take())?));
            }
        }
        let records = match listening.is_empty() {
            true => Records::Named,
            false => Records::All(Filter::default()),
        };
        let mut beside = MergeJoin::begin(&self.catalog, words.sorted(Counting::All).await?, records).await?;
        let mut pass = Box::new(self.begin_pass(documents, listening).await?);
        while let Some(met) = beside.next().await? {
            let (is_pending, has_failed) = (pass.is_pending(met.uri()).await?, pass.has_failed(&met).await?);
            pass.listen(&met, has_failed)?;
            if !is_pending
                && !has_failed
                && let Some(settled) = pass.settled(&met)
            {
                self.run.counters.unchanged += settled;
                self.ahead.unchanged += settled;
            } else {
                self.take(&mut pass, met, is_pending).await?;
            }
            pass.met += 1;
            if pass.met.is_multiple_of(SHOWN_EVERY) {
                self.show();
            }
        }
        pass.end().await?;
        self.decide_taken(&mut pass).await?;
        for (set, sayings) in pass.listening {
            self.seen.insert(set, Some(Absences { is_fresh: false, found: Some(sayings.finish()) }));
        }
        Ok(())
    }

    /// Takes the entries of a resource, to decide about them.
    async fn take(&mut self, pass: &mut Pass, met: Joined, is_pending: bool) -> Result<(), HarvestError> {
        let Joined { entries: words, known, goes_on } = met;
        let asking = || words.iter().filter(|word| !word.is_name());
        let Some(first) = asking().next() else { return Ok(()) };
        let uri = first.read(&pass.documents)?.uri;
        let record = match known {
            Some(known) => Some(known.unread.read()?.1),
            None if goes_on => {
                // The entries before may have planned something, and recorded the resource's sets.
                self.decide_taken(pass).await?;
                pass.entries.may_be_pending.push(uri.clone());
                self.catalog.resource(&uri).await?
            }
            None => None,
        };
        if is_pending && !goes_on {
            pass.entries.may_be_pending.push(uri.clone());
        }
        pass.entries.records.extend(record.map(|record| (uri, record)));
        for word in asking() {
            pass.entries.planned.push(word.read(&pass.documents)?);
        }
        if pass.entries.planned.len() >= BATCH {
            self.decide_taken(pass).await?;
        }
        Ok(())
    }

    /// Decides about the taken entries, and commits the result.
    async fn decide_taken(&mut self, pass: &mut Pass) -> Result<(), HarvestError> {
        let before = self.counted();
        self.decide_all(&mut pass.batch, std::mem::take(&mut pass.entries)).await?;
        self.keep_back(before);
        match pass.batch.is_empty() {
            true => Ok(()),
            false => self.commit(std::mem::take(&mut pass.batch)).await,
        }
    }
}

#[cfg(test)]
mod tests;
