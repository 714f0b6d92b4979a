//! Resources with all that is known of them: what is held, what is to be done, and what is in the way.

use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt, TryStreamExt};
use model::{PendingRecord, ProblemRecord, ResourceRecord, ResourceUri, Standing, Subject};
use tokio::time::Instant;

use crate::scan::{KnownScan, PendingScan, ProblemScan, ResourceScan, Scan};
use crate::{CatalogError, Lookups};

/// How long the three scans go on with the state that they began with: less than each of them would by itself, so that they change to a
/// later one together.
const ONE_STATE: Duration = Duration::from_secs(60);
/// How often the scans are begun anew because a commit came between them.
const TRIES: usize = 16;

/// A resource with all that is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// Which one.
    pub uri: ResourceUri,
    /// What is held of it, or that it was deleted.
    pub record: Option<ResourceRecord>,
    /// What is still to be done with it.
    pub pending: Option<PendingRecord>,
    /// Why it could not be brought in step.
    pub problem: Option<ProblemRecord>,
}

impl Known {
    /// How it stands.
    pub fn standing(&self) -> Standing {
        Standing::of(self.record.as_ref(), self.pending.as_ref(), self.problem.as_ref())
    }
}

impl Lookups {
    /// All resources of which anything is known and whose URI begins with `prefix`, in the order of their URIs' bytes, from the one
    /// after `after`.
    ///
    /// They are shown by one state of the catalog: a resource that is settled while they are read is met once, before or after,
    /// and never in none of the places that it moves between.
    ///
    /// # Errors
    /// When the store fails; the scan itself fails where a record cannot be read.
    pub async fn scan_known(
        &self,
        prefix: Option<&str>,
        after: Option<&ResourceUri>,
    ) -> Result<KnownScan, CatalogError> {
        let prefix: Arc<str> = prefix.unwrap_or_default().into();
        let merge = Merge::begin(self.clone(), prefix, after.cloned()).await?;
        let known = stream::try_unfold(merge, |mut merge| async move {
            let next = merge.next().await?;
            Ok(next.map(|known| (known, merge)))
        });
        Ok(Scan::new(known.boxed()))
    }
}

/// A record that was read and whose turn has not come yet.
type Ahead<T> = Option<(ResourceUri, T)>;

/// The three scans side by side.
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

    async fn next(&mut self) -> Result<Option<Known>, CatalogError> {
        if self.began.elapsed() > ONE_STATE {
            let (lookups, prefix) = (self.lookups.clone(), Arc::clone(&self.prefix));
            *self = *Self::begin(lookups, prefix, self.last.clone()).await?;
        }
        let uris = [uri_of(&self.pending.1), uri_of(&self.problems.1), uri_of(&self.resources.1)];
        let Some(uri) = uris.into_iter().flatten().min().cloned() else { return Ok(None) };
        let known = Known {
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
    /// Begins all three in one state. Should commits come between them every time, then in the order in which a resource moves: what
    /// is missed in one scan because it was settled before is met in a later one.
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
        // A problem with a URI that is none is told of by itself: nothing could be held under it.
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
