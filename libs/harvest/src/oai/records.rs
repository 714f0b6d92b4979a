//! Records of a page: their metadata is stored in packs, and settled as the members of a package are.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use catalog::Batch;
use fixity::Computed;
use model::{
    Assurance, Bitstream, Links, ManifestEntry, MemberOutcome, MemberResult, ProblemReason, ResourceUri,
    SetId, StoredBitstream,
};
use oaipmh::Quirk;
use planning::{EntryContext, Horizon};
use resourcesync::{Change, Datetime, Interval, Metadata};
use store::{PackMember, Packer, Store};

use crate::error::HarvestError;
use crate::oai::answer::again;
use crate::oai::came::{Came, Content, Earlier, came};
use crate::oai::content::Received;
use crate::oai::reading::Reading;
use crate::oai::{membership, same_form};
use crate::packages::settle_members;
use crate::planner::Planner;
use crate::planner::pages::LedRecord;
use crate::run::RunContext;
use crate::settler::Settler;

/// The media type of all records.
pub(super) const MEDIA_TYPE: &str = "application/xml";

/// Records that are remembered as shown as deleted by one set.
const SHOWN_DELETED: usize = 10_000;

/// Stores and settles records of a page.
pub(super) async fn take(
    ctx: &mut RunContext,
    planner: &mut Planner,
    settler: &mut Settler,
    reading: &mut Reading,
    items: Vec<Received>,
) -> Result<(), HarvestError> {
    let context = entry_context(ctx, Arc::from(reading.uri.as_str()), reading.set.clone());
    let mut batch = Batch::new();
    let came = came(ctx, &mut batch, reading, items);
    let is_deleted: Vec<bool> = came.iter().map(Came::is_deleted).collect();
    let outcomes = stored(ctx, planner, &mut batch, came, reading).await?;
    if reading.notes_names {
        for (outcome, _) in outcomes.iter().zip(is_deleted).filter(|(_, is_deleted)| !is_deleted) {
            if let Ok(uri) = ResourceUri::try_from(outcome.entry.loc.clone()) {
                planner.reconciler.note_name(ctx, &reading.uri, &reading.set, &uri);
            }
            planner.name_targets(ctx, &reading.uri, &reading.set, outcome.entry.links.as_ref());
        }
        planner.reconciler.make_room(ctx).await;
    }
    reading.see_new(ctx, &outcomes);
    settle_members(ctx, planner, settler, &mut batch, &context, outcomes).await?;
    ctx.commit_behind(batch).await
}

/// The list as the document of its records. Each record has its own time.
pub(crate) fn entry_context(ctx: &RunContext, document: Arc<str>, set: SetId) -> EntryContext {
    EntryContext {
        document,
        set,
        changes: true,
        at: None,
        completed: None,
        interval: Interval::OPEN,
        kind: None,
        horizon: Horizon::at(ctx.clock.now()),
    }
}

/// Stores the metadata that is not held. Returns the records in the form of a package's members. A record that is shown
/// as deleted in a list of one set may only have left the set: if it is held, it is asked for by itself. So is one that is
/// shown as deleted and as live under one datestamp.
async fn stored(
    ctx: &mut RunContext,
    planner: &mut Planner,
    batch: &mut Batch,
    mut came: Vec<Came>,
    reading: &mut Reading,
) -> Result<Vec<MemberOutcome>, HarvestError> {
    let uris: Vec<Option<ResourceUri>> =
        came.iter().map(|one| ResourceUri::try_from(one.loc.clone()).ok()).collect();
    let known: Vec<ResourceUri> = uris.iter().flatten().cloned().collect();
    let records = ctx.records_of(&known).await?;
    let plans = ctx.plans_of(&known).await?;
    let mut earlier: HashMap<&ResourceUri, Earlier> = HashMap::new();
    for ((uri, record), plan) in known.iter().zip(&records).zip(&plans) {
        if record.is_some() || plan.is_some() {
            earlier.insert(uri, Earlier::of(record.as_deref(), plan.as_ref(), ctx.run.started_at));
        }
    }
    let mut linked: HashMap<&ResourceUri, Links> = HashMap::new();
    let mut held: HashMap<&ResourceUri, Bitstream> = HashMap::with_capacity(known.len());
    for (uri, record) in known.iter().zip(records) {
        let Some(record) = record else { continue };
        linked.extend(record.listing.links.map(|links| (uri, links)));
        held.extend(record.bitstream.map(|bitstream| (uri, bitstream)));
    }
    let repairs = known.iter().zip(&plans).filter(|(_, plan)| plan.as_ref().is_some_and(|plan| plan.repair));
    let unreliable: HashSet<&ResourceUri> = repairs.map(|(uri, _)| uri).collect();
    // Others are stored again, even if they are the same.
    let reliable = |uri: &ResourceUri| held.get(uri).filter(|_| !unreliable.contains(uri));
    let computed: Vec<Option<Computed>> = came.iter().map(Came::computed).collect();
    let same = same_as_held(&ctx.store, &came, &computed, &uris, reliable).await;
    if !ctx.options.follow.is_empty() {
        let is_same = |n: usize, uri: &ResourceUri| {
            let held = reliable(uri).map(|held| held.computed.sha256());
            same.contains(&n) || held.is_some() && held == computed[n].as_ref().map(Computed::sha256)
        };
        let (mut led, mut places) = (Vec::new(), Vec::new());
        let document: Arc<str> = Arc::from(reading.uri.as_str());
        for (n, (one, uri)) in came.iter_mut().zip(&uris).enumerate() {
            if let Some(uri) = uri.as_ref().filter(|_| matches!(one.content, Content::Live(_))) {
                let (own, held) = (one.links.take(), linked.get(uri).cloned());
                let (document, set) = (Arc::clone(&document), reading.set.clone());
                led.push(LedRecord { uri: uri.clone(), document, set, own, held, is_same: is_same(n, uri) });
                places.push(n);
            }
        }
        let links = planner.with_files_of_pages(ctx, batch, led).await?;
        places.into_iter().zip(links).for_each(|(n, links)| came[n].links = links);
    }
    let (store, source) = (ctx.store.clone(), ctx.source.clone());
    let mut packer: Packer<'_, usize> = Packer::new(&store, &source, ctx.clock.now());
    let mut outcomes = Vec::with_capacity(came.len());
    let mut waiting: HashMap<usize, Computed> = HashMap::new();
    for (n, ((one, uri), computed)) in came.into_iter().zip(&uris).zip(computed).enumerate() {
        let is_of_one_set = reading.list.set.is_some()
            && one.is_deleted()
            && uri.as_ref().is_some_and(|uri| held.contains_key(uri));
        if is_of_one_set && planner.reading.shown_deleted.len() < SHOWN_DELETED {
            planner.reading.shown_deleted.extend(uri.clone());
        }
        let earlier = uri.as_ref().and_then(|uri| earlier.get(uri));
        let is_contradicted = one.is_contradicted || earlier.is_some_and(|earlier| earlier.contradicts(&one));
        if is_contradicted && !one.is_contradicted {
            reading.quirk(Quirk::DeletedAndLive);
        }
        let content = if is_of_one_set {
            Content::Bad("one set shows it as deleted; whether it is, its own answer says".to_owned())
        } else if is_contradicted {
            Content::Bad(
                "it is shown as deleted and as live, with one datestamp; which it is, its own answer says"
                    .to_owned(),
            )
        } else {
            one.content
        };
        let mut metadata = change(one.datestamp, matches!(content, Content::Deleted));
        let lastmod = one.datestamp.filter(|_| matches!(content, Content::Live(_)));
        let result = match content {
            Content::Deleted => MemberResult::NoMember,
            Content::Bad(why) => MemberResult::Failed(again(ProblemReason::Malformed, why)),
            Content::Live(document) => {
                let mut computed = computed.unwrap_or_else(|| Computed::of(document.as_bytes()));
                let before = uri.as_ref().and_then(reliable).map(|held| &held.computed);
                if let Some(before) = before.filter(|_| same.contains(&n)) {
                    computed = before.clone();
                }
                declare(&mut metadata, &computed);
                // The same bytes are not stored again, unless those that are held are damaged.
                let is_held = before.is_some_and(|before| before.sha256() == computed.sha256());
                if let Some(uri) =
                    uri.as_ref().filter(|uri| !is_held && ctx.options.filter.takes(uri.as_str()))
                {
                    let member = PackMember {
                        uri,
                        bytes: document.as_bytes(),
                        computed: &computed,
                        media_type: Some(MEDIA_TYPE),
                        last_modified: lastmod.as_ref().map(Datetime::instant),
                    };
                    packer.add(member, n).await?;
                    waiting.insert(n, computed);
                }
                MemberResult::NoMember
            }
        };
        let mut links = one.links;
        if links.is_none() && uri.as_ref().is_some_and(|uri| linked.contains_key(uri)) {
            links = Links::of(&[membership::of_none(&reading.base, &reading.list.prefix)]);
        }
        let entry =
            ManifestEntry { loc: one.loc, lastmod, metadata, links, line: 0, column: 0, earlier: false };
        outcomes.push(MemberOutcome::new(entry, result));
    }
    for (n, location) in packer.finish().await? {
        if let Some(computed) = waiting.remove(&n) {
            ctx.run.counters.bytes += computed.length();
            let stored = bitstream(location, computed);
            outcomes[n].result = MemberResult::Verified { stored, assurance: Assurance::None };
        }
    }
    Ok(outcomes)
}

/// The places of records whose bytes are new, and whose metadata is what is held: only blank text or the time of the
/// answer differ.
async fn same_as_held<'h>(
    store: &Store,
    came: &[Came],
    computed: &[Option<Computed>],
    uris: &[Option<ResourceUri>],
    held: impl Fn(&ResourceUri) -> Option<&'h Bitstream>,
) -> HashSet<usize> {
    let mut differing = Vec::new();
    for (n, ((one, computed), uri)) in came.iter().zip(computed).zip(uris).enumerate() {
        let (Content::Live(document), Some(computed), Some(uri)) = (&one.content, computed, uri) else {
            continue;
        };
        let held = held(uri).filter(|held| held.computed.sha256() != computed.sha256());
        differing.extend(held.map(|held| (n, document.as_str(), held)));
    }
    same_form::among(store, differing).await
}

/// The metadata of a record, stored.
pub(super) fn bitstream(location: model::Location, computed: Computed) -> StoredBitstream {
    StoredBitstream {
        location,
        computed,
        media_type: Some(MEDIA_TYPE.to_owned()),
        encoding: None,
        validators: Default::default(),
        modified: None,
        final_url: None,
    }
}

/// A record as a change: updated, or deleted, at its datestamp.
pub(super) fn change(datestamp: Option<Datetime>, is_deleted: bool) -> Metadata {
    let change = if is_deleted { Change::Deleted } else { Change::Updated };
    Metadata { change: Some(change), datetime: datestamp, ..Metadata::default() }
}

/// Adds the digest of the bytes that came, so that the same record is recognized. The Source declares none.
pub(super) fn declare(metadata: &mut Metadata, computed: &Computed) {
    metadata.hash = Some(format!("sha-256:{}", computed.sha256()));
    metadata.length = Some(computed.length());
}
