//! The slices of a package that is read from its beginning, filled as its members come.

use bytes::Bytes;
use fixity::Computed;
use jiff::Timestamp;
use model::{
    Assurance, Failure, ManifestEntry, MemberOutcome, MemberResult, PackageResult, ResourceUri, SourceId,
};
use store::{PackMember, Packer, Spooled, Store};

use crate::entries::Line;
use crate::failure;
use crate::judge::{self, Declared};
use crate::trouble::Trouble;
use crate::unpacker::Answers;

/// The content of a member.
pub(crate) enum Body {
    /// Small enough to travel with others.
    Small {
        /// The bytes.
        bytes: Bytes,
        /// Their length and digests.
        computed: Computed,
    },
    /// On the disk.
    Large(Spooled),
}

/// What waits in an open pack: its place in the slice, and what is said of it when its location is known.
type Waiting = (usize, ManifestEntry, Computed, Assurance);

/// A slice that is being filled, and those that will be.
pub(crate) struct Filling<'a> {
    store: &'a Store,
    source: &'a SourceId,
    now: Timestamp,
    per_slice: u64,
    settled: u32,
    /// Which slice it is.
    number: u32,
    /// Entries that are in it, also those that were passed over.
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
        settled: u32,
    ) -> Self {
        let packer = Packer::new(store, source, now);
        Self { store, source, now, per_slice, settled, number: 0, filled: 0, items: Vec::new(), packer }
    }

    /// Whether the next `entries` all belong to slices that are settled.
    pub(crate) fn would_pass_over(&self, entries: u64) -> bool {
        let last = u64::from(self.number) * self.per_slice + self.filled + entries.saturating_sub(1);
        last / self.per_slice < u64::from(self.settled)
    }

    /// Passes over entries of settled slices.
    pub(crate) async fn pass_over(&mut self, answers: &mut Answers<'_>, entries: u64) -> Result<(), Trouble> {
        for _ in 0..entries {
            self.step(answers).await?;
        }
        Ok(())
    }

    /// Judges a member for each entry that names it, and stores it if it is what one of them declares.
    pub(crate) async fn take(
        &mut self,
        answers: &mut Answers<'_>,
        lines: Vec<Line>,
        body: Body,
    ) -> Result<(), Trouble> {
        let computed = match &body {
            Body::Small { computed, .. } => computed.clone(),
            Body::Large(spooled) => spooled.computed().clone(),
        };
        let verdict = |line: &Line| Declared::by(&line.entry).judge(&computed);
        let verdicts: Vec<_> = lines.iter().map(verdict).collect();
        let is_wanted = verdicts.iter().any(Result::is_ok);
        let (small, location) = match body {
            Body::Small { bytes, .. } => (Some(bytes), None),
            Body::Large(spooled) if is_wanted => (None, Some(self.store.put_bitstream(spooled).await?)),
            Body::Large(_) => (None, None),
        };
        for (Line { entry, .. }, verdict) in lines.into_iter().zip(verdicts) {
            match (verdict, &small, &location) {
                (Err(what), _, _) => {
                    let failure = failure::member_mismatch(&answers.job.uri, &entry, &what);
                    self.failed(answers, entry, failure).await?;
                }
                (Ok(assurance), _, Some(location)) => {
                    let result = judge::verified(&entry, computed.clone(), assurance, location.clone());
                    self.push(answers, MemberOutcome { entry, result }).await?;
                }
                (Ok(assurance), Some(bytes), None) => {
                    self.pack(answers, entry, bytes, computed.clone(), assurance).await?;
                }
                (Ok(_), None, None) => {}
            }
        }
        Ok(())
    }

    /// An entry whose member is not taken.
    pub(crate) async fn failed(
        &mut self,
        answers: &mut Answers<'_>,
        entry: ManifestEntry,
        failure: Failure,
    ) -> Result<(), Trouble> {
        self.push(answers, MemberOutcome { entry, result: MemberResult::Failed(failure) }).await
    }

    /// The next entry of which all is known.
    pub(crate) async fn push(
        &mut self,
        answers: &mut Answers<'_>,
        item: MemberOutcome,
    ) -> Result<(), Trouble> {
        if self.number >= self.settled {
            self.items.push(Some(item));
        }
        self.step(answers).await
    }

    /// Says what the last slice came to.
    pub(crate) async fn finish(&mut self, answers: &mut Answers<'_>) -> Result<(), Trouble> {
        if self.filled > 0 { self.end_slice(answers).await } else { Ok(()) }
    }

    async fn pack(
        &mut self,
        answers: &mut Answers<'_>,
        entry: ManifestEntry,
        bytes: &Bytes,
        computed: Computed,
        assurance: Assurance,
    ) -> Result<(), Trouble> {
        let uri: ResourceUri = match entry.loc.parse() {
            Ok(uri) => uri,
            // Nobody will ever look for it.
            Err(error) => {
                let result = MemberResult::BadEntry(format!("{error}"));
                return self.push(answers, MemberOutcome { entry, result }).await;
            }
        };
        if self.number >= self.settled {
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
        }
        self.step(answers).await
    }

    async fn step(&mut self, answers: &mut Answers<'_>) -> Result<(), Trouble> {
        self.filled += 1;
        if self.filled >= self.per_slice { self.end_slice(answers).await } else { Ok(()) }
    }

    async fn end_slice(&mut self, answers: &mut Answers<'_>) -> Result<(), Trouble> {
        let next = Packer::new(self.store, self.source, self.now);
        let packer = std::mem::replace(&mut self.packer, next);
        for ((slot, entry, computed, assurance), location) in packer.finish().await? {
            let result = judge::verified(&entry, computed, assurance, location);
            self.items[slot] = Some(MemberOutcome { entry, result });
        }
        let items: Vec<_> = std::mem::take(&mut self.items).into_iter().flatten().collect();
        let number = self.number;
        (self.number, self.filled) = (number + 1, 0);
        if number < self.settled {
            return Ok(());
        }
        answers.say_part(number, PackageResult::Slice { number, items }).await
    }
}
