//! A harvest: the owner of one Source brings it in step.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bus::Bus;
use catalog::{Batch, Catalog};
use futures::{StreamExt, TryStreamExt};
use model::{
    Action, Clock, Counters, Lane, Mode, PendingRecord, Phase, ProblemRecord, RunId, RunRecord, Seq, SetId,
    SetRecord, SourceId, Subject,
};
use resourcesync::Options;
use store::{Store, View};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;
use web::Client;

use crate::absent::Guard;
use crate::discover::{Discovery, discover};
use crate::error::HarvestError;
use crate::options::HarvestOptions;
use crate::progress::Progress;
use crate::seen::Seen;
use crate::ways::{self, Ways};
use crate::{look, queue, trouble};

/// Pending records that travel in one batch when problems are queued again.
const REQUEUE_BATCH: usize = 500;

/// Problems shown at the end of a run.
const SHOWN_PROBLEMS: usize = 5;

/// Everything a harvest works with. One per Source, since a catalog has one writer.
pub struct Parts {
    /// The Source's name.
    pub source: SourceId,
    /// The way in, as the operator gave it.
    pub entry: Url,
    /// The Source's catalog.
    pub catalog: Catalog,
    /// Where bytes lie.
    pub store: Store,
    /// Where resources are laid out as files, if they are.
    pub view: Option<View>,
    /// How documents are requested.
    pub client: Client,
    /// How jobs travel.
    pub bus: Arc<dyn Bus>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// What the operator chose.
    pub options: HarvestOptions,
    /// Who watches.
    pub progress: watch::Sender<Progress>,
    /// Cancelled when the harvest is to stop.
    pub stop: CancellationToken,
}

/// A run in the hands of its owner.
pub struct Harvest {
    pub(crate) source: SourceId,
    pub(crate) entry: Url,
    pub(crate) catalog: Catalog,
    pub(crate) store: Store,
    pub(crate) view: Option<View>,
    pub(crate) client: Client,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) options: HarvestOptions,
    pub(crate) progress: watch::Sender<Progress>,
    pub(crate) stop: CancellationToken,
    pub(crate) run: RunRecord,
    pub(crate) sets: HashMap<SetId, SetRecord>,
    pub(crate) seq: Seq,
    /// Whether what was read before was read with the same options, so that "not modified" means "nothing to do".
    pub(crate) may_trust_validators: bool,
    /// Whether there may be pending records: none are left by a run that finished.
    pub(crate) has_pending: bool,
    /// Whether there are problem records at all: lookups are saved where there are none.
    pub(crate) has_problems: bool,
    /// Problems queued again at the start, by the document that asked for them.
    pub(crate) requeued: HashMap<String, u64>,
    /// What each set's lists named in this process.
    pub(crate) seen: HashMap<SetId, Option<Seen>>,
    /// Documents that were read from their first entry to their end in this process.
    pub(crate) read_whole: HashSet<String>,
    /// Set when more would have been deleted than is allowed.
    pub(crate) guard: Option<Guard>,
    resumed: bool,
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Report {
    /// The run.
    pub run: RunRecord,
    /// Whether it went on with one that was interrupted.
    pub resumed: bool,
    /// Problems that are open, of this run and of earlier ones.
    pub open_problems: u64,
    /// The guard's word, if it kept resources from being deleted.
    pub guard: Option<Guard>,
    /// The first few of them.
    pub first_problems: Vec<(Subject, ProblemRecord)>,
}

impl Report {
    /// Whether what is held is what the Source has.
    pub fn in_sync(&self) -> bool {
        self.open_problems == 0
    }
}

impl Harvest {
    /// Takes up the run that was interrupted, or begins a new one by finding out what the Source offers.
    ///
    /// # Errors
    /// When the Source offers nothing that can be harvested, or the catalog fails.
    pub async fn open(parts: Parts) -> Result<Self, HarvestError> {
        let Parts { source, entry, catalog, store, view, client, bus, clock, options, progress, stop } =
            parts;
        let last = catalog.last_run().await?;
        let seq = catalog.last_seq().await?;
        let mut sets = HashMap::new();
        for (id, set) in catalog.sets().await? {
            sets.insert(id, set);
        }
        let has_problems = catalog.scan_problems().await?.try_next().await?.is_some();
        let fingerprint = options.fingerprint();
        let interrupted = last.clone().filter(|run| run.phase != Phase::Finished);
        let may_trust_validators = last.as_ref().is_some_and(|run| run.options == fingerprint);
        let run = interrupted.clone().unwrap_or_else(|| RunRecord {
            id: RunId::fresh(),
            mode: Mode::Baseline,
            phase: Phase::Planning,
            options: fingerprint,
            view: view.is_some() && last.as_ref().is_none_or(|run| run.view),
            started_at: clock.now(),
            finished_at: None,
            counters: Counters::default(),
        });
        let mut harvest = Self {
            source,
            entry,
            catalog,
            store,
            view,
            client,
            bus,
            clock,
            options,
            progress,
            stop,
            run,
            sets,
            seq,
            may_trust_validators,
            has_pending: interrupted.is_some(),
            has_problems,
            requeued: HashMap::new(),
            seen: HashMap::new(),
            read_whole: HashSet::new(),
            guard: None,
            resumed: interrupted.is_some(),
        };
        if interrupted.is_some() {
            harvest.count_requeued().await?;
        } else {
            harvest.begin().await?;
        }
        harvest.catch_up_view().await?;
        harvest.show();
        Ok(harvest)
    }

    /// Brings the Source in step.
    ///
    /// # Errors
    /// [`HarvestError`] when it cannot go on; what was done stays done, and the next harvest goes on from there.
    pub async fn run(mut self) -> Result<Report, HarvestError> {
        if self.run.phase == Phase::Planning {
            self.plan().await?;
            self.run.phase = Phase::Dispatching;
            self.commit(Batch::new()).await?;
        }
        self.dispatch().await?;
        self.finish().await?;
        let open_problems = self.catalog.count_problems().await?;
        let first_problems = self.catalog.scan_problems().await?.take(SHOWN_PROBLEMS).try_collect().await?;
        self.catalog.close().await?;
        Ok(Report { run: self.run, resumed: self.resumed, open_problems, guard: self.guard, first_problems })
    }

    async fn begin(&mut self) -> Result<(), HarvestError> {
        let found = discover(&self.client, &self.entry, &Options::default()).await?;
        self.run.counters.requests += found.requests;
        let Ways { mode, documents } = self.choose(&found)?;
        self.run.mode = mode;
        let mut batch = Batch::new();
        for (id, set) in &self.sets {
            batch.put_set(id, set);
        }
        for (set, capability, uri) in documents {
            let before = self.catalog.document(&uri).await?;
            let queued = queue::queued(self.run.id, &set, &capability, before);
            batch.put_document(&uri, &queued);
        }
        self.record_undiscovered(&mut batch, &found).await?;
        batch.put_look(&look::record(&found, self.clock.now()));
        self.commit(batch).await?;
        self.requeue_problems().await
    }

    /// What is known of the sets is kept; what they offer is taken from the Source.
    fn choose(&mut self, found: &Discovery) -> Result<Ways, HarvestError> {
        for (id, set) in &found.sets {
            self.sets.entry(id.clone()).or_default().capabilities.clone_from(&set.capabilities);
        }
        let current = found.sets.iter().filter_map(|(id, _)| Some((id, self.sets.get(id)?)));
        ways::choose(current, self.options.mode, !self.may_trust_validators).ok_or_else(|| {
            HarvestError::NothingUsable {
                source_url: self.entry.to_string(),
                offers: ways::offers(&found.sets),
            }
        })
    }

    /// What failed before is tried again, unless the documents of this run say something newer of it.
    async fn requeue_problems(&mut self) -> Result<(), HarvestError> {
        if !self.has_problems {
            return Ok(());
        }
        let mut batch = Batch::new();
        let mut queued = 0;
        let mut problems = self.catalog.scan_problems().await?;
        while let Some((subject, problem)) = problems.try_next().await? {
            let (Subject::Resource(uri), Some(declaration), Some(listing)) =
                (subject, problem.declaration, problem.listing)
            else {
                continue;
            };
            let Ok(uri) = model::ResourceUri::try_from(uri) else { continue };
            let Ok(lane) = Lane::of(&uri.to_url()) else { continue };
            *self.requeued.entry(listing.document.clone()).or_default() += 1;
            let pending = PendingRecord {
                seq: self.seq.next(),
                action: Action::Fetch { lane },
                declaration,
                listing,
                attempts: 0,
                next_attempt_at: None,
            };
            self.seq = pending.seq;
            batch.put_pending(&uri, &pending);
            self.has_pending = true;
            self.run.counters.planned += 1;
            queued += 1;
            if queued % REQUEUE_BATCH == 0 {
                let full = std::mem::take(&mut batch);
                self.commit(full).await?;
            }
        }
        drop(problems);
        self.commit(batch).await
    }

    /// After a crash: what is pending of documents that are still to be read was queued again from problems.
    async fn count_requeued(&mut self) -> Result<(), HarvestError> {
        let mut pending = self.catalog.scan_pending(None).await?;
        while let Some((_, record)) = pending.try_next().await? {
            *self.requeued.entry(record.listing.document).or_default() += 1;
        }
        Ok(())
    }

    /// Every change is settled or recorded as a problem: now the sets may move on.
    async fn finish(&mut self) -> Result<(), HarvestError> {
        let mut batch = Batch::new();
        let mut documents = self.catalog.scan_documents().await?;
        let mut read = Vec::new();
        while let Some((_, record)) = documents.try_next().await? {
            if record.run == self.run.id {
                read.push(record);
            }
        }
        for (id, set) in &mut self.sets {
            if ways::advance(set, read.iter().filter(|record| record.set == *id)) {
                batch.put_set(id, set);
            }
        }
        self.run.phase = Phase::Finished;
        self.run.finished_at = Some(self.clock.now());
        self.commit(batch).await
    }

    pub(crate) fn next_seq(&mut self) -> Seq {
        self.seq = self.seq.next();
        self.seq
    }

    /// Commits a batch with the run's counters, so that they tell the truth after a crash.
    pub(crate) async fn commit(&mut self, mut batch: Batch) -> Result<(), HarvestError> {
        batch.put_run(&self.run);
        batch.put_last_seq(self.seq);
        let trouble = trouble::lasting(&self.store);
        tokio::select! {
            result = self.catalog.commit(batch) => result?,
            trouble = trouble => return Err(HarvestError::Trouble(trouble)),
        }
        self.show();
        Ok(())
    }

    pub(crate) fn show(&self) {
        self.progress.send_modify(|progress| {
            progress.phase = Some(self.run.phase);
            progress.counters.clone_from(&self.run.counters);
            progress.resumed = self.resumed;
        });
    }

    pub(crate) fn show_document(&self, uri: &str) {
        self.progress.send_modify(|progress| progress.document = Some(uri.to_owned()));
    }
}
