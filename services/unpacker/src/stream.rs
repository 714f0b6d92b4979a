//! A package that can only be read from its beginning: once for its manifest, which is usually at its start, and once
//! for its members. Each slice is reported as it fills, the last one at the end, together with other findings about
//! the package.

use std::collections::BTreeSet;

use bytes::{Bytes, BytesMut};
use fixity::{Algorithm, Computed, Hasher};
use model::{Contents, PackageResult, SourceId, UnpackJob};
use packages::tar::{self, Item};
use packages::{ManifestFinder, range_reader};
use store::Spooled;

use crate::collect::read_manifest;
use crate::entries::{Entries, Kind, Line};
use crate::error::UnpackError;
use crate::failure;
use crate::fill::{Content, Filling, Progress};
use crate::index::{SLICE_ENTRIES, outcome_bytes};
use crate::judge::Declared;
use crate::paths::{Naming, Paths, refused_name};
use crate::source::{AHEAD, Stored};
use crate::unlisted::Unlisted;
use crate::unpacker::{Answers, Unpacker};

const TOP: &[u8] = b"manifest.xml";

impl Unpacker {
    /// Unpacks a tar. Slices before `settled` are skipped.
    ///
    /// If another unpacker had begun the job, its progress is unknown here: its outcomes may be settled by now. The
    /// owner of the Source knows, and sends a new job.
    pub(crate) async fn stream(
        &self,
        answers: &mut Answers<'_>,
        source: &SourceId,
        stored: &Stored,
        settled: u32,
    ) -> Result<(), UnpackError> {
        if answers.is_begun_already() {
            return answers.say_interrupted(settled).await;
        }
        let (entries, paths, manifest) = self.tar_manifest(answers, stored).await?;
        let paths = paths.sorted();
        // As many as fit into one message, whichever they will be: the number of slices must be known now.
        let most = u64::from(u32::MAX).min(bus::MAX_PAYLOAD as u64 * 3 / 4 / outcome_bytes(entries.longest));
        let per_slice = most.clamp(1, SLICE_ENTRIES as u64);
        let slices = u32::try_from(entries.live().div_ceil(per_slice)).unwrap_or(u32::MAX);
        let mut contents = Contents {
            manifest: entries.header.clone(),
            entries: entries.len().into(),
            overtaken: entries.overtaken,
            keeps_earlier: answers.job.keeps_earlier(),
            slices,
            index: None,
            unlisted: 0,
            unlisted_names: Vec::new(),
        };
        if slices > 0 {
            answers.say(PackageResult::Opened(contents.clone())).await?;
            if settled >= slices {
                return Ok(());
            }
        }
        let progress = Progress { slices, settled };
        let mut filling = Filling::new(&self.store, source, self.clock.now(), per_slice, progress);
        let mut done = vec![false; entries.len() as usize];
        let mut unlisted = Unlisted::default();
        let mut tar = self.tar(stored).await?;
        while let Some(item) = tar.next().await? {
            answers.go_on()?;
            let (name, refusal) = match &item {
                Item::Member(member) => (member.name().into_owned(), None),
                Item::Refused(error) => (refused_name(error).unwrap_or_default().to_owned(), Some(error)),
            };
            let Naming { entries: mut naming, is_named_otherwise } = paths.naming(&name, &entries);
            naming.retain(|&entry| !std::mem::replace(&mut done[entry as usize], true));
            if naming.is_empty() {
                let is_manifest = matches!(&item, Item::Member(member) if member.index == manifest);
                if !is_manifest && !is_named_otherwise {
                    unlisted.see(&name);
                }
                continue;
            }
            if filling.would_pass_over(naming.len() as u64) {
                filling.pass_over(answers, naming.len() as u64).await?;
                continue;
            }
            match (refusal, &item) {
                (Some(error), _) => {
                    for entry in naming {
                        let Line { entry, .. } = entries.get(entry).await?;
                        let failure = failure::of_member(&answers.job.uri, &entry, error);
                        filling.failed(answers, entry, failure).await?;
                    }
                }
                (None, Item::Member(member)) => {
                    self.member_of_tar(answers, &mut filling, &entries, naming, &mut tar, member).await?;
                }
                (None, Item::Refused(_)) => {}
            }
        }
        if slices == 0 {
            // No slice could report them.
            contents.unlisted = unlisted.count;
            contents.unlisted_names = unlisted.names;
            return answers.say(PackageResult::Opened(contents)).await;
        }
        self.rest(answers, &mut filling, &entries, &done).await?;
        filling.finish(answers, unlisted).await
    }

    async fn tar(&self, stored: &Stored) -> Result<tar::Entries<'static>, UnpackError> {
        let reader = range_reader(stored.clone(), 0..stored.len(), AHEAD);
        Ok(tar::Entries::open(reader, &self.config.limits()).await?)
    }

    /// Reads the manifest, and returns which member it is.
    async fn tar_manifest(
        &self,
        answers: &Answers<'_>,
        stored: &Stored,
    ) -> Result<(Entries, Paths, u64), UnpackError> {
        let job = answers.job;
        let mut tar = self.tar(stored).await?;
        let mut finder = ManifestFinder::default();
        while let Some(item) = tar.next().await? {
            answers.go_on()?;
            let Item::Member(member) = item else { continue };
            if member.name_bytes == TOP {
                let (entries, paths) = self.read_manifest(job, &mut tar).await?;
                return Ok((entries, paths, member.index));
            }
            finder.see_at(member.index, &member.name());
        }
        // It is further on, which is known only after reading the whole package.
        let manifest = finder.finish()?;
        let mut tar = self.tar(stored).await?;
        while let Some(item) = tar.next().await? {
            if matches!(&item, Item::Member(member) if member.index == manifest.index) {
                let (mut entries, paths) = self.read_manifest(job, &mut tar).await?;
                entries.count_odd_place();
                return Ok((entries, paths, manifest.index));
            }
        }
        Err(UnpackError::Ours("a tar's manifest was seen, and not found again".to_owned()))
    }

    async fn read_manifest(
        &self,
        job: &UnpackJob,
        tar: &mut tar::Entries<'static>,
    ) -> Result<(Entries, Paths), UnpackError> {
        let mut paths = Paths::default();
        let take = |entry: Option<u32>, path: &str| paths.take(entry, path);
        let limit = self.config.max_members;
        let now = self.clock.now();
        let entries =
            read_manifest(&self.store, &job.uri, tar.reader(), limit, job.keeps_earlier(), now, take).await?;
        Ok((entries, paths))
    }

    /// Judges a member for each entry that names it. There may be many of these entries: one is in memory at a time.
    async fn member_of_tar(
        &self,
        answers: &mut Answers<'_>,
        filling: &mut Filling<'_>,
        entries: &Entries,
        naming: Vec<u32>,
        tar: &mut tar::Entries<'static>,
        member: &tar::Member,
    ) -> Result<(), UnpackError> {
        let mut algorithms: BTreeSet<Algorithm> = BTreeSet::new();
        let mut first = None;
        for &entry in &naming {
            let line = entries.get(entry).await?;
            algorithms.extend(Declared::by(&line.entry).algorithms());
            first.get_or_insert(line);
        }
        let hasher = Hasher::new(algorithms);
        let is_small =
            self.config.pack_threshold_bytes > 0 && member.size <= self.config.pack_threshold_bytes as u64;
        let mut content = if is_small {
            let (bytes, computed) = self.small(tar, member, hasher).await?;
            Content::small(bytes, computed, naming.len() == 1)
        } else {
            Content::spooled(self.large(tar, hasher).await?)
        };
        for entry in naming {
            let line = match first.take() {
                Some(first) => first,
                None => entries.get(entry).await?,
            };
            filling.take(answers, line.entry, &mut content).await?;
        }
        Ok(())
    }

    async fn small(
        &self,
        tar: &mut tar::Entries<'static>,
        member: &tar::Member,
        mut hasher: Hasher,
    ) -> Result<(Bytes, Computed), UnpackError> {
        let mut bytes = BytesMut::with_capacity(member.size as usize);
        while let Some(chunk) = tar.chunk().await? {
            hasher.update(&chunk);
            bytes.extend_from_slice(&chunk);
        }
        self.metrics.bytes.inc_by(bytes.len() as u64);
        Ok((bytes.freeze(), hasher.finish()))
    }

    async fn large(&self, tar: &mut tar::Entries<'static>, hasher: Hasher) -> Result<Spooled, UnpackError> {
        let mut spool = self.store.spool(hasher).await?;
        while let Some(chunk) = tar.chunk().await? {
            self.metrics.bytes.inc_by(chunk.len() as u64);
            spool.append(chunk).await?;
        }
        Ok(spool.finish().await?)
    }

    /// Entries whose member was not found, and those without a member.
    async fn rest(
        &self,
        answers: &mut Answers<'_>,
        filling: &mut Filling<'_>,
        entries: &Entries,
        done: &[bool],
    ) -> Result<(), UnpackError> {
        let mut number = 0;
        while let Some(lines) = entries.next(number).await? {
            for line in lines {
                let kind = entries.kind(number);
                let is_done = done[number as usize];
                number += 1;
                match kind {
                    Kind::Overtaken => {}
                    Kind::Named | Kind::Earlier if is_done => {}
                    Kind::Named | Kind::Earlier => {
                        let failure = failure::no_such_member(&answers.job.uri, &line.entry);
                        filling.failed(answers, line.entry, failure).await?;
                    }
                    Kind::NoMember | Kind::Bad | Kind::Patch => {
                        filling.push(answers, line.without_member()).await?
                    }
                }
            }
        }
        Ok(())
    }
}
