//! Resources with all of their records: the stored version, the pending record, and the problem.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt, TryStreamExt};
use model::{PendingRecord, ProblemRecord, ResourceRecord, ResourceState, ResourceUri, Subject};
use tokio::time::Instant;

use crate::scan::{PendingScan, ProblemScan, ResourceScan, Scan};
use crate::{CatalogError, Lookups};

/// Resources with all of their records.
pub type ResourceSummaryScan = Scan<ResourceSummary>;

/// How long the three scans read from their first state. It is shorter than the limit of a single scan, so
/// that they change to a later state together.
const ONE_STATE: Duration = Duration::from_secs(60);
/// How often the scans start again because a commit came between them.
const TRIES: usize = 16;

/// A resource with all of its records.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceSummary {
    /// Its URI.
    pub uri: ResourceUri,
    /// Its stored version, or its tombstone.
    pub record: Option<ResourceRecord>,
    /// Its pending work.
    pub pending: Option<PendingRecord>,
    /// The problem that keeps it from being in sync.
    pub problem: Option<ProblemRecord>,
}

impl ResourceSummary {
    /// Its state.
    pub fn state(&self) -> ResourceState {
        ResourceState::of(self.record.as_ref(), self.pending.as_ref(), self.problem.as_ref())
    }
}

impl Lookups {
    /// All resources with a record whose URI begins with `prefix`, in the order of their URIs' bytes, from
    /// the one after `after`.
    ///
    /// They are read from one state of the catalog. A resource that is settled meanwhile appears once, in its
    /// earlier or later state; it is never missed.
    ///
    /// # Errors
    /// When the store fails; the scan itself fails where a record cannot be read.
    pub async fn scan_known(
        &self,
        prefix: Option<&str>,
        after: Option<&ResourceUri>,
    ) -> Result<ResourceSummaryScan, CatalogError> {
        let prefix: Arc<str> = prefix.unwrap_or_default().into();
        let merge = Merge::begin(self.clone(), prefix, after.cloned()).await?;
        let known = stream::try_unfold(merge, |mut merge| async move {
            let next = merge.next().await?;
            Ok(next.map(|known| (known, merge)))
        });
        Ok(Scan::new(known.boxed()))
    }
}

/// A record that was read ahead.
type Ahead<T> = Option<(ResourceUri, T)>;

/// Merges the three scans.
struct Merge {
    lookups: Lookups,
    prefix: Arc<str>,
    began: Instant,
    last: Option<ResourceUri>,
    pending: (PendingScan, Ahead<PendingRecord>),
    problems: (ProblemScan, Ahead<ProblemRecord>),
    resources: (ResourceScan, Ahead<ResourceRecord>),
}

impl Merge {
    async fn begin(
        lookups: Lookups,
        prefix: Arc<str>,
        after: Option<ResourceUri>,
    ) -> Result<Box<Self>, CatalogError> {
        let (pending, problems, resources) = lookups.three_scans(&prefix, after.as_ref()).await?;
        let mut merge = Box::new(Self {
            lookups,
            prefix,
            began: Instant::now(),
            last: after,
            pending: (pending, None),
            problems: (problems, None),
            resources: (resources, None),
        });
        merge.pending.1 = merge.pending.0.try_next().await?;
        merge.problems.1 = next_problem(&mut merge.problems.0).await?;
        merge.resources.1 = merge.resources.0.try_next().await?;
        Ok(merge)
    }

    async fn next(&mut self) -> Result<Option<ResourceSummary>, CatalogError> {
        if self.began.elapsed() > ONE_STATE {
            let lookups = self.lookups.clone();
            let prefix = Arc::clone(&self.prefix);
            *self = *Self::begin(lookups, prefix, self.last.clone()).await?;
        }
        let uris = [uri_of(&self.pending.1), uri_of(&self.problems.1), uri_of(&self.resources.1)];
        let Some(uri) = uris.into_iter().flatten().min().cloned() else { return Ok(None) };
        let known = ResourceSummary {
            pending: take(&mut self.pending.1, &uri),
            problem: take(&mut self.problems.1, &uri),
            record: take(&mut self.resources.1, &uri),
            uri,
        };
        if known.pending.is_some() {
            self.pending.1 = self.pending.0.try_next().await?;
        }
        if known.problem.is_some() {
            self.problems.1 = next_problem(&mut self.problems.0).await?;
        }
        if known.record.is_some() {
            self.resources.1 = self.resources.0.try_next().await?;
        }
        self.last = Some(known.uri.clone());
        Ok(Some(known))
    }
}

impl Lookups {
    /// Starts all three in one state. If commits come between them every time, it starts them in the order in
    /// which a resource moves. A record that one scan misses because it was settled before is then found by a
    /// later one.
    async fn three_scans(
        &self,
        prefix: &str,
        after: Option<&ResourceUri>,
    ) -> Result<(PendingScan, ProblemScan, ResourceScan), CatalogError> {
        let mut tries = 0;
        loop {
            let state = self.state();
            let scans = (
                self.scan_pending_below(prefix, after).await?,
                self.scan_resource_problems(prefix, after).await?,
                self.scan_resources(Some(prefix), after).await?,
            );
            tries += 1;
            if self.state() == state || tries == TRIES {
                return Ok(scans);
            }
        }
    }
}

async fn next_problem(scan: &mut ProblemScan) -> Result<Ahead<ProblemRecord>, CatalogError> {
    while let Some((subject, record)) = scan.try_next().await? {
        // A problem whose subject is no valid URI belongs to no resource.
        if let Subject::Resource(uri) = subject
            && let Ok(uri) = ResourceUri::try_from(uri)
        {
            return Ok(Some((uri, record)));
        }
    }
    Ok(None)
}

fn uri_of<T>(ahead: &Ahead<T>) -> Option<&ResourceUri> {
    ahead.as_ref().map(|(uri, _)| uri)
}

fn take<T>(ahead: &mut Ahead<T>, uri: &ResourceUri) -> Option<T> {
    ahead.take_if(|(found, _)| found == uri).map(|(_, record)| record)
}
