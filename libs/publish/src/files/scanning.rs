//! Scans a directory beside other work, and keeps what the scan leaves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use jiff::Timestamp;

use super::directory::FileRecords;
use super::last::Last;
use super::looks::Looks;
use super::rows::{FILES, Rows};
use super::scan::{Outcome, Scan};
use crate::PublishError;
use crate::place::lasting;
use crate::scanned::Scanned;

impl FileRecords {
    /// Scans the directory, or what has changed there.
    pub(super) async fn scan(&self, published: u64, now: Timestamp) -> Result<Scanned, PublishError> {
        let old = self.place.copy(FILES).await?.map(Rows::open).transpose()?;
        let head = old.as_ref().map(|old| old.head);
        // Another process may have scanned meanwhile: then what changed since our last scan does not suffice.
        let base = self.last().ok().filter(|last| Some(last.rows.head) == head);
        let now = u64::try_from(now.as_microsecond()).unwrap_or_default();
        let next = head.map_or(0, |head| head.changed + 1);
        let stop = StopOnDrop(Arc::default());
        let mut scan = Scan {
            directory: self.directory.clone(),
            url: self.url.clone(),
            place: self.place.clone(),
            old: old.clone(),
            files: base.as_ref().map_or(0, |base| base.files),
            looks: Looks::all(),
            heard: None,
            number: now.max(next).max(published),
            published,
            allow_deletes: self.allow_deletes,
            save_every: self.save_every,
            stop: Arc::clone(&stop.0),
        };
        let watched = self.watched.clone();
        let task = tokio::task::spawn_blocking(move || {
            let mut plan = watched.map(|watched| watched.plan(base.is_some()));
            if let Some(plan) = &mut plan {
                scan.looks = std::mem::take(&mut plan.looks);
                scan.heard = plan.heard();
            }
            Ok::<_, PublishError>((scan.run()?, plan))
        });
        let (outcome, plan) = task.await.map_err(|error| PublishError::place(FILES, error))??;
        let Outcome { mut scanned, rows, again, recent } = outcome;
        let rows = match rows {
            Some(file) => {
                let rows = Rows::open(file.reopen()?)?;
                self.place.put_file(FILES, file, &lasting()).await?;
                Some(rows)
            }
            None => old,
        };
        let last = rows.map(|rows| Last::new(rows, scanned.files, published, recent));
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = last;
        if let (Some(watched), Some(plan)) = (&self.watched, plan) {
            scanned.unheard = watched.done(plan, again);
            scanned.watched = watched.folders();
        }
        Ok(scanned)
    }
}

/// Ends a scan on another thread when the run that waits for it is dropped.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
