//! Fills the slices of a package that is read from its beginning, as its members arrive.

use bytes::Bytes;
use fixity::Computed;
use jiff::Timestamp;
use model::{
    Assurance, Failure, Location, ManifestEntry, MemberOutcome, MemberResult, PackageResult, ResourceUri,
    SourceId,
};
use store::{NewBitstream, PackMember, Packer, Spooled, Store};

use crate::error::UnpackError;
use crate::failure;
use crate::judge::{self, Declared};
use crate::unlisted::Unlisted;
use crate::unpacker::Answers;

/// The content of a member, stored once for all the entries that name it.
pub(crate) struct Content {
    /// Its length and digests.
    computed: Computed,
    kept: Kept,
    /// Whether only one entry names it, so that it may go into a pack.
    is_alone: bool,
}

/// Where a content is kept.
enum Kept {
    /// In memory: it is small.
    Bytes(Bytes),
    /// On the disk.
    Spooled(Option<Spooled>),
    /// In the store.
    At(Location),
}

impl Content {
    /// Content in memory.
    pub(crate) fn small(bytes: Bytes, computed: Computed, is_alone: bool) -> Self {
        Self { computed, kept: Kept::Bytes(bytes), is_alone }
    }

    /// Content on the disk.
    pub(crate) fn spooled(spooled: Spooled) -> Self {
        Self { computed: spooled.computed().clone(), kept: Kept::Spooled(Some(spooled)), is_alone: false }
    }

    /// Stores it as an object, on the first call.
    async fn location(&mut self, store: &Store) -> Result<Location, UnpackError> {
        let location = match &mut self.kept {
            Kept::At(location) => return Ok(location.clone()),
            Kept::Bytes(bytes) => {
                store.put_bitstream(NewBitstream::Memory(self.computed.sha256(), bytes.clone())).await?
            }
            Kept::Spooled(spooled) => match spooled.take() {
                Some(spooled) => store.put_bitstream(spooled).await?,
                None => return Err(UnpackError::Ours("a member could not be stored before".to_owned())),
            },
        };
        self.kept = Kept::At(location.clone());
        Ok(location)
    }
}

/// A content in an open pack: its position in the slice, and its outcome without the location.
type Waiting = (usize, ManifestEntry, Computed, Assurance);

/// Number of slices, and how many of the first of them are settled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    pub(crate) slices: u32,
    pub(crate) settled: u32,
}

/// The slice that is being filled, and the later ones.
pub(crate) struct Filling<'a> {
    store: &'a Store,
    source: &'a SourceId,
    now: Timestamp,
    per_slice: u64,
    progress: Progress,
    /// Its number.
    number: u32,
    /// Number of entries in it, including those that were skipped.
    filled: u64,
    items: Vec<Option<MemberOutcome>>,
    packer: Packer<'a, Waiting>,
}

impl<'a> Filling<'a> {
    pub(crate) fn new(
        store: &'a Store,
        source: &'a SourceId,
        now: Timestamp,
        per_slice: u64,
        progress: Progress,
    ) -> Self {
        let packer = Packer::new(store, source, now);
        Self { store, source, now, per_slice, progress, number: 0, filled: 0, items: Vec::new(), packer }
    }

    /// Whether the next `entries` all belong to settled slices.
    pub(crate) fn would_pass_over(&self, entries: u64) -> bool {
        let last = u64::from(self.number) * self.per_slice + self.filled + entries.saturating_sub(1);
        last / self.per_slice < u64::from(self.progress.settled)
    }

    /// Skips entries of settled slices.
    pub(crate) async fn pass_over(
        &mut self,
        answers: &mut Answers<'_>,
        entries: u64,
    ) -> Result<(), UnpackError> {
        for _ in 0..entries {
            self.step(answers).await?;
        }
        Ok(())
    }

    /// Judges a member for an entry that names it, and stores it if it matches the entry's declaration.
    pub(crate) async fn take(
        &mut self,
        answers: &mut Answers<'_>,
        entry: ManifestEntry,
        content: &mut Content,
    ) -> Result<(), UnpackError> {
        if self.is_settled() {
            return self.step(answers).await;
        }
        let assurance = match Declared::by(&entry).judge(&content.computed) {
            Ok(assurance) => assurance,
            Err(what) => {
                let failure = failure::member_mismatch(&answers.job.uri, &entry, &what);
                return self.failed(answers, entry, failure).await;
            }
        };
        match &content.kept {
            Kept::Bytes(bytes) if content.is_alone => {
                self.pack(answers, entry, bytes, content.computed.clone(), assurance).await
            }
            _ => {
                let location = content.location(self.store).await?;
                let result = judge::verified(&entry, content.computed.clone(), assurance, location);
                self.push(answers, MemberOutcome::new(entry, result)).await
            }
        }
    }

    /// Adds an entry whose member is not taken.
    pub(crate) async fn failed(
        &mut self,
        answers: &mut Answers<'_>,
        entry: ManifestEntry,
        failure: Failure,
    ) -> Result<(), UnpackError> {
        self.push(answers, MemberOutcome::new(entry, MemberResult::Failed(failure))).await
    }

    /// Adds the next complete entry.
    pub(crate) async fn push(
        &mut self,
        answers: &mut Answers<'_>,
        item: MemberOutcome,
    ) -> Result<(), UnpackError> {
        if !self.is_settled() {
            self.items.push(Some(item));
        }
        self.step(answers).await
    }

    /// Reports the last slice, and the members without an entry.
    pub(crate) async fn finish(
        &mut self,
        answers: &mut Answers<'_>,
        unlisted: Unlisted,
    ) -> Result<(), UnpackError> {
        self.end_slice(answers, unlisted).await
    }

    fn is_settled(&self) -> bool {
        self.number < self.progress.settled
    }

    async fn pack(
        &mut self,
        answers: &mut Answers<'_>,
        entry: ManifestEntry,
        bytes: &Bytes,
        computed: Computed,
        assurance: Assurance,
    ) -> Result<(), UnpackError> {
        let uri: ResourceUri = match entry.loc.parse() {
            Ok(uri) => uri,
            // Its bytes are never read.
            Err(error) => {
                let result = MemberResult::BadEntry(format!("{error}"));
                return self.push(answers, MemberOutcome::new(entry, result)).await;
            }
        };
        let media_type = entry.metadata.media_type.clone();
        let member = PackMember {
            uri: &uri,
            bytes,
            computed: &computed,
            media_type: media_type.as_deref(),
            last_modified: None,
        };
        let slot = self.items.len();
        self.items.push(None);
        self.packer.add(member, (slot, entry, computed.clone(), assurance)).await?;
        self.step(answers).await
    }

    async fn step(&mut self, answers: &mut Answers<'_>) -> Result<(), UnpackError> {
        self.filled += 1;
        // The last slice is reported only when the package was read to its end.
        let is_last = self.number + 1 >= self.progress.slices;
        if self.filled < self.per_slice || is_last {
            return Ok(());
        }
        self.end_slice(answers, Unlisted::default()).await
    }

    async fn end_slice(&mut self, answers: &mut Answers<'_>, unlisted: Unlisted) -> Result<(), UnpackError> {
        if !self.is_settled() {
            answers.caught_up().await?;
        }
        let next = Packer::new(self.store, self.source, self.now);
        let packer = std::mem::replace(&mut self.packer, next);
        for ((slot, entry, computed, assurance), location) in packer.finish().await? {
            let result = judge::verified(&entry, computed, assurance, location);
            self.items[slot] = Some(MemberOutcome::new(entry, result));
        }
        let items: Vec<_> = std::mem::take(&mut self.items).into_iter().flatten().collect();
        let number = self.number;
        let is_settled = self.is_settled();
        self.number = number + 1;
        self.filled = 0;
        if is_settled {
            return Ok(());
        }
        let Unlisted { count: unlisted, names: unlisted_names } = unlisted;
        answers.say_part(number, PackageResult::Slice { number, items, unlisted, unlisted_names }).await
    }
}
