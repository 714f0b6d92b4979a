//! A collection, from its beginning to its end.

use catalog::{Catalog, CatalogConfig, CatalogError, CatalogReader};
use jiff::{SignedDuration, Timestamp};
use model::{Clock, SourceId};
use store::{Growing, Key, OrphanUpload, Store};

use crate::error::GcError;
use crate::mark::mark;
use crate::marks::{Marks, SourceMarks};
use crate::report::{HeldBack, Report, Rewritten};
use crate::rewrite::{self, SparsePack, sparse_packs};
use crate::sweep;
use crate::times::{Times, is_at_rest};
use crate::tombstones;

/// The options of a collection.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The retention: how long unreferenced bytes stay after they were stored, after the last record pointed to them,
    /// or after the deletion of their resource.
    pub keep_for: SignedDuration,
    /// Count only, and change nothing.
    pub dry_run: bool,
    /// Also do the work of a Source's owner, for Sources without a run under way. A process that opens the catalog for
    /// writing meanwhile is fenced out.
    pub as_owner: bool,
}

/// Collects the garbage of a store. It may run concurrently with harvests and readers, be killed at any moment, and be
/// repeated.
///
/// # Errors
/// [`GcError::Unreadable`], [`GcError::NoCatalog`] and [`GcError::NotOwner`] before anything is removed; errors of the
/// store at any time.
pub async fn collect(store: &Store, options: &Options, clock: &dyn Clock) -> Result<Report, GcError> {
    let times = Times::new(clock.now(), options.keep_for);
    let mut collection = Collection {
        store,
        options,
        clock,
        times,
        config: CatalogConfig::default(),
        marks: Marks::new(),
        report: Report {
            dry_run: options.dry_run,
            keep_for_seconds: options.keep_for.as_secs(),
            ..Report::default()
        },
    };
    let sources = collection.sources().await?;
    // Check that all catalogs can be read, before the first one is written.
    for source in &sources {
        let reader = collection.reader(source).await?;
        reader.last_run().await.map_err(|error| unreadable(source, error))?;
        reader.close().await.ok();
    }
    let mut all_marks = Vec::with_capacity(sources.len());
    for source in &sources {
        // Before the catalog is read, so that an upload that ends meanwhile is found in one of the two.
        let uploads = store.uploads_left(source).await?;
        // Boxed, like its parts: together these futures are too large for the stack of a worker.
        let source_marks = Box::pin(collection.look_through(source, &uploads)).await?;
        all_marks.push((source_marks, uploads));
    }
    Box::pin(collection.sweep(&all_marks)).await?;
    Ok(collection.report)
}

struct Collection<'a> {
    store: &'a Store,
    options: &'a Options,
    clock: &'a dyn Clock,
    times: Times,
    config: CatalogConfig,
    marks: Marks,
    report: Report,
}

impl Collection<'_> {
    /// All Sources that have a catalog, or a marker that they should have one.
    async fn sources(&self) -> Result<Vec<SourceId>, GcError> {
        let mut sources = self.store.catalogs().await?;
        sources.extend(self.store.sources().await?.into_iter().map(|note| note.source));
        sources.sort();
        sources.dedup();
        if sources.is_empty() {
            return Err(GcError::NoCatalog { root: self.store.root().to_owned() });
        }
        Ok(sources)
    }

    async fn reader(&self, source: &SourceId) -> Result<CatalogReader, GcError> {
        let path = Key::Catalog(source.clone()).to_string();
        let opened = CatalogReader::open(self.store.object_store(), &path, self.config.clone()).await;
        opened.map_err(|error| unreadable(source, error))
    }

    /// Marks what a Source needs. Tidies up as its owner, if that is requested and no other owner is active.
    async fn look_through(
        &mut self,
        source: &SourceId,
        uploads: &[OrphanUpload],
    ) -> Result<SourceMarks, GcError> {
        let reader = self.reader(source).await?;
        let run = reader.last_run().await.map_err(|error| unreadable(source, error))?;
        let owns = self.options.as_owner && run.as_ref().is_none_or(is_at_rest);
        let marking = mark(&reader, source, uploads, &self.times, owns, &mut self.marks);
        let source_marks = Box::pin(marking).await?;
        reader.close().await.ok();
        let dead = Box::pin(sparse_packs(self.store, &source_marks, self.marks.of(source))).await?;
        let rewritten = rewrite::count(&dead);
        if !owns {
            self.leave(source_marks.due, rewritten);
            return Ok(source_marks);
        }
        if !self.options.dry_run && (source_marks.due > 0 || !dead.is_empty()) {
            return Box::pin(self.tidy_up(source, uploads, source_marks.due, &dead)).await;
        }
        self.done(source_marks.due, rewritten);
        Ok(source_marks)
    }

    /// Removes tombstones and rewrites packs as the owner, unless a harvest has begun since the check. Then marks
    /// again, completely.
    async fn tidy_up(
        &mut self,
        source: &SourceId,
        uploads: &[OrphanUpload],
        due: u64,
        dead: &[SparsePack],
    ) -> Result<SourceMarks, GcError> {
        let rewritten = rewrite::count(dead);
        // Reading a whole catalog takes a while.
        let reader = self.reader(source).await?;
        let run = reader.last_run().await.map_err(|error| unreadable(source, error))?;
        reader.close().await.ok();
        let done = if run.as_ref().is_none_or(is_at_rest) {
            self.write(source, uploads, dead).await.map(Some)
        } else {
            Ok(None)
        };
        match done {
            Ok(Some((source_marks, given_up))) => {
                self.done(given_up, rewritten);
                return Ok(source_marks);
            }
            Ok(None) | Err(GcError::NotOwner { error: CatalogError::Fenced { .. }, .. }) => {}
            Err(error) => return Err(error),
        }
        self.leave(due, rewritten);
        let reader = self.reader(source).await?;
        let marking = mark(&reader, source, uploads, &self.times, false, &mut self.marks);
        let source_marks = Box::pin(marking).await?;
        reader.close().await.ok();
        Ok(source_marks)
    }

    /// The work of the owner. Returns the number of removed tombstones, and the new marks of the Source.
    async fn write(
        &mut self,
        source: &SourceId,
        uploads: &[OrphanUpload],
        dead: &[SparsePack],
    ) -> Result<(SourceMarks, u64), GcError> {
        let failed = |error| GcError::NotOwner { source_id: source.clone(), error };
        let path = Key::Catalog(source.clone()).to_string();
        let opened = Catalog::open(self.store.object_store(), &path, self.config.clone()).await;
        let catalog = opened.map_err(failed)?;
        let since = self.times.retained_since();
        let now = self.times.began();
        let given_up = Box::pin(tombstones::give_up(&catalog, since, now)).await.map_err(failed)?;
        Box::pin(rewrite::rewrite(self.store, &catalog, source, dead, since, self.clock)).await?;
        // No other process can write now. A resource whose bytes were about to be removed may have been restored
        // before.
        let marking = mark(&catalog, source, uploads, &self.times, false, &mut self.marks);
        let source_marks = Box::pin(marking).await?;
        catalog.close().await.map_err(failed)?;
        Ok((source_marks, given_up))
    }

    fn done(&mut self, given_up: u64, rewritten: Rewritten) {
        self.report.tombstones.given_up += given_up;
        let total = &mut self.report.rewritten;
        total.packs += rewritten.packs;
        total.bitstreams += rewritten.bitstreams;
        total.bytes += rewritten.bytes;
    }

    /// Another process owns the Source now.
    fn leave(&mut self, due: u64, rewritten: Rewritten) {
        self.report.tombstones.left += due;
        self.report.rewritten.left += rewritten.packs;
    }

    /// Removes what is neither needed nor within the retention. All catalogs were read before.
    async fn sweep(&mut self, all_marks: &[(SourceMarks, Vec<OrphanUpload>)]) -> Result<(), GcError> {
        let store = self.store;
        let dry_run = self.options.dry_run;
        let mut growing = Growing::default();
        let mut young = self.times.young_since(None);
        for (source_marks, uploads) in all_marks {
            young = young.min(source_marks.young);
            let needed = self.marks.of(&source_marks.source);
            let left = sweep::uploads(store, source_marks, needed, uploads, dry_run, &mut growing).await?;
            self.report.uploads.add(left);
            self.report.packages.add(sweep::packages(store, source_marks, needed, dry_run).await?);
            self.report.packs.add(sweep::packs(store, source_marks, needed, dry_run).await?);
            let held_back = |since: Timestamp| HeldBack { source: source_marks.source.clone(), since };
            self.report.held_back.extend(source_marks.unfinished.map(held_back));
        }
        // A bitstream may belong to any Source.
        let bitstreams = Box::pin(sweep::bitstreams(store, &mut self.marks, young, dry_run)).await?;
        self.report.bitstreams.add(bitstreams);
        for source in store.folders().await? {
            if all_marks.iter().all(|(source_marks, _)| source_marks.source != source) {
                store.uploads_left(&source).await?.iter().for_each(|upload| growing.add(upload));
                self.report.strangers.push(source);
            }
        }
        self.report.leftovers = store.orphans(young, growing, !dry_run).await?;
        Ok(())
    }
}

fn unreadable(source: &SourceId, error: CatalogError) -> GcError {
    GcError::Unreadable { source_id: source.clone(), error }
}

#[cfg(test)]
mod tests;
