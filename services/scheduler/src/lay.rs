//! Planning beside the catalog: the entries of documents that speak of what may be held already are spooled, put in the order of URIs, and laid beside the
//! catalog (docs/adr/0038). What is held as an entry says is settled by the comparison; about the rest it is decided as ever. What is held and named by none is found in the
//! same pass.
//!
//! Until then nothing in the catalog says that these documents were read: after a crash they are read again.

mod pass;
mod spool;

use std::io;
use std::sync::Arc;

use catalog::Batch;
use model::{DocumentRecord, ResourceUri, SetId};
use resourcesync::Capability;

use crate::beside::{Beside, Counting, Met, Records, Sayings, Silence, Words};
use crate::document::ReadDocument;
use crate::entry::Planned;
use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::notices::is_notice;
use crate::options::Filter;
use pass::Pass;
pub(crate) use spool::{Ahead, Spool};

/// Entries that are decided about together.
const BATCH: usize = 4096;
/// Documents that wait to be laid beside the catalog.
const MOST_DOCUMENTS: usize = 4096;
/// Resources that are settled before who watches is told.
const SHOWN_EVERY: u64 = 16_384;

impl Harvest {
    /// Whether the entries of a document are laid beside the catalog. Of a set of which nothing is held, there is nothing to lay them beside; what a hub delivered is
    /// planned when its message is acknowledged; and a dump names packages.
    pub(crate) fn is_spooled(&self, record: &DocumentRecord) -> bool {
        let has_baseline = self.sets.get(&record.set).is_some_and(|set| set.has_baseline);
        let is_dump = matches!(record.capability, Capability::ResourceDump | Capability::ChangeDump);
        let may_be_held = has_baseline || record.tells_changes();
        may_be_held && !is_dump && !is_notice(record) && self.has_room()
    }

    /// Whether there is room for what is read.
    pub(crate) fn has_room(&self) -> bool {
        !self.spool.is_broken
    }

    /// Begins to count what the catalog is told of later.
    pub(crate) fn counted(&self) -> Ahead {
        Ahead::of(&self.run)
    }

    /// Keeps what was counted since back until the document is known as read.
    pub(crate) fn keep_back(&mut self, before: Ahead) {
        self.ahead = self.ahead.with(before, Ahead::of(&self.run));
    }

    /// The number of a document whose words are to come.
    pub(crate) fn spool_number(&mut self, document: &str, set: &SetId) -> usize {
        self.spool.number(document, set)
    }

    /// Takes entries of the document with this number. Returns whether there was room.
    pub(crate) async fn spool_entries(&mut self, number: usize, set: &SetId, entries: &[Planned]) -> bool {
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

    /// A document was read to its end, and is known as read when its entries are planned.
    pub(crate) async fn await_plans(&mut self, read: ReadDocument) -> Result<(), HarvestError> {
        self.spool.read.push(read);
        if self.spool.read.len() >= MOST_DOCUMENTS {
            Box::pin(self.lay()).await?;
        }
        Ok(())
    }

    /// Notes that a set's list names a resource. Whoever notes makes room now and then.
    pub(crate) fn note_named(&mut self, document: &str, set: &SetId, uri: &ResourceUri) {
        let Some(Some(silence)) = self.seen.get_mut(set) else { return };
        silence.is_fresh = true;
        let number = self.spool.number(document, set);
        if let Err(error) = self.spool.words().add_name(uri, number) {
            self.give_up_spool(&error);
        }
    }

    /// Puts on the disk what memory is full of. Returns whether there was room, now and before.
    pub(crate) async fn make_room(&mut self) -> bool {
        if let Some(words) = &mut self.spool.words
            && let Err(error) = words.make_room().await
        {
            self.give_up_spool(&error);
        }
        !self.spool.is_broken
    }

    /// Without room for what was read, it is read again and planned entry by entry. What was named is forgotten with it.
    fn give_up_spool(&mut self, error: &io::Error) {
        tracing::warn!(%error, "no room for what documents say: they are read again, and absences are not looked for in this run");
        self.spool = Spool { is_broken: true, ..Spool::default() };
        self.seen.values_mut().for_each(|silence| *silence = None);
        self.run = std::mem::take(&mut self.ahead).taken_from(&self.run);
    }

    /// Lays what was read beside the catalog, and plans what it asks for. Returns whether that could be done; if not, the documents are still to be read.
    pub(crate) async fn lay(&mut self) -> Result<bool, HarvestError> {
        if self.spool.is_asking() {
            return self.lay_all().await;
        }
        self.ahead = Ahead::default();
        Ok(true)
    }

    /// Lays names beside the catalog that were not yet: what is held and not among them is known then.
    pub(crate) async fn lay_names(&mut self) -> Result<bool, HarvestError> {
        let is_fresh = |silence: &Option<Silence>| silence.as_ref().is_some_and(|silence| silence.is_fresh);
        if self.seen.values().any(is_fresh) { self.lay_all().await } else { Ok(true) }
    }

    async fn lay_all(&mut self) -> Result<bool, HarvestError> {
        self.committed().await?;
        let Spool { words, documents, read, .. } = std::mem::take(&mut self.spool);
        match self.lay_beside(words.unwrap_or_else(Words::new), documents).await {
            Err(HarvestError::Temporary(error)) => {
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
        words: Words,
        documents: Vec<(Arc<str>, SetId)>,
    ) -> Result<(), HarvestError> {
        let mut listening = Vec::new();
        for (set, silence) in &mut self.seen {
            if let Some(silence) = silence.as_mut().filter(|silence| silence.is_fresh) {
                listening.push((set.clone(), Sayings::after(silence.found.take())?));
            }
        }
        let records = match listening.is_empty() {
            true => Records::Named,
            false => Records::All(Filter::default()),
        };
        let mut beside = Beside::begin(&self.catalog, words.sorted(Counting::All).await?, records).await?;
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
            self.seen.insert(set, Some(Silence { is_fresh: false, found: Some(sayings.finish()) }));
        }
        Ok(())
    }

    /// Takes what is said of a resource, to be decided about.
    async fn take(&mut self, pass: &mut Pass, met: Met, is_pending: bool) -> Result<(), HarvestError> {
        let Met { words, known, goes_on } = met;
        let asking = || words.iter().filter(|word| !word.is_name());
        let Some(first) = asking().next() else { return Ok(()) };
        let uri = first.read(&pass.documents)?.uri;
        let record = match known {
            Some(known) => Some(known.unread.read()?.1),
            None if goes_on => {
                // The words before may have planned something, and said of which sets it is.
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

    /// Decides about what was taken, and commits what that comes to.
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
