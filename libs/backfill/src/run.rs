//! A backfill of one Source.

use std::collections::HashMap;
use std::sync::Arc;

use catalog::{Batch, Catalog};
use fixity::Verdict;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use jiff::Timestamp;
use model::{BackfillCounts, Bitstream, Clock, Declaration, ResourceUri, SourceId, Versions};
use resourcesync::relation;
use secrets::redacted;
use store::Store;
use tokio_util::sync::CancellationToken;
use url::Url;
use web::Client;

use crate::archives::{self, Archived};
use crate::bounds::Bounds;
use crate::candidate::{Candidate, Choice, Wanted, choose};
use crate::error::BackfillError;
use crate::fetch::{Refused, fetch, fetch_member};
use crate::keep::Keeper;
use crate::report::{Count as _, Remark};
use crate::resource::Resource;
use crate::timemap::{self, Pages};

/// Maximum TimeMaps of a resource that are read.
const MOST_TIMEMAPS: usize = 4;

/// What a backfill works with.
pub struct Parts<'a> {
    /// The Source.
    pub source: &'a SourceId,
    /// Its catalog, which the caller owns.
    pub catalog: &'a Catalog,
    /// The store.
    pub store: &'a Store,
    /// The client, with the Source's terms.
    pub client: &'a Client,
    /// The time.
    pub clock: &'a dyn Clock,
    /// Stops the backfill: it commits, and ends with [`BackfillError::Stopped`].
    pub stop: &'a CancellationToken,
}

/// Which versions to fetch, and how.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The newest N versions of each resource, held ones included. If the catalog keeps fewer, it keeps N from now on.
    pub versions: u32,
    /// Only versions that the Source had at this time or later.
    pub since: Option<Timestamp>,
    /// Whether versions without a declared digest may come from other hosts than the resource's.
    pub any_host: bool,
    /// Whether ResourceSync Archives are read, too.
    pub archives: bool,
    /// How many TimeMaps are read at a time, and how many versions are fetched.
    pub at_a_time: usize,
    /// How much it has in memory.
    pub bounds: Bounds,
}

/// How far a backfill is. Another one with the same options goes on from there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// The last resource whose versions are all committed, in the byte order of the URIs.
    pub after: Option<ResourceUri>,
    /// What was done until then.
    pub counts: BackfillCounts,
}

/// What was planned for a resource.
struct Plan {
    resource: Arc<Resource>,
    pages: Vec<Pages>,
    choice: Choice,
    /// The chosen versions whose bytes are held.
    copies: Vec<(Candidate, Bitstream)>,
    /// The chosen versions that are to be fetched.
    fetches: Vec<(Candidate, Url)>,
    /// The number of those with neither.
    not_held: u64,
}

/// Fetches earlier versions of a Source's stored resources into their history, from a checkpoint on. `told` gets what was
/// not used, and why; `committed` gets each further checkpoint.
///
/// # Errors
/// [`BackfillError`]. Failures of servers are counted in the report instead.
pub async fn run(
    parts: &Parts<'_>,
    options: Options,
    from: Checkpoint,
    told: &mut (dyn FnMut(&Remark) + Send),
    committed: &mut (dyn FnMut(&Checkpoint) + Send),
) -> Result<BackfillCounts, BackfillError> {
    let Parts { source, catalog, store, clock, .. } = *parts;
    let noted = catalog.history().await?.unwrap_or_default();
    let keep = noted.max(options.versions);
    if keep > noted {
        // Otherwise the next change of a resource would drop its versions.
        let mut batch = Batch::new();
        batch.put_history(keep);
        catalog.commit(batch).await?;
    }
    let wanted = Wanted { versions: options.versions, keep, since: options.since };
    let Checkpoint { mut after, counts: mut report } = from;
    let mut archived = if options.archives {
        let most = options.bounds.archived;
        // It may take many requests, and nothing of it is kept.
        tokio::select! {
            read = archives::read(parts.client, catalog, options.since, clock.now(), most) => read?,
            () = parts.stop.cancelled() => return Err(BackfillError::Stopped),
        }
    } else {
        Archived::default()
    };
    if after.is_none() {
        add_archives(&mut report, &mut archived, told);
    } else {
        // They were counted, and are read once more.
        report.requests += archived.requests;
    }
    let archived = &archived.versions;
    let mut keeper = Keeper::new(store, catalog, source, clock, keep);
    let resources = catalog.scan_resources(None, after.as_ref()).await?.err_into::<BackfillError>();
    let mut resources = Box::pin(resources.try_filter_map(|(uri, record)| {
        let is_archived = archived.contains_key(&uri);
        std::future::ready(Ok(Resource::of(uri, record, is_archived)))
    }));
    let mut groups = 0;
    loop {
        if parts.stop.is_cancelled() {
            keeper.commit(&mut report).await?;
            if after.is_some() {
                committed(&Checkpoint { after, counts: report });
            }
            return Err(BackfillError::Stopped);
        }
        let some: Vec<Resource> = resources.by_ref().take(options.bounds.resources).try_collect().await?;
        let Some(last) = some.last().map(|resource| resource.uri.clone()) else { break };
        // All is planned before anything is fetched: a TimeMap that is being received keeps a permit of its origin. The
        // backfill would not receive it while its fetches wait for permits.
        let plans =
            stream::iter(some).map(|resource| plan(parts, resource, archived, wanted, &options.bounds));
        let plans: Vec<Plan> = plans.buffered(options.at_a_time).try_collect().await?;
        let mut fetches = Vec::new();
        for plan in plans {
            let Plan { resource, pages, choice, copies, fetches: of_one, not_held } = plan;
            report.not_held += not_held;
            add_plan(&mut report, &resource, pages, &choice, told);
            for (candidate, held) in copies {
                report.copied += 1;
                keeper.take_held(Arc::clone(&resource), candidate, held, &mut report).await?;
            }
            fetches.extend(of_one.into_iter().map(|(one, url)| (Arc::clone(&resource), one, url)));
        }
        let mut fetched = Box::pin(
            stream::iter(fetches)
                .map(|(resource, candidate, url)| async move {
                    let (requests, result) = match &candidate.member {
                        Some(member) if candidate.url.is_none() => {
                            fetch_member(store, &candidate, member).await?
                        }
                        _ => {
                            fetch(parts.client, store, &resource, &candidate, &url, options.any_host).await?
                        }
                    };
                    Ok::<_, BackfillError>((resource, candidate, url, requests, result))
                })
                .buffered(options.at_a_time),
        );
        while let Some((resource, candidate, url, requests, result)) = fetched.try_next().await? {
            report.requests += requests;
            match result {
                Ok(version) => keeper.take(resource, candidate, version, &mut report).await?,
                Err(Refused { reason, message, is_left_out }) => {
                    let uri = Some(resource.uri.clone());
                    let remark = Remark { uri, at: redacted(&url), reason, message, is_left_out };
                    report.note(&remark);
                    told(&remark);
                }
            }
        }
        groups += 1;
        if groups >= options.bounds.groups_per_commit {
            keeper.commit(&mut report).await?;
        }
        after = Some(last);
        if keeper.is_empty() {
            groups = 0;
            committed(&Checkpoint { after: after.clone(), counts: report.clone() });
        }
    }
    keeper.commit(&mut report).await?;
    Ok(report)
}

/// Reads what is known of a resource's versions, and chooses.
async fn plan(
    parts: &Parts<'_>,
    resource: Resource,
    archived: &HashMap<ResourceUri, Vec<Candidate>>,
    wanted: Wanted,
    bounds: &Bounds,
) -> Result<Plan, BackfillError> {
    let mut candidates: Vec<Candidate> =
        resource.links_of(relation::MEMENTO).filter_map(|link| resource.candidate(link)).collect();
    candidates.extend(archived.get(&resource.uri).into_iter().flatten().cloned());
    let mut pages = Vec::new();
    let timemaps = resource.links_of(relation::TIMEMAP).filter_map(|link| Url::parse(&link.href).ok());
    for url in timemaps.take(MOST_TIMEMAPS) {
        let mut read = timemap::read(parts.client, url, &resource.url, &bounds.timemap).await;
        candidates.extend(std::mem::take(&mut read.versions).into_iter().map(|named| Candidate {
            time: named.time,
            url: Some(named.url),
            member: None,
            declared: Declaration::default(),
            named_by: redacted(&named.page).into(),
            is_dated: true,
        }));
        pages.push(read);
    }
    let versions = parts.catalog.versions(&resource.uri).await?.unwrap_or_default();
    let mut choice = choose(candidates, resource.present, &versions, wanted);
    let chosen = std::mem::take(&mut choice.fetch);
    let mut plan = Plan {
        resource: Arc::new(resource),
        pages,
        choice,
        copies: Vec::new(),
        fetches: Vec::new(),
        not_held: 0,
    };
    for candidate in chosen {
        if let Some(held) = held_bytes(&candidate.declared, &plan.resource, &versions) {
            plan.copies.push((candidate, held));
        } else if let Some(url) = candidate.place() {
            plan.fetches.push((candidate, url));
        } else {
            plan.not_held += 1;
        }
    }
    Ok(plan)
}

/// A held version of the resource with a declared digest: a Source may go back to an earlier one.
fn held_bytes(declared: &Declaration, resource: &Resource, versions: &Versions) -> Option<Bitstream> {
    let kept =
        versions.kept.iter().filter(|version| version.lost.is_none()).map(|version| &version.bitstream);
    let mut held = std::iter::once(&resource.bitstream).chain(kept);
    let is_it = |held: &&Bitstream| {
        let verdict = fixity::judge(&declared.digests, declared.length, &held.computed);
        matches!(verdict, Verdict::Verified { .. })
    };
    held.find(is_it).cloned()
}

/// Counts what was read of Archives.
fn add_archives(
    counts: &mut BackfillCounts,
    archived: &mut Archived,
    told: &mut (dyn FnMut(&Remark) + Send),
) {
    counts.archive_documents += archived.documents;
    counts.dump_archives += archived.dumps;
    counts.requests += archived.requests;
    counts.add_unread(None, std::mem::take(&mut archived.unread), told);
}

/// Counts what was planned.
fn add_plan(
    counts: &mut BackfillCounts,
    resource: &Resource,
    pages: Vec<Pages>,
    choice: &Choice,
    told: &mut (dyn FnMut(&Remark) + Send),
) {
    counts.resources += 1;
    counts.known += choice.known;
    counts.held += choice.held;
    counts.newer += choice.newer;
    counts.older += choice.older;
    for read in pages {
        counts.timemaps += read.pages;
        counts.requests += read.requests;
        counts.add_faults(&read.faults);
        counts.add_unread(Some(&resource.uri), read.unread, told);
    }
}
