//! Earlier versions of resources that a package of changes has beside the latest ones.

use std::collections::BTreeMap;

use catalog::Batch;
use model::{MemberOutcome, MemberResult, ResourceUri, Version, moment};
use planning::{EntryContext, ListedEntry};
use resourcesync::{Entry, Position};

use crate::error::HarvestError;
use crate::run::RunContext;
use crate::settler::Settler;
use crate::settler::one_outcome::bitstream;

/// Keeps verified members that a later entry of their manifest supersedes, as many as the operator keeps.
///
/// They have a batch of their own, before that of the latest versions: both write the record of the versions. After a
/// crash in between they come again, and are not kept twice. A member that is not as declared is no version, and no
/// problem either: the Source has replaced it.
pub(super) async fn settle_earlier(
    ctx: &mut RunContext,
    settler: &Settler,
    context: &EntryContext,
    items: Vec<MemberOutcome>,
) -> Result<(), HarvestError> {
    if items.is_empty() {
        return Ok(());
    }
    let now = ctx.clock.now();
    let mut listed = 0;
    let mut found: BTreeMap<ResourceUri, Vec<Version>> = BTreeMap::new();
    for MemberOutcome { entry, result, patch: _ } in items {
        if !ctx.options.filter.takes(&entry.loc) {
            continue;
        }
        listed += 1;
        let position = Position { line: entry.line, column: entry.column, ..Position::default() };
        let read =
            Entry { lastmod: entry.lastmod, metadata: entry.metadata, position, ..Entry::new(entry.loc) };
        let (Ok(planned), MemberResult::Verified { stored, assurance }) = (context.read(read), result) else {
            continue;
        };
        let ListedEntry { uri, declaration, listing, .. } = planned;
        let source_from = moment::source_time(&listing, &declaration);
        let bitstream = bitstream(stored, assurance, now);
        let version =
            Version { bitstream, declaration, listing, from: now, until: now, source_from, lost: None };
        found.entry(uri).or_default().push(version);
    }
    let uris: Vec<ResourceUri> = found.keys().cloned().collect();
    let kept = settler.versions_of(ctx, &uris).await?;
    let mut batch = Batch::new();
    for ((uri, versions), kept) in found.into_iter().zip(kept) {
        let mut kept = kept.unwrap_or_default();
        let mut is_changed = false;
        for version in versions {
            is_changed |= kept.add_earlier(version, settler.versions_to_keep());
        }
        if is_changed {
            batch.put_versions(&uri, &kept);
        }
    }
    if !batch.is_empty() {
        ctx.commit(batch).await?;
    }
    // Counted with the slice that they came with.
    ctx.run.counters.listed += listed;
    ctx.run.counters.unchanged += listed;
    Ok(())
}
