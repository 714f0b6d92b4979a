//! The task that fetches earlier versions into the history. It leaves as soon as a sync is due, and goes on after the
//! last resource whose versions are committed, whichever scheduler owns the Source then.

use std::collections::HashMap;
use std::sync::Arc;

use ::backfill::{BackfillError, Bounds, Checkpoint, Options, Parts, Remark};
use catalog::{Catalog, CatalogError};
use control::{Backfill, TaskProgress};
use harvest::HarvestError;
use planning::HarvestOptions;
use store::Key;
use tokio_util::sync::CancellationToken;
use web::Client;

use super::RunExecutor;
use super::task::{Attempt, TaskEnd};

/// TimeMaps that are read, and versions that are fetched, at a time. Each may be in memory.
const AT_A_TIME: usize = 2;
/// Remarks of one reason that are logged.
const REMARKS_LOGGED: u32 = 20;

impl RunExecutor<'_> {
    /// One attempt, with the parts that it needs.
    pub(super) fn backfilling(
        &self,
        wanted: &Backfill,
        client: Client,
        options: &HarvestOptions,
        stop: CancellationToken,
    ) -> Attempt {
        let context = self.context.clone();
        let source = Arc::clone(&self.source.value);
        let progress = self.task.clone();
        let (wanted, from) = (wanted.clone(), self.checkpoint());
        let at_a_time = options.jobs_per_origin.get().min(AT_A_TIME);
        Box::pin(async move {
            let path = Key::Catalog(source.id.clone()).to_string();
            let opening = Catalog::open(context.store.object_store(), &path, context.catalogs.clone());
            let catalog = match Box::pin(opening).await {
                Err(CatalogError::NotFound { .. }) => return Ok(TaskEnd::Refused(never_synced())),
                opened => opened?,
            };
            let ended = async {
                if catalog.last_run().await?.is_none() {
                    return Ok(TaskEnd::Refused(never_synced()));
                }
                let kept = catalog.history().await?.unwrap_or_default();
                let versions = match versions(&wanted, source.keep_versions, kept) {
                    Ok(versions) => versions,
                    Err(why) => return Ok(TaskEnd::Refused(why)),
                };
                let Backfill { since, archives, any_host, .. } = wanted;
                let options =
                    Options { versions, since, any_host, archives, at_a_time, bounds: Bounds::SHARED };
                let parts = Parts {
                    source: &source.id,
                    catalog: &catalog,
                    store: &context.store,
                    client: &client,
                    clock: &*context.clock,
                    stop: &stop,
                };
                let mut logged = HashMap::new();
                let mut told = |remark: &Remark| log(&mut logged, remark);
                let mut committed = |checkpoint: &Checkpoint| {
                    let Checkpoint { after, counts } = checkpoint.clone();
                    progress.send_replace(Some(TaskProgress::Backfill { after, counts }));
                };
                let work = ::backfill::run(&parts, options, from, &mut told, &mut committed);
                match Box::pin(work).await {
                    Ok(counts) => {
                        let is_clean = counts.failures() == 0;
                        progress.send_replace(Some(TaskProgress::Backfill { after: None, counts }));
                        Ok(TaskEnd::Done { is_clean })
                    }
                    Err(BackfillError::Catalog(error)) => Err(error.into()),
                    Err(BackfillError::Store(error)) => Err(error.into()),
                    Err(BackfillError::Stopped) => Err(HarvestError::Stopped),
                }
            };
            let ended = Box::pin(ended).await;
            // What was committed is safe, whether closing succeeds or not.
            let closed = catalog.close().await;
            let ended = ended?;
            closed?;
            Ok(ended)
        })
    }
}

fn never_synced() -> String {
    "the Source was never synced, so there are no resources that could have earlier versions; start a run first"
        .to_owned()
}

/// How many versions of a resource are fetched. `of_spec`: how many the syncs of the Source keep, if its spec says so;
/// `kept`: how many the catalog keeps.
fn versions(wanted: &Backfill, of_spec: Option<u32>, kept: u32) -> Result<u32, String> {
    let kept = of_spec.unwrap_or(kept);
    let versions = wanted.versions.map_or(kept, Into::into);
    if versions == 0 {
        return Err("the syncs of the Source keep no earlier versions; set its keep_versions, or ask for a number of \
                    versions"
            .to_owned());
    }
    if of_spec.is_some_and(|of_spec| of_spec < versions) {
        return Err(format!(
            "the syncs of the Source keep {kept} earlier versions, and would drop the others of {versions}; set its \
             keep_versions to {versions} or more first"
        ));
    }
    Ok(versions)
}

/// Logs a remark: the first ones of each reason.
fn log(logged: &mut HashMap<&'static str, u32>, remark: &Remark) {
    let Remark { uri, at, reason, message, .. } = remark;
    let count = logged.entry(reason).or_default();
    *count += 1;
    if *count <= REMARKS_LOGGED {
        let uri = uri.as_ref().map_or("", |uri| uri.as_str());
        tracing::info!(resource.uri = uri, at, reason, message, "a version is not used");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_the_next_sync_would_drop_are_refused() {
        let asked = |versions: u32| Backfill { versions: versions.try_into().ok(), ..Backfill::default() };
        assert_eq!(versions(&asked(5), None, 3), Ok(5));
        assert_eq!(versions(&asked(0), None, 3), Ok(3));
        assert_eq!(versions(&asked(0), Some(4), 9), Ok(4));
        assert!(versions(&asked(0), None, 0).unwrap_err().contains("keep_versions"));
        assert!(versions(&asked(5), Some(4), 9).unwrap_err().contains("to 5 or more"));
    }
}
