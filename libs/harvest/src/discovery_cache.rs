//! Starts a run from cached discovery, unless it expired or a document moved. So an idle run costs only the requests
//! for its Change Lists.

use catalog::Batch;
use jiff::SignedDuration;
use model::{DiscoveryRecord, DocumentRecord, Mode, ProblemReason, SetId, Subject, Validators};
use planning::{Horizon, queued_document, strategy};
use resourcesync::{Capability, Mode as ReadMode};

use crate::error::HarvestError;
use crate::harvest::Harvest;
use crate::plan::names;

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
            Some(chosen) => {
                let mut batch = Batch::new();
                self.queue(&mut batch, chosen).await?;
                self.commit(batch).await?;
            }
            None => {
                self.look(known).await?;
            }
        }
        self.has_begun = true;
        self.requeue_problems().await
    }

    /// Whether the Source no longer offers an unavailable document. A run from cached discovery rediscovers once to
    /// find that out, and queues what the Source offers instead.
    ///
    /// # Errors
    /// When the Source does not answer, or offers nothing any more. A later run continues then.
    pub(crate) async fn is_offered_no_more(
        &mut self,
        uri: &str,
        record: &DocumentRecord,
        reason: ProblemReason,
    ) -> Result<bool, HarvestError> {
        // The index was read just now, so its list of parts is current.
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
        // The run is in progress, and may make other requests first.
        self.begun = None;
        let is_offered = sets
            .iter()
            .filter_map(|id| self.sets.get(id))
            .any(|set| set.documents(&record.capability).any(|offered| offered == uri));
        Ok(!is_offered)
    }

    /// Forgets a document that the Source no longer offers, and its problems.
    pub(crate) async fn forget_document(&mut self, uri: &str) -> Result<(), HarvestError> {
        self.forget_entry_problems(uri).await?;
        let mut batch = Batch::new();
        batch.delete_document(uri);
        batch.delete_problem(&Subject::Document(uri.to_owned()));
        self.commit(batch).await
    }

    /// Whether the cached discovery is still usable.
    fn is_current(&self, known: &DiscoveryRecord) -> bool {
        let age = self.clock.now().duration_since(known.looked_up_at);
        let most = SignedDuration::try_from(self.options.rediscover_after).unwrap_or(SignedDuration::MAX);
        let is_asked = self.options.rediscover || self.options.mode == Some(Mode::Baseline);
        // A clock that was set back gives no age.
        !is_asked && known.failures == 0 && !age.is_negative() && age < most
    }

    /// Runs discovery, and queues the documents that sync the Source. Returns the sets.
    async fn look(&mut self, known: Option<DiscoveryRecord>) -> Result<Vec<SetId>, HarvestError> {
        let looked_up_at = self.clock.now();
        let known = known.map(|known| known.documents).unwrap_or_default();
        let options = Horizon::at(looked_up_at).options(ReadMode::Tolerant);
        let (found, begun) = discovery::rediscover(&self.client, &self.entry, &options, known).await?;
        self.begun = begun;
        self.has_looked = true;
        self.run.counters.requests += found.requests;
        // A list is read again, and its quirks are counted then.
        for document in found.documents.iter().filter(|document| document.entries.is_some()) {
            self.run.counters.add_quirks(&names(&document.quirks));
        }
        let mut sets = Vec::new();
        for (id, set) in &found.sets {
            // The state of the sets is kept; their capabilities are replaced.
            let known = self.sets.entry(id.clone()).or_default();
            known.capabilities.clone_from(&set.capabilities);
            known.doubtful = set.doubtful;
            sets.push(id.clone());
        }
        let chosen = self.choose(&sets).ok_or_else(|| HarvestError::NothingUsable {
            source_url: self.entry.to_string(),
            offers: strategy::offers(&found.sets),
        })?;
        let mut batch = Batch::new();
        self.queue(&mut batch, chosen).await?;
        self.record_undiscovered(&mut batch, &found).await?;
        batch.put_look(&discovery::discovery_report(&found, looked_up_at));
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

    fn choose(&self, sets: &[SetId]) -> Option<strategy::Strategy> {
        let sets = sets.iter().filter_map(|id| Some((id, self.sets.get(id)?)));
        strategy::choose(
            sets,
            self.options.mode,
            self.options.prefer,
            !self.may_trust_validators,
            &self.again,
        )
    }

    /// Queues documents that are not yet part of this run.
    async fn queue(&mut self, batch: &mut Batch, chosen: strategy::Strategy) -> Result<(), HarvestError> {
        for (id, set) in &mut self.sets {
            set.partly_held = !set.has_baseline && !self.is_bare;
            batch.put_set(id, set);
        }
        for (set, capability, uri) in chosen.documents {
            let before = self.catalog.document(&uri).await?;
            if before.as_ref().is_some_and(|before| before.run == self.run.id) {
                continue;
            }
            let mut queued = queued_document(self.run.id, &set, &capability, before);
            if capability == Capability::ResourceList && self.is_uncompared(&set) {
                queued.validators = Validators::default();
            }
            batch.put_document(&uri, &queued);
        }
        if chosen.mode == Mode::Baseline {
            self.run.mode = Mode::Baseline;
        }
        Ok(())
    }
}

/// Whether a failure may mean that a document moved, or that its server is gone.
fn may_have_moved(reason: ProblemReason) -> bool {
    use ProblemReason::{Connect, Dns, HttpClientError, Redirect, Timeout, Tls, WrongKind};
    matches!(reason, HttpClientError | WrongKind | Redirect | Dns | Connect | Tls | Timeout)
}
