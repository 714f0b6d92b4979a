//! Turns the entries of a dump into pending packages.

use std::collections::BTreeMap;

use catalog::Batch;
use model::{Declaration, DocumentRecord, PackageRecord, PackageState, ProblemReason, ResourceUri, Subject};
use planning::{listings_before, package_declaration, package_interval, renewed};
use resourcesync::{Entry, Metadata};

use super::uploads;
use crate::error::HarvestError;
use crate::planner::Planner;
use crate::run::RunContext;

impl Planner {
    /// Plans the packages of a dump, unless the same version was settled before or is in progress. `position` is the
    /// position of the first entry in its dump.
    pub(crate) async fn plan_packages(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        document: &str,
        dump: &DocumentRecord,
        position: u64,
        entries: Vec<Entry>,
    ) -> Result<(), HarvestError> {
        // A package that is listed twice is one package.
        let mut planned: BTreeMap<String, PackageRecord> = BTreeMap::new();
        for (position, entry) in (position..).zip(entries) {
            if let Err(error) = fetchable(&entry.loc) {
                let at = format!("{document}#{}:{}", entry.position.line, entry.position.column);
                ctx.entry_problem(batch, at, ProblemReason::BadUri, &error);
                continue;
            }
            let known = ctx.catalog().await?.package(&entry.loc).await?;
            let fresh = self.wanted(ctx, document, dump, position, &entry);
            let named = planned
                .get(&entry.loc)
                .map_or_else(|| listings_before(known.as_ref(), &fresh), |record| record.named);
            let fresh = PackageRecord { named: named + 1, ..fresh };
            // What was settled when other resources were selected does not count for those selected now.
            let known_version =
                known.as_ref().map(|known| (known.declaration.clone(), known.metadata.clone()));
            let before = known.filter(|known| ctx.selection.covers(known.selection));
            let record = match before {
                Some(before) => {
                    let kept = before.kept.then_some(before.seq);
                    let record = renewed(before, fresh);
                    if let Some(seq) = kept.filter(|_| !record.kept) {
                        uploads::forget_upload(ctx, &entry.loc, seq).await;
                    }
                    record
                }
                None => fresh,
            };
            let record = self.unless_ignored(ctx, &entry.loc, known_version.as_ref(), record).await?;
            if record.state == PackageState::Done {
                self.name_kept(ctx, &entry.loc, &record).await?;
                let entries = record.settled.as_ref().map_or(0, |settled| settled.entries);
                ctx.run.counters.listed += entries;
                ctx.run.counters.unchanged += entries;
            }
            planned.insert(entry.loc, record);
        }
        for (uri, record) in &planned {
            batch.put_package(uri, record);
        }
        Ok(())
    }

    /// Skips a package whose problem the operator ignores, as long as the dump's declaration is the same
    /// (docs/adr/0021).
    async fn unless_ignored(
        &mut self,
        ctx: &mut RunContext,
        uri: &str,
        known: Option<&(Declaration, Metadata)>,
        record: PackageRecord,
    ) -> Result<PackageRecord, HarvestError> {
        let is_same = known.is_some_and(|(declaration, metadata)| {
            *declaration == record.declaration && *metadata == record.metadata
        });
        if !ctx.problems.any_ignored || record.state != PackageState::Wanted || !is_same {
            return Ok(record);
        }
        let problem = ctx.catalog().await?.problem(&Subject::Document(uri.to_owned())).await?;
        if problem.is_none_or(|problem| problem.ignored.is_none()) {
            return Ok(record);
        }
        ctx.run.counters.ignored += 1;
        Ok(PackageRecord { state: PackageState::Failed, ..record })
    }

    fn wanted(
        &mut self,
        ctx: &mut RunContext,
        document: &str,
        dump: &DocumentRecord,
        position: u64,
        entry: &Entry,
    ) -> PackageRecord {
        PackageRecord {
            seq: ctx.next_seq(),
            run: ctx.run.id,
            document: document.to_owned(),
            set: dump.set.clone(),
            capability: dump.capability.clone(),
            declaration: package_declaration(entry),
            metadata: package_interval(entry),
            selection: Some(ctx.selection.id()),
            position,
            named: 1,
            contents: entry.link("contents").map(|link| link.href.clone()),
            manifest_copy: None,
            state: PackageState::Wanted,
            settled: None,
            attempts: 0,
            next_attempt_at: None,
            job: None,
            kept: false,
        }
    }
}

fn fetchable(uri: &str) -> Result<(), String> {
    let uri = ResourceUri::try_from(uri.to_owned()).map_err(|error| error.to_string())?;
    uri.origin().map(drop).map_err(|error| error.to_string())
}
