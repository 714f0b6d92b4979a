//! Packages of dumps, received part by part, so that whoever goes on with a broken one begins behind the last part.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use fixity::{Algorithm, Computed, Hasher, Sha256};
use jiff::Timestamp;
use model::{Location, Method, PackageId, Seq, SourceId, StoredBitstream, Validators};
use object_store::{ObjectStoreExt, PutMode, UpdateVersion};
use serde::{Deserialize, Serialize};

use crate::parts::PartsOf;
use crate::spool::blocking;
use crate::upload_lock::UploadLock;
use crate::upload_note::{Found, Note, Rest, Tail};
use crate::{Key, Store, StoreError};

/// The smallest part. S3 takes no smaller one than 5 MiB, and a crash costs one part at most.
const PART_BYTES: u64 = 8 * 1024 * 1024;
/// S3 takes at most 10,000 parts.
const MOST_PARTS: u64 = 9_000;

/// What the server says of a package that is being received.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PackageHead {
    /// Its length in bytes, if it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// The version.
    #[serde(default, skip_serializing_if = "Validators::is_empty")]
    pub validators: Validators,
    /// The media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// When it was last modified, as far as that is believed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<Timestamp>,
    /// The URL the bytes come from, where redirects lead elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
}

/// A package that is being received. After each part a note in the store says how far it is, so whoever opens the same upload
/// again goes on behind it, in another process too. Dropped, it costs what came since that part; [`keep`](Self::keep) loses nothing.
///
/// Two workers on one upload do no harm: one of them ends with [`StoreError::Busy`], and what is complete is never overwritten,
/// since each beginning has a name of its own.
#[derive(Debug)]
pub struct PackageUpload {
    store: Store,
    about: About,
    algorithms: Vec<Algorithm>,
    waiting: BytesMut,
    received: u64,
    stage: Stage,
    lock: Option<Arc<UploadLock>>,
}

/// What stays the same until it begins anew.
#[derive(Debug, Clone)]
struct About {
    note: Key,
    tail: Key,
    source: SourceId,
    package: PackageId,
    head: PackageHead,
    part_bytes: u64,
}

#[derive(Debug)]
enum Stage {
    /// More is to come.
    Receiving(Box<Kept>),
    /// All has come.
    Whole { computed: Computed, kept: Box<Kept> },
    /// A part failed, or a call was cancelled.
    Failed,
}

/// What the note says, and the digests of the parts.
#[derive(Debug)]
struct Kept {
    hasher: Hasher,
    upload: Option<String>,
    parts: Vec<String>,
    note: Option<UpdateVersion>,
    has_tail: bool,
}

impl Store {
    /// The upload of the package of plan `seq`, where it stopped, or a new one. The digests of `algorithms` are computed
    /// as the bytes pass. `largest` is the most that will be taken: it decides how large the parts are.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another worker is at it; else what the store says.
    pub async fn package_upload(
        &self,
        source: &SourceId,
        seq: Seq,
        algorithms: &[Algorithm],
        largest: u64,
    ) -> Result<PackageUpload, StoreError> {
        let note = Key::Upload { source: source.clone(), seq };
        let lock = self.lock_upload(source, seq, &note).await?;
        let found = self.read_note(&note).await?;
        let about = About {
            note,
            tail: Key::UploadTail { source: source.clone(), seq },
            source: source.clone(),
            package: PackageId::fresh(),
            head: PackageHead::default(),
            part_bytes: part_bytes(largest),
        };
        let mut upload = PackageUpload {
            store: self.clone(),
            about,
            algorithms: algorithms.to_vec(),
            waiting: BytesMut::new(),
            received: 0,
            stage: Stage::Failed,
            lock,
        };
        upload.resume(found).await?;
        Ok(upload)
    }

    /// Forgets the upload of plan `seq`: its note, and what is not complete of it. A complete package stays. For whoever has
    /// settled what came of it, or does not want it any more.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another worker is at it; else what the store says.
    pub async fn forget_upload(&self, source: &SourceId, seq: Seq) -> Result<(), StoreError> {
        let note = Key::Upload { source: source.clone(), seq };
        let lock = self.lock_upload(source, seq, &note).await?;
        if let Some(Found { note: Some(Note { package, upload: Some(upload), .. }), .. }) =
            self.read_note(&note).await?
        {
            self.abort_parts(&Key::Package { source: source.clone(), package }, &upload).await?;
        }
        self.remove(&Key::UploadTail { source: source.clone(), seq }).await?;
        self.remove(&note).await?;
        if let Some(lock) = lock {
            lock.remove();
        }
        Ok(())
    }

    async fn lock_upload(
        &self,
        source: &SourceId,
        seq: Seq,
        note: &Key,
    ) -> Result<Option<Arc<UploadLock>>, StoreError> {
        let Some(local) = self.on_disk() else { return Ok(None) };
        let path = object_store::path::Path::from(format!("uploads/{source}/{}.lock", seq.get()));
        let path = local.objects.path_to_filesystem(&path);
        let path = path.map_err(|e| StoreError::of_object(self.root(), note, e))?;
        match blocking("lock an upload", move || UploadLock::take(&path)).await? {
            Some(lock) => Ok(Some(Arc::new(lock))),
            None => Err(StoreError::Busy { key: note.to_string() }),
        }
    }
}

/// Bytes of a part of a package of at most `largest` bytes. An upload holds one part in memory.
pub fn part_bytes(largest: u64) -> u64 {
    PART_BYTES.max(largest.div_ceil(MOST_PARTS))
}

impl PackageUpload {
    /// How many bytes came; the next one wanted is the one behind them.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// What the server said of what came.
    pub fn head(&self) -> &PackageHead {
        &self.about.head
    }

    /// Whether all has come already, and [`finish`](Self::finish) is all that is left.
    pub fn is_whole(&self) -> bool {
        matches!(self.stage, Stage::Whole { .. })
    }

    /// Begins anew, under another name: nothing came yet, or the server has another version now.
    ///
    /// # Errors
    /// What the store says.
    pub async fn begin(&mut self, head: PackageHead) -> Result<(), StoreError> {
        let old = self.take()?;
        if let Some(upload) = &old.upload {
            self.abort(upload).await;
        }
        (self.about.package, self.about.head) = (PackageId::fresh(), head);
        self.waiting.clear();
        self.received = 0;
        // The old note stands until the new one takes its place.
        self.stage =
            Stage::Receiving(Box::new(Kept { note: old.note, has_tail: old.has_tail, ..self.fresh() }));
        Ok(())
    }

    /// Takes the next piece. As soon as a part is whole, it is hashed, stored and noted, before this returns.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another worker has gone on with this upload; else what the store says. Nothing more can be done with it then,
    /// nor after a call that was cancelled: open it again.
    pub async fn append(&mut self, mut piece: Bytes) -> Result<(), StoreError> {
        let part = usize::try_from(self.about.part_bytes).unwrap_or(usize::MAX);
        self.received += piece.len() as u64;
        while self.waiting.len() + piece.len() >= part {
            self.waiting.extend_from_slice(&piece.split_to(part - self.waiting.len()));
            let kept = self.take()?;
            let bytes = std::mem::replace(&mut self.waiting, BytesMut::with_capacity(part)).freeze();
            let kept = self.put_part(kept, bytes).await?;
            self.stage = Stage::Receiving(self.note_part(kept).await?);
        }
        self.waiting.extend_from_slice(&piece);
        Ok(())
    }

    /// Puts away what came, to the last byte, and gives how much that is: the next worker goes on behind it.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub async fn keep(mut self) -> Result<u64, StoreError> {
        let kept = self.take()?;
        if !self.waiting.is_empty() {
            let bytes = std::mem::take(&mut self.waiting).freeze();
            let tail = Tail { length: bytes.len() as u64, sha256: Sha256::of(&bytes) };
            self.store.put(&self.about.tail, bytes.into(), PutMode::Overwrite).await?;
            let rest = Rest::Bytes { hasher: kept.hasher.save(), tail: Some(tail) };
            let note = self.about.note(&kept, rest);
            self.store.write_note(&self.about.note, &note, kept.note.as_ref()).await?;
        } else if kept.parts.is_empty() && kept.note.is_none() {
            self.unlock();
        }
        Ok(self.received)
    }

    /// All has come: makes it a package. The note stays until [`Store::forget_upload`], so that a job that is worked twice finds
    /// the package instead of fetching it again.
    ///
    /// # Errors
    /// As [`append`](Self::append); [`StoreError::Busy`] also when the parts are gone from the store, since the upload begins anew then.
    pub async fn finish(mut self) -> Result<StoredBitstream, StoreError> {
        if !self.is_whole() {
            let kept = self.take()?;
            if kept.parts.is_empty() {
                return self.finish_small(kept).await;
            }
            let rest = std::mem::take(&mut self.waiting).freeze();
            let mut kept = match rest.is_empty() {
                true => kept,
                false => self.put_part(kept, rest).await?,
            };
            let computed = kept.computed();
            let note = self.about.note(&kept, Rest::Nothing { computed: computed.clone() });
            kept.note = Some(self.store.write_note(&self.about.note, &note, kept.note.as_ref()).await?);
            self.stage = Stage::Whole { computed, kept };
        }
        let Stage::Whole { computed, kept } = std::mem::replace(&mut self.stage, Stage::Failed) else {
            return Err(StoreError::Busy { key: self.about.note.to_string() });
        };
        let stored = self.about.stored(self.about.package, computed);
        if !self.store.exists(&stored.location, stored.computed.length()).await? {
            self.complete(&kept, &stored).await?;
        }
        if kept.has_tail {
            self.store.remove(&self.about.tail).await?;
        }
        Ok(stored)
    }

    /// Nothing more is wanted of it: forgets it, and what came.
    ///
    /// # Errors
    /// What the store says.
    pub async fn abandon(mut self) -> Result<(), StoreError> {
        let kept = self.take()?;
        if let Some(upload) = &kept.upload {
            self.abort(upload).await;
        }
        if kept.has_tail {
            self.store.remove(&self.about.tail).await?;
        }
        if kept.note.is_some() {
            self.store.remove(&self.about.note).await?;
        }
        self.unlock();
        Ok(())
    }

    /// One PUT for what is no more than a part, under a name that nobody else has.
    async fn finish_small(&mut self, mut kept: Box<Kept>) -> Result<StoredBitstream, StoreError> {
        let bytes = std::mem::take(&mut self.waiting).freeze();
        kept.hash(bytes.clone()).await?;
        let computed = kept.computed();
        let stored = self.about.stored(PackageId::fresh(), computed.clone());
        self.store.put(&Key::of(&stored.location), bytes.into(), PutMode::Create).await?;
        let Location::Package { package, .. } = stored.location else { return Ok(stored) };
        match &kept.note {
            Some(found) => {
                self.about.package = package;
                let note = self.about.note(&kept, Rest::Nothing { computed });
                self.store.write_note(&self.about.note, &note, Some(found)).await?;
                if kept.has_tail {
                    self.store.remove(&self.about.tail).await?;
                }
            }
            None => self.unlock(),
        }
        Ok(stored)
    }

    async fn complete(&self, kept: &Kept, stored: &StoredBitstream) -> Result<(), StoreError> {
        let length = stored.computed.length();
        let of = self.about.parts_of(kept.upload.clone().unwrap_or_default());
        let Err(error) = self.store.complete_parts(&of, kept.parts.clone(), length).await else {
            return Ok(());
        };
        // An attempt before this one may have arrived, and only its answer was lost.
        if self.store.exists(&stored.location, length).await.unwrap_or(false) {
            return Ok(());
        }
        Err(self.gone(kept.note.as_ref(), error).await)
    }

    /// Goes on where a note says that somebody stopped, if it says so.
    async fn resume(&mut self, found: Option<Found>) -> Result<(), StoreError> {
        let mut kept = self.fresh();
        let Some(found) = found else {
            self.stage = Stage::Receiving(Box::new(kept));
            return Ok(());
        };
        kept.note = Some(found.version);
        if let Some(note) = found.note {
            // What is taken over is whole or nothing.
            match note.rest {
                Rest::Nothing { computed } if self.algorithms.iter().all(|a| computed.get(*a).is_some()) => {
                    (kept.upload, kept.parts) = (note.upload, note.parts);
                    self.received = computed.length();
                    self.about = About {
                        package: note.package,
                        head: note.head,
                        part_bytes: note.part_bytes,
                        ..self.about.clone()
                    };
                    self.stage = Stage::Whole { computed, kept: Box::new(kept) };
                    return Ok(());
                }
                Rest::Bytes { hasher, tail } => {
                    if let Some(hasher) = Hasher::restore(self.algorithms.iter().copied(), &hasher) {
                        self.received = hasher.length();
                        self.about = About {
                            package: note.package,
                            head: note.head,
                            part_bytes: note.part_bytes,
                            ..self.about.clone()
                        };
                        kept = Kept {
                            hasher,
                            upload: note.upload,
                            parts: note.parts,
                            has_tail: tail.is_some(),
                            ..kept
                        };
                        if let Some(tail) = tail {
                            self.take_tail(tail).await?;
                        }
                    } else if let Some(upload) = &note.upload {
                        self.about.package = note.package;
                        self.abort(upload).await;
                        self.about.package = PackageId::fresh();
                    }
                }
                Rest::Nothing { .. } => {}
            }
        }
        self.stage = Stage::Receiving(Box::new(kept));
        Ok(())
    }

    /// The bytes behind the last part, if they are still those that the note speaks of.
    async fn take_tail(&mut self, tail: Tail) -> Result<(), StoreError> {
        let failed = |e| StoreError::of_object(self.store.root(), &self.about.tail, e);
        let bytes = match self.store.objects().get(&self.about.tail.path()).await {
            Ok(result) if result.meta.size == tail.length && tail.length < self.about.part_bytes => {
                result.bytes().await.map_err(failed)?
            }
            Ok(_) | Err(object_store::Error::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        if Sha256::of(&bytes) == tail.sha256 {
            self.received += tail.length;
            self.waiting.extend_from_slice(&bytes);
        }
        Ok(())
    }

    fn take(&mut self) -> Result<Box<Kept>, StoreError> {
        match std::mem::replace(&mut self.stage, Stage::Failed) {
            Stage::Receiving(kept) | Stage::Whole { kept, .. } => Ok(kept),
            // It stands in the note how far it is, and the next attempt reads it.
            Stage::Failed => Err(StoreError::Busy { key: self.about.note.to_string() }),
        }
    }

    /// Hashes a part and stores it.
    async fn put_part(&self, mut kept: Box<Kept>, bytes: Bytes) -> Result<Box<Kept>, StoreError> {
        kept.hash(bytes.clone()).await?;
        let upload = match &kept.upload {
            Some(upload) => upload.clone(),
            None => kept.upload.insert(self.store.begin_parts(&self.about.key()).await?).clone(),
        };
        let of = self.about.parts_of(upload);
        match self.store.put_part(&of, kept.parts.len(), bytes, self.lock.clone()).await {
            Ok(part) => {
                kept.parts.push(part);
                Ok(kept)
            }
            Err(error) => Err(self.gone(kept.note.as_ref(), error).await),
        }
    }

    /// Notes a part that was stored.
    async fn note_part(&self, mut kept: Box<Kept>) -> Result<Box<Kept>, StoreError> {
        let note = self.about.note(&kept, Rest::Bytes { hasher: kept.hasher.save(), tail: None });
        match self.store.write_note(&self.about.note, &note, kept.note.as_ref()).await {
            Ok(version) => {
                kept.note = Some(version);
                Ok(kept)
            }
            Err(error) => {
                // Nobody else knows of an upload that was never noted.
                if let ([_], Some(upload)) = (&kept.parts[..], &kept.upload) {
                    self.abort(upload).await;
                }
                Err(error)
            }
        }
    }

    /// What to say of an upload that failed. One whose parts the store has no more begins anew: its note goes, unless somebody else
    /// has written it meanwhile.
    async fn gone(&self, found: Option<&UpdateVersion>, error: StoreError) -> StoreError {
        if !matches!(error, StoreError::NotFound { .. }) {
            return error;
        }
        let Self { store, about: About { note, .. }, .. } = self;
        match store.read_note(note).await {
            Ok(Some(now)) if store.on_disk().is_some() || Some(&now.version) == found => {
                tracing::warn!(key = %note, "the parts of an unfinished upload are gone; it begins anew");
                if let Err(error) = store.remove(note).await {
                    return error;
                }
            }
            Ok(_) => {}
            Err(error) => return error,
        }
        StoreError::Busy { key: note.to_string() }
    }

    fn fresh(&self) -> Kept {
        let hasher = Hasher::new(self.algorithms.iter().copied());
        Kept { hasher, upload: None, parts: Vec::new(), note: None, has_tail: false }
    }

    /// Gives the parts up that are of no use any more. What stays behind is the bucket's lifecycle rule's.
    async fn abort(&self, upload: &str) {
        let key = self.about.key();
        if let Err(error) = self.store.abort_parts(&key, upload).await {
            tracing::debug!(%key, %error, "an upload that is given up stays behind");
        }
    }

    fn unlock(&self) {
        if let Some(lock) = &self.lock {
            lock.remove();
        }
    }
}

impl Kept {
    async fn hash(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        let mut hasher = std::mem::replace(&mut self.hasher, Hasher::new([]));
        let hash = move || {
            hasher.update(&bytes);
            Ok(hasher)
        };
        self.hasher = blocking("hash a part", hash).await?;
        Ok(())
    }

    fn computed(&mut self) -> Computed {
        std::mem::replace(&mut self.hasher, Hasher::new([])).finish()
    }
}

impl About {
    fn key(&self) -> Key {
        Key::Package { source: self.source.clone(), package: self.package }
    }

    fn parts_of(&self, upload: String) -> PartsOf {
        PartsOf { key: self.key(), upload, part_bytes: self.part_bytes }
    }

    fn note(&self, kept: &Kept, rest: Rest) -> Note {
        let (upload, parts) = (kept.upload.clone(), kept.parts.clone());
        Note::new(self.package, self.head.clone(), upload, self.part_bytes, parts, rest)
    }

    fn stored(&self, package: PackageId, computed: Computed) -> StoredBitstream {
        let PackageHead { validators, media_type, modified, final_url, .. } = self.head.clone();
        let (source, stored_length) = (self.source.clone(), computed.length());
        let location =
            Location::Package { source, package, offset: 0, stored_length, method: Method::Stored };
        StoredBitstream { location, computed, media_type, validators, modified, final_url }
    }
}
