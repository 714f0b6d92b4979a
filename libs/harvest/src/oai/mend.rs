//! Records that no page brought: each is asked for by itself, before the dispatch. No fetcher requests them, since it
//! would store the answer around the record.

mod prepare;

use std::collections::BTreeSet;

use catalog::Batch;
use fixity::Computed;
use futures::TryStreamExt;
use model::{
    Action, Assurance, Disposition, Failure, Links, PendingRecord, ProblemReason, ResourceRecord, ResourceUri,
};
use oaipmh::{BaseUrl, Item, Pasted, Quirk, Record, Request, Verb};
use planning::follow::AfterChange;
use planning::{Decision, EntryContext, ListedEntry};
use resourcesync::{Change, Datetime, Entry, Link, Metadata, Position};
use store::{PackMember, Packer};
use url::Url;

use self::prepare::prepare;
use crate::error::HarvestError;
use crate::oai::answer::{AnswerStream, Trouble, again};
use crate::oai::content::Content;
use crate::oai::records::{MEDIA_TYPE, bitstream, change, declare, entry_context};
use crate::oai::{membership, sample};
use crate::planner::Planner;
use crate::run::RunContext;
use crate::settler::Settler;
use crate::settler::failures::record_problem;
use crate::settler::one_outcome::bitstream as verified;
use crate::settler::outcomes::PriorRecords;

/// Records that are settled together.
const TOGETHER: usize = 50;
/// Requests that may fail in a row. Then the repository is away, and the rest waits for the next run.
const FAILURES: u32 = 10;

/// A repository in one metadata format.
type Format = (BaseUrl, String);

/// What came of one record.
enum Came {
    Live(Box<Record>, String, Vec<Link>),
    Deleted(Option<Datetime>),
    Failed(Failure),
}

/// Asks for the pending records of OAI-PMH repositories, one by one.
///
/// # Errors
/// When the harvest is stopped, or the store or the catalog fails. A record that fails becomes a problem.
pub(crate) async fn mend(
    ctx: &mut RunContext,
    planner: &mut Planner,
    settler: &mut Settler,
) -> Result<(), HarvestError> {
    let formats = formats(ctx);
    if formats.is_empty() {
        return Ok(());
    }
    let mut away = Away::default();
    let mut last: Option<ResourceUri> = None;
    loop {
        let next = next_pending(ctx, &formats, last.as_ref()).await?;
        let Some((uri, _, _)) = next.last() else { return Ok(()) };
        last = Some(uri.clone());
        let mut came = Vec::with_capacity(next.len());
        for (uri, pending, request) in next {
            ctx.check_stop()?;
            let one = away.ask(ctx, &request).await;
            came.push((uri, pending, one));
        }
        settle(ctx, planner, settler, came).await?;
    }
}

/// What a repository gives when it is asked for a record.
pub(crate) enum Given {
    /// Its metadata, as a canonical document, and its datestamp.
    Live(String, Option<Datetime>),
    /// It is shown as deleted.
    Deleted,
    /// Why it cannot be told.
    Unknown(String),
}

/// Asks for one record, to compare it. None if the URI is not that of a record of the harvested lists.
pub(crate) async fn give(ctx: &mut RunContext, uri: &ResourceUri) -> Option<Given> {
    let (base, request) = request_of(uri, &formats(ctx))?;
    Some(match ask(ctx, &base, &request).await {
        Ok(Came::Live(record, document, _)) => Given::Live(document, record.header.datestamp),
        Ok(Came::Deleted(_)) => Given::Deleted,
        Ok(Came::Failed(failure)) => Given::Unknown(failure.message),
        Err(trouble) => Given::Unknown(trouble.into_failure().message),
    })
}

/// The formats that are harvested.
fn formats(ctx: &RunContext) -> Vec<Format> {
    let lists = ctx.sets.values().filter_map(|set| set.oai.as_ref());
    let all: BTreeSet<(&str, &str)> = lists.map(|list| (list.base.as_str(), list.prefix.as_str())).collect();
    all.into_iter()
        .filter_map(|(base, prefix)| Some((BaseUrl::new(Url::parse(base).ok()?).ok()?, prefix.to_owned())))
        .collect()
}

/// A pending record, and the request for it.
type Wanted = (ResourceUri, Box<PendingRecord>, (BaseUrl, Request));

/// The next pending records of these formats, in the order of URIs.
async fn next_pending(
    ctx: &mut RunContext,
    formats: &[Format],
    after: Option<&ResourceUri>,
) -> Result<Vec<Wanted>, HarvestError> {
    let mut found = Vec::new();
    let catalog = ctx.catalog().await?;
    let mut pending = catalog.scan_pending(after).await?;
    while found.len() < TOGETHER
        && let Some((uri, record)) = pending.try_next().await?
    {
        if matches!(record.action, Action::Fetch { .. })
            && let Some(request) = request_of(&uri, formats)
        {
            found.push((uri, Box::new(record), request));
        }
    }
    Ok(found)
}

/// The request that a resource's URI is, if it is that of a record.
fn request_of(uri: &ResourceUri, formats: &[Format]) -> Option<(BaseUrl, Request)> {
    let pasted = Pasted::read(&Url::parse(uri.as_str()).ok()?).ok()?;
    let Pasted { verb: Some(Verb::GetRecord), identifier: Some(identifier), prefix: Some(prefix), .. } =
        pasted
    else {
        return None;
    };
    let (base, _) = formats
        .iter()
        .find(|(base, known)| *known == prefix && base.record_uri(&identifier, known) == uri.as_str())?;
    Some((base.clone(), Request::get_record(identifier, prefix)))
}

/// Whether the repository is away.
#[derive(Default)]
struct Away {
    failures: u32,
    why: Option<Failure>,
}

impl Away {
    async fn ask(&mut self, ctx: &mut RunContext, (base, request): &(BaseUrl, Request)) -> Came {
        if let Some(why) = &self.why {
            return Came::Failed(why.clone());
        }
        match ask(ctx, base, request).await {
            Ok(came) => {
                self.failures = 0;
                came
            }
            Err(trouble) => {
                // A list had it.
                let is_answer = matches!(trouble, Trouble::NoRecord(_));
                if is_answer {
                    ctx.run.counters.add_quirk(Quirk::DeletedUnknown.as_str(), 1);
                }
                let failure = trouble.into_failure();
                self.failures = if is_answer { 0 } else { self.failures + 1 };
                if self.failures >= FAILURES
                    || matches!(failure.disposition, Disposition::Retry { after: Some(_) })
                {
                    self.why = Some(failure.clone());
                }
                Came::Failed(failure)
            }
        }
    }
}

/// Asks for one record.
async fn ask(ctx: &mut RunContext, base: &BaseUrl, request: &Request) -> Result<Came, Trouble> {
    let mut stream = AnswerStream::of(ctx, &request.url(base), true).await?;
    let mut came = None;
    loop {
        let items = stream.next().await?;
        stream.refusal(request)?;
        if items.is_empty() {
            break;
        }
        came = came.or(items.into_iter().next());
    }
    let malformed = |why: String| Came::Failed(again(ProblemReason::Malformed, why));
    Ok(match came {
        Some(Item::Record(mut record)) => match record.metadata.take() {
            Some(metadata) => {
                let mut links = links_of(base, request, &record);
                links.extend(Content::of(&metadata).links.iter().flat_map(Links::to_vec));
                Came::Live(record, metadata.document, links)
            }
            None => Came::Deleted(record.header.datestamp),
        },
        Some(Item::Bad(bad)) => malformed(format!("the record cannot be used: {}", bad.reason)),
        Some(_) | None => malformed("the answer has no record".to_owned()),
    })
}

/// The links to the sets of a record.
fn links_of(base: &BaseUrl, request: &Request, record: &Record) -> Vec<Link> {
    let Request::GetRecord { prefix, .. } = request else { return Vec::new() };
    membership::links(base, prefix, &record.header.sets).0
}

/// Replaces what a plan says of a record by what the record itself says.
fn restate(
    ctx: &RunContext,
    uri: &ResourceUri,
    pending: &mut PendingRecord,
    lastmod: Option<Datetime>,
    metadata: Metadata,
    links: Vec<Link>,
) -> Option<(EntryContext, ListedEntry)> {
    let context = entry_context(ctx, pending.listing.document.clone(), pending.listing.set.clone());
    let told = context.read(Entry { lastmod, metadata, links, ..Entry::new(uri.as_str()) }).ok()?;
    (pending.declaration, pending.listing) = (told.declaration.clone(), told.listing.clone());
    Some((context, told))
}

/// What the links of the records that came lead to, and what does not follow from them any more.
#[derive(Default)]
struct Targets {
    linked: Vec<ListedEntry>,
    after: AfterChange,
}

impl Targets {
    /// Adds what a record says of itself, beside its stored state.
    fn add(
        &mut self,
        ctx: &mut RunContext,
        planner: &mut Planner,
        batch: &mut Batch,
        told: Option<(EntryContext, ListedEntry)>,
        held: Option<&ResourceRecord>,
    ) {
        let Some((context, told)) = told else { return };
        let decision = if told.listing.change == Some(Change::Deleted) {
            Decision::Delete
        } else {
            self.linked.extend(planner.follow(ctx, batch, &context, &told, Position::default()).entries);
            Decision::Fetch
        };
        self.after.extend(ctx.options.follow.after_change(&ctx.options.filter, &told, decision, held));
    }
}

/// Settles what came: stored and current, to be deleted, or a problem.
async fn settle(
    ctx: &mut RunContext,
    planner: &mut Planner,
    settler: &mut Settler,
    mut came: Vec<(ResourceUri, Box<PendingRecord>, Came)>,
) -> Result<(), HarvestError> {
    let uris: Vec<ResourceUri> = came.iter().map(|(uri, _, _)| uri.clone()).collect();
    let mut batch = Batch::new();
    let records = ctx.records_of(&uris).await?;
    prepare(ctx, planner, &mut batch, &mut came, &records).await?;
    let mut records = records.into_iter();
    let mut problems = ctx.problems_of(&uris).await?.into_iter();
    let mut versions = settler.versions_of(ctx, &uris).await?.into_iter();
    let (store, source) = (ctx.store.clone(), ctx.source.clone());
    let mut packer = Packer::new(&store, &source, ctx.clock.now());
    let mut targets = Targets::default();
    for (uri, mut pending, one) in came {
        let prior = (records.next().flatten(), problems.next().flatten(), versions.next().flatten());
        let (record, problem, versions) = prior;
        match one {
            Came::Live(came, document, links) => {
                if planner.reading.shown_deleted.remove(&uri) {
                    ctx.run.counters.add_quirk(Quirk::DeletedInOneSet.as_str(), 1);
                }
                let computed = Computed::of(document.as_bytes());
                let lastmod = came.header.datestamp.as_ref().map(Datetime::instant);
                let mut metadata = change(came.header.datestamp, false);
                declare(&mut metadata, &computed);
                let told = restate(ctx, &uri, &mut pending, came.header.datestamp, metadata, links);
                targets.add(ctx, planner, &mut batch, told, record.as_deref());
                let member = PackMember {
                    uri: &uri,
                    bytes: document.as_bytes(),
                    computed: &computed,
                    media_type: Some(MEDIA_TYPE),
                    last_modified: lastmod,
                };
                ctx.run.counters.bytes += computed.length();
                let before = PriorRecords { pending, record, problem, versions };
                packer.add(member, (uri.clone(), computed.clone(), before)).await?;
            }
            // A sample proves no deletion. Nothing says that the record changed, and it stays.
            Came::Deleted(_) | Came::Failed(_) if sample::is_of_sample(&pending) => {
                batch.delete_pending(&uri);
                ctx.run.counters.superseded += 1;
            }
            Came::Deleted(datestamp) => {
                let told = restate(ctx, &uri, &mut pending, None, change(datestamp, true), Vec::new());
                targets.add(ctx, planner, &mut batch, told, record.as_deref());
                let deletion = PendingRecord { seq: ctx.next_seq(), action: Action::Delete, ..*pending };
                ctx.put_pending(&mut batch, &uri, &deletion);
            }
            Came::Failed(failure) => {
                let before = problem.map(|problem| *problem);
                record_problem(ctx, &mut batch, &uri, failure, *pending, 1, before);
            }
        }
    }
    let stored = packer.finish().await?;
    let now = ctx.clock.now();
    let shown: Vec<_> = stored
        .iter()
        .map(|((uri, computed, _), location)| {
            let stored = bitstream(location.clone(), computed.clone());
            (uri.clone(), verified(stored, Assurance::None, now))
        })
        .collect();
    if settler.view.is_some() {
        settler.place_in_view(ctx, &shown).await?;
    }
    for ((uri, computed, before), location) in stored {
        let stored = bitstream(location, computed);
        settler.take_verified(ctx, &mut batch, &uri, stored, Assurance::None, before);
    }
    planner.plan_linked(ctx, &mut batch, targets.linked, targets.after).await?;
    ctx.commit(batch).await
}
