//! Opens a fetched package: verifies it, reads its manifest, and divides the entries into slices.

use fixity::Verdict;
use model::{Contents, Location, MemberResult, PackageId, PackageResult, SourceId, UnpackJob};
use packages::zip::{Directory, MemberReader};
use packages::{PackageError, Packaging, SNIFF_BYTES, sniff};

use crate::collect::read_manifest;
use crate::entries::{Entries, Kind};
use crate::error::UnpackError;
use crate::failure;
use crate::index::{Found, Line, MemberLocation, Writer};
use crate::locate::Named;
use crate::source::{AHEAD, Stored};
use crate::unpacker::{Answers, Unpacker};

/// Location of a whole package. Members are adopted in it, so it must be a package.
pub(crate) fn package_of(job: &UnpackJob) -> Result<(SourceId, PackageId), UnpackError> {
    match &job.stored.location {
        Location::Package { source, package, offset: 0, .. } => Ok((source.clone(), *package)),
        other => {
            Err(UnpackError::Poison(format!("{} is said to lie at {other:?}, which is no package", job.uri)))
        }
    }
}

impl Unpacker {
    /// Opens a package; one that can only be read from its beginning is unpacked at once.
    pub(crate) async fn open(&self, answers: &mut Answers<'_>, settled: u32) -> Result<(), UnpackError> {
        let job = answers.job;
        let (source, package) = package_of(job)?;
        let location = &job.stored.location;
        let computed = &job.stored.computed;
        if !self.store.exists(location, computed.length()).await? {
            let failure = failure::missing(&job.uri, &format!("{source}/{package} is not there, or shorter"));
            return answers.say(PackageResult::Failed(failure)).await;
        }
        let verdict = fixity::judge(&job.declaration.digests, job.declaration.length, computed);
        if let Verdict::Mismatch { what } = verdict {
            return answers.say(PackageResult::Failed(failure::package_mismatch(&job.uri, &what))).await;
        }
        let stored = self.store.range_reader(location, computed.length());
        let first = stored.len().min(SNIFF_BYTES as u64) as usize;
        let first = stored.read_at(0, first).await?;
        match sniff(&first)? {
            Packaging::Zip => {
                let contents = self.open_zip(job, &source, &stored).await?;
                answers.say(PackageResult::Opened(contents)).await
            }
            Packaging::Tar(_) => self.stream(answers, &source, &stored, settled).await,
        }
    }

    async fn open_zip(
        &self,
        job: &UnpackJob,
        source: &SourceId,
        stored: &Stored,
    ) -> Result<Contents, UnpackError> {
        let directory = Directory::open(stored, &self.config.limits()).await?;
        let (member, manifest) = directory.manifest()?;
        let manifest_member = member.index;
        let data = directory.locate(stored, &member).await?;
        let reader = MemberReader::new(stored.clone(), data, AHEAD).of(member.place()).into_async_read();
        let mut named = Named::new(&directory);
        let take = |entry: Option<u32>, path: &str| named.take(&directory, entry, path);
        let limit = self.config.max_members;
        let now = self.clock.now();
        let mut entries =
            read_manifest(&self.store, &job.uri, reader, limit, job.keeps_earlier(), now, take).await?;
        if manifest.odd.is_some() {
            entries.count_odd_place();
        }
        self.check_total(&directory, &entries, &named)?;
        let unlisted = named.unlisted(&directory, manifest_member);
        let index = self.write_index(job, source, &directory, &entries, &named).await?;
        Ok(Contents {
            entries: entries.len().into(),
            overtaken: entries.overtaken,
            keeps_earlier: job.keeps_earlier(),
            slices: index.map_or(0, |(_, slices)| slices),
            index: index.map(|(index, _)| index),
            unlisted: unlisted.count,
            unlisted_names: unlisted.names,
            manifest: entries.header,
        })
    }

    /// A manifest may list one member many times: the total bytes to inflate for all entries are limited too.
    fn check_total(
        &self,
        directory: &Directory,
        entries: &Entries,
        named: &Named,
    ) -> Result<(), UnpackError> {
        let live = (0..entries.len()).filter(|&number| entries.kind(number).has_member());
        let sizes =
            live.filter_map(|number| named.of_entry(number)).map(|member| directory.member(member).size);
        let bytes = sizes.fold(0_u64, u64::saturating_add);
        let limit = self.config.max_inflated_bytes;
        if bytes > limit { Err(PackageError::TooManyBytes { bytes, limit }.into()) } else { Ok(()) }
    }

    /// Writes the index: each entry that counts, with its result so far.
    async fn write_index(
        &self,
        job: &UnpackJob,
        source: &SourceId,
        directory: &Directory,
        entries: &Entries,
        named: &Named,
    ) -> Result<Option<(PackageId, u32)>, UnpackError> {
        let mut index = Writer::new(&self.store).await?;
        let mut number = 0;
        while let Some(lines) = entries.next(number).await? {
            for line in lines {
                let kind = entries.kind(number);
                let member = named.of_entry(number);
                number += 1;
                let line = match (kind, member) {
                    (Kind::Overtaken, _) => continue,
                    (Kind::NoMember | Kind::Bad, _) | (Kind::Patch, None) => {
                        let outcome = line.without_member();
                        Line { entry: outcome.entry, found: Found::Nothing(Box::new(outcome.result)) }
                    }
                    (Kind::Named | Kind::Earlier, None) => {
                        let failure = failure::no_such_member(&job.uri, &line.entry);
                        Line { entry: line.entry, found: Found::failed(failure) }
                    }
                    (Kind::Named | Kind::Earlier | Kind::Patch, Some(member)) => {
                        let member = directory.member(member);
                        let found = match directory.claim(&member) {
                            Ok(claim) => Found::Member(MemberLocation::new(claim, member.name_bytes)),
                            // The resource is requested, whatever is wrong with its patch.
                            Err(_) if kind == Kind::Patch => Found::Nothing(Box::new(MemberResult::NoMember)),
                            Err(error) => Found::failed(failure::of_member(&job.uri, &line.entry, &error)),
                        };
                        Line { entry: line.entry, found }
                    }
                };
                index.add(&line).await?;
            }
        }
        index.finish(&self.store, source).await
    }
}
