//! The copy of a manifest that a dump links beside its package (`rel="contents"`). It is read first, because it may
//! make the package unnecessary.

use catalog::Batch;
use documents::{ManifestTimes, Part, is_manifest_of, manifest_context, manifest_of};
use jiff::Timestamp;
use model::{
    Contents, DocumentRecord, KeptNames, ManifestHeader, PackageRecord, PackageState, ResourceRecord,
    SettledPackage, Subject, Validators,
};
use planning::{CurrentState, Decision, EntryContext, Horizon, decide, queued_document, relinked, strategy};
use resourcesync::{Capability, Datetime, Item};
use url::Url;

use super::names::{self, Slices};
use super::uploads;
use crate::error::HarvestError;
use crate::planner::Planner;
use crate::planner::kept_names::are_kept;
use crate::run::RunContext;

/// Settles a package without receiving it, if every entry in the copy of its manifest is already stored. If the
/// copy is faulty in any way, the package itself is requested.
pub(crate) async fn spare(
    ctx: &mut RunContext,
    planner: &mut Planner,
    uri: &str,
    record: &mut PackageRecord,
) -> Result<(), HarvestError> {
    let holds_some =
        ctx.sets.get(&record.set).is_some_and(|set| set.has_baseline || set.synchronized_to.is_some());
    let Some(url) = record.contents.as_deref().and_then(|contents| Url::parse(contents).ok()) else {
        return Ok(());
    };
    if !holds_some || record.state != PackageState::Wanted {
        return Ok(());
    }
    let horizon = Horizon::at(ctx.clock.now());
    let mode = ctx.read_mode();
    ctx.progress.show_document(url.as_str());
    let options = planner.reading.budget.options(&ctx.options.limits, horizon.options(mode));
    let (requests, opened) = documents::open_anew(&ctx.client, &url, options).await;
    ctx.run.counters.requests += requests;
    let mut stream = match opened {
        Ok(stream) => stream,
        Err(error) => {
            tracing::info!(contents = %url, %error, "the copy of a manifest cannot be read; the package is received");
            return Ok(());
        }
    };
    let mut context = None;
    let mut unchanged = 0;
    let mut parts = 0;
    while let Some(part) = stream.next().await {
        match part {
            Part::Header(header) if is_manifest_of(&header, &record.capability) => {
                record.manifest_copy = Some(Box::new(ManifestHeader::from(&header)));
                let at = header.at;
                let completed = header.completed;
                context = Some(record_context(uri, record, at, completed, header.capability, horizon));
            }
            Part::Items(mut items) => {
                let met = planner.reading.budget.take_entries(&ctx.options.limits, &mut items);
                match &context {
                    Some(context)
                        if met.is_none()
                            && are_held(
                                ctx,
                                planner,
                                context,
                                &CopyPart { uri, record, number: parts },
                                &items,
                            )
                            .await? =>
                    {
                        unchanged += items.len() as u64;
                        parts += 1;
                    }
                    // The package itself is requested.
                    _ => return Ok(()),
                }
            }
            Part::End(summary) if summary.complete && summary.bad == 0 && !summary.quirks.casts_doubt() => {
                tracing::info!(
                    package.uri = uri,
                    entries = unchanged,
                    "all that the package holds is held: it is not received"
                );
                ctx.run.counters.listed += unchanged;
                ctx.run.counters.unchanged += unchanged;
                let declaration = record.declaration.clone();
                let names = are_kept(record).then_some(KeptNames { seq: record.seq, slices: parts });
                record.settled = Some(SettledPackage {
                    declaration,
                    entries: unchanged,
                    names,
                    ..SettledPackage::default()
                });
                record.selection = Some(ctx.selection.id());
                record.state = PackageState::Done;
                return Ok(());
            }
            Part::Header(_) | Part::End(_) | Part::Broken(..) => return Ok(()),
        }
    }
    Ok(())
}

/// Settles a package that is not received. The problem of an earlier run with it, and its partial upload, are
/// dropped.
pub(crate) async fn settle_spared(
    ctx: &mut RunContext,
    uri: &str,
    mut record: PackageRecord,
) -> Result<(), HarvestError> {
    let was_begun = std::mem::take(&mut record.kept) || ctx.progress.is_resumed();
    let mut batch = Batch::new();
    batch.put_package(uri, &record);
    batch.delete_problem(&Subject::Document(uri.to_owned()));
    ctx.commit(batch).await?;
    if was_begun {
        uploads::forget_upload(ctx, uri, record.seq).await;
    }
    Ok(())
}

/// A part of the copy of a package's manifest.
struct CopyPart<'a> {
    /// The package.
    uri: &'a str,
    record: &'a PackageRecord,
    /// Its number, in place of a slice's: the package itself is not read.
    number: u32,
}

/// Whether none of the entries needs work. Then the names of the part are kept.
async fn are_held(
    ctx: &mut RunContext,
    planner: &mut Planner,
    context: &EntryContext,
    part: &CopyPart<'_>,
    items: &[Item],
) -> Result<bool, HarvestError> {
    let mut planned = Vec::with_capacity(items.len());
    for item in items {
        let Item::Entry(entry) = item else { return Ok(false) };
        let Ok(entry) = context.read(entry.as_ref().clone()) else { return Ok(false) };
        planned.push(entry);
    }
    let uris: Vec<_> = planned.iter().map(|planned| planned.uri.clone()).collect();
    let records = ctx.records_of(&uris).await?;
    let pending = ctx.plans_of(&uris).await?;
    let baseline_at = ctx.sets.get(&context.set).and_then(strategy::baseline_for_changes);
    for ((planned, record), pending) in planned.iter().zip(&records).zip(&pending) {
        let known = CurrentState { record: record.as_deref(), pending: pending.as_ref(), baseline_at };
        let decision = decide(&planned.declaration, &planned.listing, planned.moment, known);
        let is_held = matches!(decision, Decision::Unchanged | Decision::Stale) && pending.is_none();
        let filter = &ctx.options.filter;
        if !is_held && filter.takes(planned.uri.as_str()) && filter.admits(planned) {
            return Ok(false);
        }
    }
    let mut batch = Batch::new();
    planner.reconciler.collect_names();
    for (planned, record) in planned.into_iter().zip(records) {
        if planned.listing.change.is_none() {
            planner.reconciler.note_name(ctx, &context.document, &context.set, &planned.uri);
            planner.name_links(ctx, context, &planned);
        }
        // The package would tell nothing more than other links.
        let relinked = record.as_ref().and_then(|record| relinked(record, &planned.listing));
        if let (Some(record), Some(listing)) = (record, relinked) {
            batch.put_resource(&planned.uri, &ResourceRecord { listing, ..*record });
        }
    }
    let listed = planner.reconciler.collected_names();
    if are_kept(part.record) {
        let mut slices = Slices::default();
        slices.add(part.number);
        names::keep(planner, &mut batch, part.uri, part.record, slices, listed);
    }
    if !batch.is_empty() {
        ctx.commit(batch).await?;
    }
    Ok(true)
}

/// Record of a manifest copy, read as a document because its package is unreadable: each entry is requested by
/// itself.
pub(crate) async fn contents_of(
    ctx: &mut RunContext,
    record: &PackageRecord,
) -> Result<Option<(String, DocumentRecord)>, HarvestError> {
    let Some(contents) = record.contents.clone() else { return Ok(None) };
    let kind = manifest_of(&record.capability);
    let before = ctx.catalog().await?.document(&contents).await?;
    if before.as_ref().is_some_and(|before| before.run == ctx.run.id) {
        return Ok(None);
    }
    let mut document = queued_document(ctx.run.id, &record.set, &kind, before);
    document.validators = Validators::default();
    document.parent = Some(record.document.clone());
    Ok(Some((contents, document)))
}

/// EntryContext of the entries of a manifest, completed by the dump.
pub(crate) fn record_context(
    package: &str,
    record: &PackageRecord,
    at: Option<Datetime>,
    completed: Option<Datetime>,
    kind: Option<Capability>,
    horizon: Horizon,
) -> EntryContext {
    let manifest = ManifestTimes { at, completed, kind };
    manifest_context(package, &record.set, &record.capability, &record.metadata, manifest, horizon)
}

/// Context of the entries of an opened package.
pub(crate) fn member_context(
    package: &str,
    record: &PackageRecord,
    contents: &Contents,
    now: Timestamp,
) -> EntryContext {
    let manifest = &contents.manifest;
    let kind = manifest.capability.clone();
    record_context(package, record, manifest.at, manifest.completed, kind, Horizon::at(now))
}
