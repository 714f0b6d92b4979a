//! Reads and judges the members of one slice of a package, in place.

use std::sync::Arc;

use fixity::{Computed, Hasher};
use model::{Location, ManifestEntry, MemberOutcome, MemberResult, PackageId, PackageResult, SourceId};
use packages::zip::{Data, MemberReader};
use packages::{Blocks, MemberPosition, PackageError, ReadAt};
use store::StoreError;

use crate::error::UnpackError;
use crate::failure;
use crate::index::{self, Found, MemberLocation};
use crate::judge::{self, Declared};
use crate::open::package_of;
use crate::source::{AHEAD, BLOCK, Stored};
use crate::unpacker::{Answers, Unpacker};

impl Unpacker {
    /// Reads and judges the members of one slice.
    pub(crate) async fn slice(
        &self,
        answers: &mut Answers<'_>,
        index: PackageId,
        number: u32,
    ) -> Result<(), UnpackError> {
        let (source, package) = package_of(answers.job)?;
        let lines = match index::read(&self.store, &source, index, number, &self.indexes).await {
            Err(error @ StoreError::NotFound { .. }) => {
                // Usually the index of a package that another delivery of this job settled. The owner then ignores
                // the outcome.
                tracing::info!(package.uri = %answers.job.uri, number, "the index of a package is gone");
                let failure = failure::missing(&answers.job.uri, &error.to_string());
                return answers.say(PackageResult::Failed(failure)).await;
            }
            lines => lines?,
        };
        let stored = &answers.job.stored;
        let whole = self.store.range_reader(&stored.location, stored.computed.length());
        let reading = Reading::of(whole, lines.iter().filter_map(|line| line.found.place()));
        let mut order: Vec<usize> = (0..lines.len()).collect();
        // In storage order: a read for one member may contain the next.
        order.sort_by_key(|&n| lines[n].found.place().map(|place| place.header_offset));
        let mut results: Vec<Option<MemberResult>> = lines.iter().map(|_| None).collect();
        for n in order {
            let line = &lines[n];
            if let Some(place) = line.found.place() {
                results[n] =
                    Some(self.member(answers, &reading, &source, package, &line.entry, place).await?);
            }
        }
        let items = lines.into_iter().zip(results).filter_map(|(line, result)| {
            let result = match line.found {
                Found::Member(_) => result?,
                Found::Nothing(result) => *result,
            };
            Some(outcome(line.entry, result))
        });
        let items = items.collect();
        answers.caught_up().await?;
        let unlisted_names = Vec::new();
        answers.say(PackageResult::Slice { number, items, unlisted: 0, unlisted_names }).await
    }

    async fn member(
        &self,
        answers: &Answers<'_>,
        reading: &Reading,
        source: &SourceId,
        package: PackageId,
        entry: &ManifestEntry,
        place: &MemberLocation,
    ) -> Result<MemberResult, UnpackError> {
        let declared = Declared::by(entry);
        let uri = &answers.job.uri;
        let source_of = reading.source_of(place);
        // A header that contradicts the directory condemns the whole package.
        let data = place.claim().locate(&source_of, place.name.bytes()).await?;
        let computed = match self.compute(source_of, entry, data, &declared).await {
            Ok(computed) => computed,
            Err(error @ PackageError::Read { .. }) => return Err(error.into()),
            Err(error) => return Ok(MemberResult::Failed(failure::of_member(uri, entry, &error))),
        };
        Ok(match declared.judge(&computed) {
            Err(what) => MemberResult::Failed(failure::member_mismatch(uri, entry, &what)),
            Ok(assurance) => {
                let offset = data.offset;
                let stored_length = data.stored_length;
                let method = place.method;
                let location =
                    Location::Package { source: source.clone(), package, offset, stored_length, method };
                judge::verified(entry, computed, assurance, location)
            }
        })
    }

    /// Reads a member to its end, which checks its size and CRC-32.
    async fn compute(
        &self,
        source: Arc<dyn ReadAt>,
        entry: &ManifestEntry,
        data: Data,
        declared: &Declared,
    ) -> Result<Computed, PackageError> {
        let name = failure::shown(entry.metadata.path.as_deref().unwrap_or_default());
        let named = MemberPosition { name: Some(name), offset: data.offset };
        let mut reader = MemberReader::new(source, data, AHEAD).of(named);
        let mut hasher = Hasher::new(declared.algorithms());
        while let Some(chunk) = reader.chunk().await? {
            hasher.update(&chunk);
            self.metrics.bytes.inc_by(chunk.len() as u64);
        }
        Ok(hasher.finish())
    }
}

/// The outcome of an entry. A patch in its place is no version of it: what is not as its link declares is left out, and
/// the resource is requested.
fn outcome(entry: ManifestEntry, result: MemberResult) -> MemberOutcome {
    if entry.patch().is_none() {
        return MemberOutcome::new(entry, result);
    }
    let patch = match result {
        MemberResult::Verified { stored, .. } => Some(Box::new(stored)),
        _ => None,
    };
    MemberOutcome { entry, result: MemberResult::NoMember, patch }
}

/// How the members of a slice are read: small ones close together in blocks, others one by one.
struct Reading {
    whole: Arc<dyn ReadAt>,
    blocks: Option<Arc<dyn ReadAt>>,
}

impl Reading {
    fn of<'a>(stored: Stored, places: impl Iterator<Item = &'a MemberLocation>) -> Self {
        let mut start = u64::MAX;
        let mut end = 0;
        let mut bytes = 0_u64;
        for place in places.filter(|place| is_small(place)) {
            let reach = place.reach();
            start = start.min(reach.start);
            end = end.max(reach.end);
            bytes = bytes.saturating_add(reach.end - reach.start);
        }
        // If they are scattered, most of a block would be read for nothing.
        let span = end.saturating_sub(start);
        let are_together = span <= bytes.saturating_mul(4).saturating_add(BLOCK as u64);
        // What two blocks would contain is read with one request.
        let block = if span <= 2 * BLOCK as u64 { span as usize } else { BLOCK };
        let blocks = are_together
            .then(|| Arc::new(Blocks::within(stored.clone(), start..end, block)) as Arc<dyn ReadAt>);
        Self { whole: Arc::new(stored), blocks }
    }

    fn source_of(&self, place: &MemberLocation) -> Arc<dyn ReadAt> {
        let blocks = self.blocks.as_ref().filter(|_| is_small(place));
        Arc::clone(blocks.unwrap_or(&self.whole))
    }
}

fn is_small(place: &MemberLocation) -> bool {
    place.stored_length < BLOCK as u64
}
