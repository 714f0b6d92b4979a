//! Whether a package belongs to the edition of its dump that was read.
//!
//! A Source may republish a dump and keep the names of its packages. Entries then move from one package to another.
//! Packages of two editions together may list less than either edition does.

use jiff::Timestamp;
use model::{Contents, DocumentRecord, DocumentState, Evidence, PackageRecord, ProblemReason};
use resourcesync::Capability;

use crate::error::HarvestError;
use crate::planner::Planner;
use crate::planner::document::unreadable;
use crate::run::RunContext;

/// Rejects a Resource Dump that was republished before this package was received. The package is used all the
/// same. A list is read instead of the dump, or the next run reads the dump again.
pub(crate) async fn judge_edition(
    ctx: &mut RunContext,
    planner: &mut Planner,
    package: &str,
    record: &PackageRecord,
    contents: &Contents,
) -> Result<(), HarvestError> {
    let is_of_this_run = record.run == ctx.run.id;
    // Bytes with the digest of the dump's entry belong to the dump's edition.
    let is_proved = !record.declaration.digests.is_empty();
    if record.capability != Capability::ResourceDump || is_proved || !is_of_this_run {
        return Ok(());
    }
    let Some(dump) = ctx.catalog().await?.document(&record.document).await? else { return Ok(()) };
    let Some(at) = later_at(record, &dump, contents) else { return Ok(()) };
    if dump.state != DocumentState::Done || is_alone(ctx, &dump) {
        return Ok(());
    }
    // A snapshot may take a while to build. Only the dump itself shows whether it was replaced.
    match planner.is_as_read(ctx, &record.document, &dump).await {
        Ok(true) => Ok(()),
        Ok(false) => {
            let why = format!(
                "the Source published it anew while its packages were received, and the package {package} is of \
                 {at}, later than the edition that was read: packages of two editions may leave resources out"
            );
            let failure = unreadable(ProblemReason::ChangedAgain, why, Evidence::default());
            planner.fail_document(ctx, &record.document, dump, failure).await
        }
        Err(error) => planner.fail_document_web(ctx, &record.document, dump, &error).await,
    }
}

/// Whether a dump's only package covers its whole set. It is of one edition, whichever that is.
pub(crate) fn is_alone(ctx: &mut RunContext, dump: &DocumentRecord) -> bool {
    let dumps = ctx.sets.get(&dump.set).map(|set| set.documents(&Capability::ResourceDump).count());
    dump.packages == 1 && dump.parent.is_none() && dumps == Some(1)
}

/// The time of a manifest, if it is later than what the dump states for the package or for itself.
fn later_at(record: &PackageRecord, dump: &DocumentRecord, contents: &Contents) -> Option<Timestamp> {
    let at = contents.manifest.at?.instant();
    let listed_at = record.metadata.at.map(|at| at.instant()).or(dump.at)?;
    (at > listed_at).then_some(at)
}
