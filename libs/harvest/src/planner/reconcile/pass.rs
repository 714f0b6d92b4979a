//! One merge join: settles matching entries, and finds absences.

use std::sync::Arc;

use catalog::{Batch, PendingScan, ProblemScan};
use futures::TryStreamExt as _;
use model::{Holding, ResourceUri, SetId, Subject};
use planning::is_stored_as_declared;
use reconcile::{AbsenceSearch, Joined, SpoolError, SpooledEntry};

use crate::error::HarvestError;
use crate::planner::entries::Entries;
use crate::run::RunContext;

/// A pass over entries and records.
pub(super) struct Pass {
    pub(super) documents: Vec<(Arc<str>, SetId)>,
    /// Sets whose absences count.
    pub(super) searches: Vec<(SetId, AbsenceSearch)>,
    /// For each document, the number of its set.
    of_set: Vec<Option<usize>>,
    pending: Marks,
    next_pending: Option<ResourceUri>,
    failed: Marks,
    next_failed: Option<ResourceUri>,
    pub(super) entries: Entries,
    pub(super) batch: Batch,
    pub(super) resources: u64,
    /// Links that declare other bytes of a listed resource than its own entry.
    pub(super) contradicting: u64,
}

/// Positions of scans, which are asked for resources in the order of URIs.
enum Marks {
    Pending(PendingScan),
    Failed(ProblemScan),
    None,
}

impl Pass {
    /// Starts a pass.
    pub(super) async fn begin(
        ctx: &mut RunContext,
        documents: Vec<(Arc<str>, SetId)>,
        searches: Vec<(SetId, AbsenceSearch)>,
    ) -> Result<Self, HarvestError> {
        let place = |(_, set): &(Arc<str>, SetId)| searches.iter().position(|(searched, _)| searched == set);
        let of_set = documents.iter().map(place).collect();
        let mut pending = if ctx.is_anything_planned() {
            Marks::Pending(ctx.catalog().await?.scan_pending(None).await?)
        } else {
            Marks::None
        };
        let mut failed = if ctx.problems.any {
            Marks::Failed(ctx.catalog().await?.scan_resource_problems("", None).await?)
        } else {
            Marks::None
        };
        let next_pending = pending.next().await?;
        let next_failed = failed.next().await?;
        let entries = Entries::default();
        let batch = Batch::new();
        Ok(Self {
            documents,
            searches,
            of_set,
            pending,
            next_pending,
            failed,
            next_failed,
            entries,
            batch,
            resources: 0,
            contradicting: 0,
        })
    }

    /// Number of entries that the join settles at once: each matches the stored record, and nothing else changed.
    pub(super) fn settled(&mut self, joined: &Joined) -> Result<Option<u64>, SpoolError> {
        let Some(holding) = joined.known.as_ref().map(|known| &known.holding) else { return Ok(None) };
        let is_settled = |entry: &SpooledEntry| {
            let set = self.documents.get(entry.document()).map(|(_, set)| set);
            entry.plain().is_some_and(|(sha256, length)| {
                is_stored_as_declared(sha256, length, holding.bitstream.as_ref())
                    && set.is_some_and(|set| holding.sets.contains(set))
            })
        };
        let mut settled = 0;
        for entry in joined.entries.iter().filter(|entry| !entry.is_name() && !entry.is_linked()) {
            if holding.absent.is_some()
                || holding.listing.linked.is_some()
                || !is_settled(entry)
                || !entry.has_links(holding.listing.links.as_ref())?
            {
                return Ok(None);
            }
            settled += 1;
        }
        if settled == 0 && joined.entries.iter().any(SpooledEntry::is_linked) {
            return self.settled_links(joined, holding);
        }
        // A list names it: links to it ask for nothing.
        for link in joined.entries.iter().filter(|entry| entry.is_linked()) {
            let held = holding.bitstream.as_ref();
            let is_other =
                link.plain().is_some_and(|(sha256, length)| !is_stored_as_declared(sha256, length, held));
            self.contradicting += u64::from(is_other);
            settled += 1;
        }
        Ok(Some(settled))
    }

    /// Number of entries of links that the join settles at once: the link that led to the stored version speaks of the
    /// same version again.
    fn settled_links(&self, joined: &Joined, holding: &Holding) -> Result<Option<u64>, SpoolError> {
        let Some(held) = holding.listing.linked.as_deref() else { return Ok(None) };
        if holding.bitstream.is_none() || holding.absent.is_some() {
            return Ok(None);
        }
        let (mut settled, mut is_same) = (0, false);
        for entry in joined.entries.iter().filter(|entry| entry.is_linked()) {
            let set = self.documents.get(entry.document()).map(|(_, set)| set);
            let Some(linked) = entry.linked()? else { return Ok(None) };
            let is_known = linked.is_same(Some(held)) || linked.from != held.from && held.shared;
            if entry.is_change() || !is_known || !set.is_some_and(|set| holding.sets.contains(set)) {
                return Ok(None);
            }
            is_same |= linked.from == held.from;
            settled += 1;
        }
        Ok(Some(settled).filter(|_| is_same))
    }

    /// Records the absences of a resource.
    pub(super) fn search(&mut self, joined: &Joined, has_failed: bool) -> Result<(), SpoolError> {
        if self.searches.is_empty() {
            return Ok(());
        }
        let of_set = &self.of_set;
        // A listed resource that the lists omit is absent, even if something links to it. From then on it is linked.
        let links_count = joined.known.as_ref().is_none_or(|known| {
            let holding = &known.holding;
            holding.bitstream.is_none() || holding.listing.linked.is_some() || holding.absent.is_some()
        });
        // If not all entries are in memory, one of the others may list it.
        let is_named = |n: usize| {
            let names = |entry: &SpooledEntry| {
                let counts = !entry.is_linked() || links_count;
                !entry.is_change() && counts && of_set.get(entry.document()) == Some(&Some(n))
            };
            joined.entries.is_cut_short() || joined.goes_on || joined.entries.iter().any(names)
        };
        let held =
            joined.known.as_ref().map(|known| &known.holding).filter(|holding| holding.bitstream.is_some());
        for (n, (set, search)) in self.searches.iter_mut().enumerate() {
            if held.is_some_and(|holding| holding.sets.contains(set)) {
                search.note_held(joined.uri(), is_named(n))?;
            }
            if has_failed && !is_named(n) {
                search.note_failed(joined.uri())?;
            }
        }
        Ok(())
    }

    /// Ends the pass. Failed resources after the last one joined are in no list.
    pub(super) async fn end(&mut self) -> Result<(), HarvestError> {
        while let Some(uri) = self.next_failed.take() {
            self.note_failed(&uri)?;
            self.next_failed = self.failed.next().await?;
        }
        Ok(())
    }

    /// Records a failed resource that is in no list.
    fn note_failed(&mut self, uri: &ResourceUri) -> Result<(), SpoolError> {
        self.searches.iter_mut().try_for_each(|(_, search)| search.note_failed(uri.as_str().as_bytes()))
    }

    /// Whether a resource has a pending record.
    pub(super) async fn is_pending(&mut self, uri: &[u8]) -> Result<bool, HarvestError> {
        while self.next_pending.as_ref().is_some_and(|next| next.as_str().as_bytes() < uri) {
            self.next_pending = self.pending.next().await?;
        }
        Ok(self.next_pending.as_ref().is_some_and(|next| next.as_str().as_bytes() == uri))
    }

    /// Whether a resource failed before. Failed resources that sort before it and are not stored are in no list.
    pub(super) async fn has_failed(&mut self, joined: &Joined) -> Result<bool, HarvestError> {
        while let Some(uri) = self.next_failed.take_if(|next| next.as_str().as_bytes() < joined.uri()) {
            self.note_failed(&uri)?;
            self.next_failed = self.failed.next().await?;
        }
        let has_failed = self.next_failed.take_if(|next| next.as_str().as_bytes() == joined.uri()).is_some();
        if has_failed {
            self.next_failed = self.failed.next().await?;
        }
        Ok(has_failed)
    }
}

impl Marks {
    async fn next(&mut self) -> Result<Option<ResourceUri>, HarvestError> {
        match self {
            Self::Pending(scan) => Ok(scan.try_next().await?.map(|(uri, _)| uri)),
            Self::Failed(scan) => {
                while let Some((subject, _)) = scan.try_next().await? {
                    if let Subject::Resource(uri) = subject
                        && let Ok(uri) = ResourceUri::try_from(uri)
                    {
                        return Ok(Some(uri));
                    }
                }
                Ok(None)
            }
            Self::None => Ok(None),
        }
    }
}
