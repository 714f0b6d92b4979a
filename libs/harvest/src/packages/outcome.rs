//! Settles outcomes of package jobs: each message in one atomic batch, before it is acknowledged.

use bus::Delivery;
use catalog::Batch;
use documents::manifest_of;
use jiff::SignedDuration;
use model::{
    Contents, Disposition, Failure, JobId, KeptNames, MemberOutcome, MemberResult, PackageOutcome,
    PackageRecord, PackageResult, PackageState, ProblemReason, Seq, SettledPackage, SliceSet, Subject,
};
use resourcesync::{Capability, Quirk};

use super::indexes::{self, Indexes};
use super::names::{self, Slices};
use super::uploads::{self, is_about_bytes, is_worth_keeping};
use super::{PackageWork, contents, earlier, edition, members, queue, send};
use crate::error::HarvestError;
use crate::planner::Planner;
use crate::planner::kept_names::are_kept;
use crate::run::RunContext;
use crate::run::problems::asked_until;
use crate::settler::Settler;

impl PackageWork {
    /// Settles outcomes of packages, and acknowledges their messages.
    pub(crate) async fn settle_packages(
        &mut self,
        ctx: &mut RunContext,
        planner: &mut Planner,
        settler: &mut Settler,
        packages: Vec<(Delivery, PackageOutcome)>,
    ) -> Result<(), HarvestError> {
        let mut packages = packages.into_iter().peekable();
        while let Some((delivery, outcome)) = packages.next() {
            let mut deliveries = vec![delivery];
            let mut more_slices = Vec::new();
            while let Some((delivery, next)) = packages.next_if(|(_, next)| are_slices_of_one(&outcome, next))
            {
                deliveries.push(delivery);
                more_slices.push(next);
            }
            let uri = outcome.uri.as_str().to_owned();
            Box::pin(self.settle_package(ctx, planner, settler, &uri, outcome, more_slices)).await?;
            for delivery in deliveries {
                delivery.ack().await?;
            }
        }
        Ok(())
    }

    /// Settles an outcome of a package. Slices that arrived with the first one share its batch, because a batch of
    /// several costs about the same.
    async fn settle_package(
        &mut self,
        ctx: &mut RunContext,
        planner: &mut Planner,
        settler: &mut Settler,
        uri: &str,
        outcome: PackageOutcome,
        more_slices: Vec<PackageOutcome>,
    ) -> Result<(), HarvestError> {
        ctx.run.counters.requests += outcome.requests;
        let jobs: Vec<JobId> =
            [outcome.id].into_iter().chain(more_slices.iter().map(|next| next.id)).collect();
        let found = ctx.catalog().await?.package(uri).await?;
        // Bytes stored by a job of an earlier run may be garbage-collected since (docs/adr/0019), unless the record
        // refers to that job.
        let is_about = |record: &PackageRecord, outcome: &PackageOutcome| {
            record.seq == outcome.seq && (record.run == outcome.run || record.job == Some(outcome.id))
        };
        let known = found.as_ref().filter(|record| is_about(record, &outcome)).cloned();
        let indexes = Indexes::of(&outcome, known.as_ref());
        let Some(mut record) = known else {
            // Of an earlier plan.
            self.jobs.retain(|job, _| !jobs.contains(job));
            ctx.commit(Batch::new()).await?;
            indexes::remove_indexes(ctx, uri, indexes, found.as_ref()).await;
            return Ok(());
        };
        let mut batch = Batch::new();
        let goes_on = matches!(outcome.result, PackageResult::Opened(_) | PackageResult::Slice { .. });
        let is_asked_for = self.jobs.contains_key(&outcome.id);
        match (outcome.result, record.state.clone()) {
            (PackageResult::Stored(stored), PackageState::Wanted) => {
                ctx.run.counters.bytes += stored.computed.length();
                record.state = PackageState::Stored { stored };
                record.next_attempt_at = None;
            }
            (PackageResult::NotModified, PackageState::Wanted) => match &record.settled {
                Some(settled) => {
                    ctx.run.counters.unchanged += settled.entries;
                    ctx.run.counters.listed += settled.entries;
                    record.state = PackageState::Done;
                    planner.name_kept(ctx, uri, &record).await?;
                }
                None => {
                    let why = "the server answered 304 Not Modified to a request without conditions; it sent no package";
                    let failure = refused(ProblemReason::HttpUnexpected, why.to_owned());
                    fail_package(ctx, &mut batch, uri, &mut record, failure).await?;
                }
            },
            // The next job continues after the received bytes.
            (PackageResult::Deferred { .. }, PackageState::Wanted) => {}
            (PackageResult::Opened(contents), PackageState::Stored { stored }) => {
                match expect_manifest(&record, &contents) {
                    Ok(()) => {
                        edition::judge_edition(ctx, planner, uri, &record, &contents).await?;
                        self.open_package(ctx, &mut batch, uri, &mut record, stored, contents).await?;
                    }
                    Err(why) => {
                        let failure = refused(ProblemReason::WrongKind, why);
                        fail_package(ctx, &mut batch, uri, &mut record, failure).await?;
                    }
                }
            }
            (first @ PackageResult::Slice { .. }, PackageState::Opened { .. }) => {
                let more_slices =
                    more_slices.into_iter().filter(|next| is_about(&record, next)).collect::<Vec<_>>();
                let slices = [first].into_iter().chain(more_slices.into_iter().map(|next| next.result));
                settle_slices(ctx, planner, settler, &mut batch, uri, &mut record, slices).await?;
            }
            // An outcome of a job that is over brings nothing new.
            (PackageResult::Interrupted { settled }, _) if is_asked_for && queue::is_open(&record) => {
                if send::settled(&record) > settled {
                    record.attempts = 0;
                } else {
                    fail_package(ctx, &mut batch, uri, &mut record, interrupted()).await?;
                }
            }
            (PackageResult::Failed(failure), state) if queue::is_open(&record) => {
                record.kept = is_worth_keeping(&record, &failure);
                if failure.reason == ProblemReason::MissingBytes && state != PackageState::Wanted {
                    // Its bytes are gone: it is received once more, under a new name.
                    (record.state, record.seq) = (PackageState::Wanted, ctx.next_seq());
                }
                fail_package(ctx, &mut batch, uri, &mut record, failure).await?;
            }
            // A duplicate after a crash, or an outcome out of order, brings nothing new. Missing outcomes are
            // requested again.
            _ => {}
        }
        let is_over = !goes_on || is_whole_job(&record);
        if is_over {
            record.job = record.job.filter(|job| !jobs.contains(job));
        }
        let may_go_on = matches!(record.state, PackageState::Wanted | PackageState::Failed);
        record.kept &= may_go_on && record.seq == outcome.seq;
        self.put_away(ctx, batch, uri, record, outcome.seq, indexes).await?;
        if is_over {
            self.jobs.retain(|job, _| !jobs.contains(job));
        }
        Ok(())
    }

    /// Commits the result of a package. Then removes what its record no longer uses: the checkpoint of the upload
    /// `seq`, indexes, and jobs on a settled package.
    pub(crate) async fn put_away(
        &mut self,
        ctx: &mut RunContext,
        mut batch: Batch,
        uri: &str,
        record: PackageRecord,
        seq: Seq,
        indexes: Indexes,
    ) -> Result<(), HarvestError> {
        batch.put_package(uri, &record);
        ctx.commit(batch).await?;
        let is_settled = !queue::is_open(&record) && !record.kept;
        if is_settled || record.seq != seq {
            uploads::forget_upload(ctx, uri, seq).await;
        }
        indexes::remove_indexes(ctx, uri, indexes, Some(&record)).await;
        let key = (queue::order(&record), uri.to_owned());
        if queue::is_open(&record) {
            self.packages.insert(key, record);
        } else {
            self.packages.remove(&key);
            self.jobs.retain(|_, job| job.package != uri);
        }
        Ok(())
    }

    async fn open_package(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        uri: &str,
        record: &mut PackageRecord,
        stored: model::StoredBitstream,
        contents: Contents,
    ) -> Result<(), HarvestError> {
        ctx.run.counters.add_quirks(&contents.manifest.quirks);
        // The manifest in the package counts.
        if record.manifest_copy.take().is_some_and(|copy| !copy.is_same_edition(&contents.manifest)) {
            ctx.run.counters.add_quirk(Quirk::ContentsDiffers.as_str(), 1);
        }
        if ctx.problems.any && contents.unlisted == 0 {
            batch.delete_problem(&Subject::Document(uri.to_owned()));
        }
        // Those that remain occur again when its slices are settled.
        ctx.forget_entry_problems(uri).await?;
        note_unlisted(ctx, batch, uri, contents.unlisted, &contents.unlisted_names).await?;
        ctx.run.counters.listed += contents.overtaken;
        ctx.run.counters.unchanged += contents.overtaken;
        record.state = PackageState::Opened { stored, contents, done: SliceSet::default() };
        finish_if_done(record);
        Ok(())
    }
}

/// Records members without an entry as a problem of the package; its entries are settled all the same.
pub(crate) async fn note_unlisted(
    ctx: &mut RunContext,
    batch: &mut Batch,
    uri: &str,
    count: u64,
    names: &[String],
) -> Result<(), HarvestError> {
    if count == 0 {
        return Ok(());
    }
    let subject = Subject::Document(uri.to_owned());
    let before = ctx.catalog().await?.problem(&subject).await?;
    let message = format!(
        "{count} of the package's members stand in no entry of its manifest ({}{}): they are no resources, and are not taken",
        names.join(", "),
        if count > names.len() as u64 { ", …" } else { "" },
    );
    let problem = ctx.problem(before, ProblemReason::Malformed, message);
    ctx.put_problem(batch, &subject, &problem);
    Ok(())
}

/// Handles a failure: another attempt in this run, or a problem.
pub(crate) async fn fail_package(
    ctx: &mut RunContext,
    batch: &mut Batch,
    uri: &str,
    record: &mut PackageRecord,
    failure: Failure,
) -> Result<(), HarvestError> {
    record.attempts += 1;
    let next = ctx.options.retries.after(&failure, record.attempts);
    if let Some(wait) = next.wait().filter(|wait| *wait <= ctx.options.retries.longest_wait) {
        let wait = SignedDuration::try_from(wait).unwrap_or_default();
        record.next_attempt_at = ctx.clock.now().checked_add(wait).ok();
        if is_about_bytes(failure.reason) {
            // The received bytes are not those declared: start another upload, under a new name.
            (record.state, record.seq) = (PackageState::Wanted, ctx.next_seq());
        }
        return Ok(());
    }
    give_package_up(ctx, batch, uri, record, failure).await
}

/// Records a package that is not read in this run as a problem.
pub(crate) async fn give_package_up(
    ctx: &mut RunContext,
    batch: &mut Batch,
    uri: &str,
    record: &mut PackageRecord,
    failure: Failure,
) -> Result<(), HarvestError> {
    tracing::warn!(
        package.uri = uri,
        reason = failure.reason.as_str(),
        message = failure.message,
        "package not read"
    );
    record.state = PackageState::Failed;
    record.next_attempt_at = None;
    ctx.run.counters.documents_failed += 1;
    let subject = Subject::Document(uri.to_owned());
    let before = ctx.catalog().await?.problem(&subject).await?;
    let mut problem = ctx.problem(before, failure.reason, failure.message);
    problem.evidence = failure.evidence;
    problem.next_attempt_at = asked_until(failure.disposition, problem.last_seen);
    problem.retry = matches!(failure.disposition, Disposition::Retry { .. });
    ctx.put_problem(batch, &subject, &problem);
    Ok(())
}

/// Settles slices of one package. Their entries are of different resources.
async fn settle_slices(
    ctx: &mut RunContext,
    planner: &mut Planner,
    settler: &mut Settler,
    batch: &mut Batch,
    uri: &str,
    record: &mut PackageRecord,
    slices: impl Iterator<Item = PackageResult>,
) -> Result<(), HarvestError> {
    let PackageState::Opened { stored, contents, mut done } = record.state.clone() else { return Ok(()) };
    let mut all = Vec::new();
    let mut settled = Slices::default();
    for slice in slices {
        let PackageResult::Slice { number, items, unlisted, unlisted_names } = slice else { continue };
        if done.insert(number) {
            let is_bad = |item: &MemberOutcome| matches!(item.result, MemberResult::BadEntry(_));
            settled.has_bad_entries |= items.iter().any(is_bad);
            settled.add(number);
            all.extend(items);
            note_unlisted(ctx, batch, uri, unlisted, &unlisted_names).await?;
        }
    }
    // A run that was interrupted may be resumed with other options.
    record.selection = Some(ctx.selection.after(record.selection));
    let context = contents::member_context(uri, record, &contents, ctx.clock.now());
    let (earlier, all): (Vec<_>, Vec<_>) = all.into_iter().partition(|item| item.entry.earlier);
    earlier::settle_earlier(ctx, settler, &context, earlier).await?;
    if are_kept(record) {
        planner.reconciler.collect_names();
    }
    members::settle_members(ctx, planner, settler, batch, &context, all).await?;
    if are_kept(record) {
        let listed = planner.reconciler.collected_names();
        names::keep(planner, batch, uri, record, settled, listed);
    }
    record.state = PackageState::Opened { stored, contents, done };
    finish_if_done(record);
    Ok(())
}

/// Whether both are outcomes of slices of the same package.
fn are_slices_of_one(one: &PackageOutcome, other: &PackageOutcome) -> bool {
    let is_slice = |outcome: &PackageOutcome| matches!(outcome.result, PackageResult::Slice { .. });
    is_slice(one) && is_slice(other) && (&one.uri, one.seq, one.run) == (&other.uri, other.seq, other.run)
}

/// Whether the job of this outcome is over. A job that unpacks a package from its beginning sends many outcomes.
fn is_whole_job(record: &PackageRecord) -> bool {
    match &record.state {
        PackageState::Opened { contents, .. } => contents.index.is_some(),
        _ => true,
    }
}

fn finish_if_done(record: &mut PackageRecord) {
    let PackageState::Opened { stored, contents, done } = &record.state else { return };
    if done.len() < contents.slices {
        return;
    }
    record.settled = Some(SettledPackage {
        declaration: record.declaration.clone(),
        validators: stored.validators.clone(),
        sha256: Some(stored.computed.sha256()),
        location: Some(stored.location.clone()),
        entries: contents.entries,
        names: are_kept(record).then_some(KeptNames { seq: record.seq, slices: contents.slices }),
    });
    record.state = PackageState::Done;
}

/// Checks that a manifest matches the kind of the dump that lists its package. If it does not say its kind, the
/// dump's counts.
fn expect_manifest(record: &PackageRecord, contents: &Contents) -> Result<(), String> {
    let expected = manifest_of(&record.capability);
    match &contents.manifest.capability {
        // For packages of a Change List, the kind of the manifest is undefined.
        Some(found) if record.capability == Capability::ChangeList && found.is_manifest() => Ok(()),
        Some(found) if *found != expected => Err(format!(
            "its manifest is a {found}, where a {expected} was announced; nothing of the package is taken"
        )),
        _ => Ok(()),
    }
}

/// Failure of an unpack job that began at the package's beginning and ended before a slice was complete.
fn interrupted() -> Failure {
    let message = "unpackers ended before a slice of the package was done, several times; their log says why. \
                   The next run retries the package";
    let disposition = Disposition::Retry { after: None };
    Failure { disposition, ..refused(ProblemReason::Poison, message.to_owned()) }
}

fn refused(reason: ProblemReason, message: String) -> Failure {
    Failure { reason, message, disposition: Disposition::Refuse, evidence: Default::default() }
}

#[cfg(test)]
mod tests {
    use model::RunId;

    use super::*;

    fn slice(uri: &str, seq: u64, run: RunId) -> PackageOutcome {
        PackageOutcome {
            id: JobId::fresh(),
            source: "s".parse().unwrap(),
            run,
            origin: "http://e.org".parse().unwrap(),
            uri: uri.parse().unwrap(),
            seq: Seq::new(seq),
            requests: 0,
            elapsed_ms: 0,
            result: PackageResult::Slice {
                number: 0,
                items: Vec::new(),
                unlisted: 0,
                unlisted_names: Vec::new(),
            },
        }
    }

    #[test]
    fn only_slices_of_the_same_plan_of_a_package_are_settled_together() {
        let run = RunId::fresh();
        let one = slice("http://e.org/1.zip", 1, run);
        assert!(are_slices_of_one(&one, &slice("http://e.org/1.zip", 1, run)));
        let deferred = PackageOutcome {
            result: PackageResult::Deferred { received: 1 },
            ..slice("http://e.org/1.zip", 1, run)
        };
        for other in [
            slice("http://e.org/2.zip", 1, run),
            slice("http://e.org/1.zip", 2, run),
            slice("http://e.org/1.zip", 1, RunId::fresh()),
            deferred,
        ] {
            assert!(!are_slices_of_one(&one, &other) && !are_slices_of_one(&other, &one), "{other:?}");
        }
    }
}
