//! Records of a page: their metadata is stored in packs, and settled as the members of a package are.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use catalog::Batch;
use fixity::Computed;
use model::{
    Assurance, Bitstream, Links, ManifestEntry, MemberOutcome, MemberResult, ProblemReason, ResourceUri,
    SetId, StoredBitstream,
};
use oaipmh::{Item, Quirk, RecordHeader};
use planning::{EntryContext, Horizon};
use resourcesync::{Change, Datetime, Interval, Metadata};
use store::{PackMember, Packer, Store};

use crate::error::HarvestError;
use crate::oai::answer::again;
use crate::oai::content::{Content as ContentLinks, Received};
use crate::oai::reading::Reading;
use crate::oai::{membership, same_form};
use crate::packages::settle_members;
use crate::planner::Planner;
use crate::run::RunContext;
use crate::settler::Settler;

/// The media type of all records.
pub(super) const MEDIA_TYPE: &str = "application/xml";

/// Records that are remembered as shown as deleted by one set.
const SHOWN_DELETED: usize = 10_000;

/// A record as it came.
struct Came {
    loc: String,
    datestamp: Option<Datetime>,
    /// To the lists of its sets, and to its content.
    links: Option<Links>,
    content: Content,
}

/// What came of a record.
enum Content {
    /// Its metadata, as a canonical document.
    Live(String),
    Deleted,
    /// Why it cannot be used.
    Bad(String),
}

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
    if reading.notes_names {
        for one in came.iter().filter(|one| !matches!(one.content, Content::Deleted)) {
            if let Ok(uri) = ResourceUri::try_from(one.loc.clone()) {
                planner.reconciler.note_name(ctx, &reading.uri, &reading.set, &uri);
            }
            planner.name_targets(ctx, &reading.uri, &reading.set, one.links.as_ref());
        }
        planner.reconciler.make_room(ctx).await;
    }
    let outcomes = stored(ctx, came, reading, &mut planner.reading.shown_deleted).await?;
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

/// The records, each once. A record without a usable header is a problem of the list.
fn came(ctx: &mut RunContext, batch: &mut Batch, reading: &mut Reading, items: Vec<Received>) -> Vec<Came> {
    let mut all: Vec<Came> = Vec::with_capacity(items.len());
    let mut places: HashMap<String, usize> = HashMap::with_capacity(items.len());
    for Received { item, content: named } in items {
        let (header, content) = match item {
            Item::Record(record) => match record.metadata {
                Some(metadata) => (record.header, Content::Live(metadata.document)),
                None => (record.header, Content::Deleted),
            },
            Item::Bad(bad) => {
                note_bad(reading);
                let Some(header) = bad.header else {
                    let at = format!("{}#{}", reading.uri, number_of_bad(reading));
                    let message = format!("a record was left out: {}", bad.reason);
                    ctx.entry_problem(batch, at, ProblemReason::Malformed, &message);
                    continue;
                };
                (header, Content::Bad(bad.reason.to_string()))
            }
            Item::Header(_) | Item::Set(_) | Item::Format(_) => continue,
        };
        let RecordHeader { identifier, datestamp, sets, .. } = header;
        let loc = reading.base.record_uri(&identifier, &reading.list.prefix);
        let (mut links, has_all) = membership::links(&reading.base, &reading.list.prefix, &sets);
        if !has_all || named.is_cut {
            let name = resourcesync::Quirk::LinksTruncated.as_str();
            *reading.quirks.entry(name.to_owned()).or_default() += 1;
        }
        note_content(ctx, batch, reading, &loc, &named);
        links.extend(named.links.iter().flat_map(Links::to_vec));
        let links = Links::of(&links);
        let one = Came { loc: loc.clone(), datestamp, links, content };
        match places.get(&loc) {
            None => {
                places.insert(loc, all.len());
                all.push(one);
            }
            Some(place) => {
                let before = &mut all[*place];
                if before.is_deleted() != one.is_deleted() {
                    reading.quirk(Quirk::DeletedAndLive);
                }
                if before.is_replaced_by(&one) {
                    *before = one;
                }
            }
        }
    }
    all
}

/// Counts what is odd about the links of a record. Files that are not kept as links are a problem of the record, if
/// links are followed.
fn note_content(
    ctx: &mut RunContext,
    batch: &mut Batch,
    reading: &mut Reading,
    loc: &str,
    named: &ContentLinks,
) {
    if named.bare_dois > 0 {
        *reading.quirks.entry(Quirk::BareDoi.as_str().to_owned()).or_default() += named.bare_dois;
    }
    if named.is_cut && !ctx.options.follow.is_empty() {
        let message = format!(
            "the record names more than is kept of its links: the first {}. Files behind them are not followed; ask the \
             repository's operator for a format that lists files alone, such as mets",
            named.kept
        );
        let at = format!("{}#{loc}", reading.uri);
        ctx.entry_problem(batch, at, ProblemReason::LimitLinks, &message);
    }
}

/// Counts a record that cannot be used.
fn note_bad(reading: &mut Reading) {
    if let Some(progress) = &mut reading.list.progress.reading {
        progress.bad += 1;
        progress.doubtful = true;
    }
}

fn number_of_bad(reading: &Reading) -> u64 {
    reading.list.progress.reading.as_ref().map_or(0, |progress| progress.bad)
}

impl Came {
    /// Digest and length of its metadata, if it has any.
    fn computed(&self) -> Option<Computed> {
        match &self.content {
            Content::Live(document) => Some(Computed::of(document.as_bytes())),
            Content::Deleted | Content::Bad(_) => None,
        }
    }

    fn is_deleted(&self) -> bool {
        matches!(self.content, Content::Deleted)
    }

    /// Whether another record of the same identifier counts instead: it has the later datestamp, or the same one and
    /// is not deleted. Nothing goes while the repository shows it too.
    fn is_replaced_by(&self, other: &Self) -> bool {
        let instant = |one: &Self| one.datestamp.as_ref().map(Datetime::instant);
        match instant(other).cmp(&instant(self)) {
            std::cmp::Ordering::Greater => true,
            std::cmp::Ordering::Equal => self.is_deleted() || !other.is_deleted(),
            std::cmp::Ordering::Less => false,
        }
    }
}

/// Stores the metadata that is not held. Returns the records in the form of a package's members. A record that is shown
/// as deleted in a list of one set may only have left the set: if it is held, it is asked for by itself.
async fn stored(
    ctx: &mut RunContext,
    came: Vec<Came>,
    reading: &Reading,
    shown_deleted: &mut HashSet<ResourceUri>,
) -> Result<Vec<MemberOutcome>, HarvestError> {
    let uris: Vec<Option<ResourceUri>> =
        came.iter().map(|one| ResourceUri::try_from(one.loc.clone()).ok()).collect();
    let known: Vec<ResourceUri> = uris.iter().flatten().cloned().collect();
    let records = ctx.records_of(&known).await?;
    let mut linked: HashSet<&ResourceUri> = HashSet::new();
    let mut held: HashMap<&ResourceUri, Bitstream> = HashMap::with_capacity(known.len());
    for (uri, record) in known.iter().zip(records) {
        let Some(record) = record else { continue };
        linked.extend(record.listing.links.is_some().then_some(uri));
        held.extend(record.bitstream.map(|bitstream| (uri, bitstream)));
    }
    let unreliable = unreliable(ctx, &known).await?;
    // Others are stored again, even if they are the same.
    let reliable = |uri: &ResourceUri| held.get(uri).filter(|_| !unreliable.contains(uri));
    let computed: Vec<Option<Computed>> = came.iter().map(Came::computed).collect();
    let same = same_as_held(&ctx.store, &came, &computed, &uris, reliable).await;
    let (store, source) = (ctx.store.clone(), ctx.source.clone());
    let mut packer: Packer<'_, usize> = Packer::new(&store, &source, ctx.clock.now());
    let mut outcomes = Vec::with_capacity(came.len());
    let mut waiting: HashMap<usize, Computed> = HashMap::new();
    for (n, ((one, uri), computed)) in came.into_iter().zip(&uris).zip(computed).enumerate() {
        let is_asked_for = reading.list.set.is_some()
            && one.is_deleted()
            && uri.as_ref().is_some_and(|uri| held.contains_key(uri));
        if is_asked_for && shown_deleted.len() < SHOWN_DELETED {
            shown_deleted.extend(uri.clone());
        }
        let content = if is_asked_for {
            Content::Bad("one set shows it as deleted; whether it is, its own answer says".to_owned())
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
        if links.is_none() && uri.as_ref().is_some_and(|uri| linked.contains(uri)) {
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

/// Those of these records whose stored bytes are not to be relied on.
async fn unreliable(
    ctx: &mut RunContext,
    uris: &[ResourceUri],
) -> Result<HashSet<ResourceUri>, HarvestError> {
    let plans = ctx.plans_of(uris).await?;
    let repairs = uris.iter().zip(plans).filter(|(_, plan)| plan.as_ref().is_some_and(|plan| plan.repair));
    Ok(repairs.map(|(uri, _)| uri.clone()).collect())
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
