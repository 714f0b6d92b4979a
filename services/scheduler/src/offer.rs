//! What the Source offers: as it was found out before, as long as nothing speaks against that, so that a run with nothing
//! new costs the requests of its Change Lists and no others.

use catalog::Batch;
use jiff::SignedDuration;
use model::{DiscoveryRecord, DocumentRecord, Mode, ProblemReason, SetId, Subject, Validators};
use resourcesync::{Capability, Mode as ReadMode};

use crate::discover;
use crate::entry::Horizon;
use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::plan::names;
use crate::ways::{self, Ways};
use crate::{look, queue};

impl Harvest {
    /// Queues the documents of a new run.
    pub(crate) async fn begin(&mut self) -> Result<(), HarvestError> {
        self.again = self.sets_again().await?;
        let known = self.catalog.discovery().await?.filter(|known| known.entry == self.entry.as_str());
        let remembered = match known.as_ref().filter(|known| self.is_current(known)) {
            Some(known) => self.choose(&known.sets),
            None => None,
        };
        match remembered {
            Some(ways) => {
                let mut batch = Batch::new();
                self.queue(&mut batch, ways).await?;
                self.commit(batch).await?;
            }
            None => {
                self.look(known).await?;
            }
        }
        self.has_begun = true;
        self.requeue_problems().await
    }

    /// Whether a document that cannot be had is offered no longer. The Source is asked for that, once in a run that went
    /// by what was found out before; what it offers instead is queued.
    ///
    /// # Errors
    /// When the Source does not answer, or offers nothing any more: then the run goes on another time.
    pub(crate) async fn is_offered_no_more(
        &mut self,
        uri: &str,
        record: &DocumentRecord,
        reason: ProblemReason,
    ) -> Result<bool, HarvestError> {
        // What an index names is known from the index, which was read just now.
        if self.has_looked || record.parent.is_some() || !may_have_moved(reason) {
            return Ok(false);
        }
        tracing::info!(
            document.uri = uri,
            reason = reason.as_str(),
            "looking again for what the Source offers"
        );
        let known = self.catalog.discovery().await?;
        let sets = self.look(known).await?;
        // The run is in the middle of something, and may ask for other things first.
        self.begun = None;
        let is_offered = sets
            .iter()
            .filter_map(|id| self.sets.get(id))
            .any(|set| set.documents(&record.capability).any(|offered| offered == uri));
        Ok(!is_offered)
    }

    /// Forgets a document that the Source offers no longer, and what was wrong with it.
    pub(crate) async fn forget_document(&mut self, uri: &str) -> Result<(), HarvestError> {
        self.forget_entry_problems(uri).await?;
        let mut batch = Batch::new();
        batch.delete_document(uri);
        batch.delete_problem(&Subject::Document(uri.to_owned()));
        self.commit(batch).await
    }

    /// Whether what was found out may still be gone by.
    fn is_current(&self, known: &DiscoveryRecord) -> bool {
        let age = self.clock.now().duration_since(known.looked_up_at);
        let most = SignedDuration::try_from(self.options.rediscover_after).unwrap_or(SignedDuration::MAX);
        let is_asked = self.options.rediscover || self.options.mode == Some(Mode::Baseline);
        // A clock that was put back says nothing of the age.
        !is_asked && known.failures == 0 && !age.is_negative() && age < most
    }

    /// Asks the Source, and queues what brings its sets in step. Gives the sets.
    async fn look(&mut self, known: Option<DiscoveryRecord>) -> Result<Vec<SetId>, HarvestError> {
        let looked_up_at = self.clock.now();
        let known = known.map(|known| known.documents).unwrap_or_default();
        let options = Horizon::at(looked_up_at).options(ReadMode::Tolerant);
        let (found, begun) = discover::look(&self.client, &self.entry, &options, known).await?;
        self.begun = begun;
        self.has_looked = true;
        self.run.counters.requests += found.requests;
        // A list is read again, and its quirks are counted then.
        for document in found.documents.iter().filter(|document| document.entries.is_some()) {
            self.run.counters.add_quirks(&names(&document.quirks));
        }
        let mut sets = Vec::new();
        for (id, set) in &found.sets {
            // What is known of the sets is kept; what they offer is taken from the Source.
            let known = self.sets.entry(id.clone()).or_default();
            known.capabilities.clone_from(&set.capabilities);
            known.doubtful = set.doubtful;
            sets.push(id.clone());
        }
        let ways = self.choose(&sets).ok_or_else(|| HarvestError::NothingUsable {
            source_url: self.entry.to_string(),
            offers: ways::offers(&found.sets),
        })?;
        let mut batch = Batch::new();
        self.queue(&mut batch, ways).await?;
        self.record_undiscovered(&mut batch, &found).await?;
        batch.put_look(&look::record(&found, looked_up_at));
        batch.put_discovery(&DiscoveryRecord {
            entry: self.entry.to_string(),
            looked_up_at,
            sets: sets.clone(),
            failures: found.failures.len() as u64,
            documents: found.known,
        });
        self.commit(batch).await?;
        Ok(sets)
    }

    fn choose(&self, sets: &[SetId]) -> Option<Ways> {
        let sets = sets.iter().filter_map(|id| Some((id, self.sets.get(id)?)));
        ways::choose(sets, self.options.mode, self.options.prefer, !self.may_trust_validators, &self.again)
    }

    /// Queues documents that are not of this run yet.
    async fn queue(&mut self, batch: &mut Batch, ways: Ways) -> Result<(), HarvestError> {
        for (id, set) in &mut self.sets {
            set.partly_held = !set.has_baseline && !self.is_bare;
            batch.put_set(id, set);
        }
        for (set, capability, uri) in ways.documents {
            let before = self.catalog.document(&uri).await?;
            if before.as_ref().is_some_and(|before| before.run == self.run.id) {
                continue;
            }
            let mut queued = queue::queued(self.run.id, &set, &capability, before);
            if capability == Capability::ResourceList && self.is_uncompared(&set) {
                queued.validators = Validators::default();
            }
            batch.put_document(&uri, &queued);
        }
        if ways.mode == Mode::Baseline {
            self.run.mode = Mode::Baseline;
        }
        Ok(())
    }
}

/// Whether a failure may come from a document's having moved, or from nobody's being there any more.
fn may_have_moved(reason: ProblemReason) -> bool {
    use ProblemReason::{Connect, Dns, HttpClientError, Redirect, Timeout, Tls, WrongKind};
    matches!(reason, HttpClientError | WrongKind | Redirect | Dns | Connect | Tls | Timeout)
}
