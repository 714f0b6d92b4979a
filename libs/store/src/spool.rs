//! Spool files: temporary files of large bodies until they are complete.

use std::io::{Seek, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use fixity::{Computed, Hasher};
use tempfile::NamedTempFile;

use crate::error::AtFile;
use crate::files::blocking;
use crate::temporary::{self, Readers};
use crate::{Store, StoreError};

/// Bytes that are collected before a thread hashes and writes them.
const BATCH_BYTES: usize = 256 * 1024;

/// A body that is being received. Its digests are computed as it is written, so the bytes pass once.
///
/// It survives a broken transfer: [`Spool::len`] is the offset of the next request. Dropped, it leaves
/// nothing behind.
#[derive(Debug)]
pub struct Spool {
    // None while a thread uses it, and for good when the wait for that thread was cancelled.
    file: Option<SpoolFile>,
    path: PathBuf,
    waiting: Vec<Bytes>,
    waiting_bytes: usize,
    length: u64,
}

/// A complete body on the disk, with its digests; [`Store::put_bitstream`] makes it an object.
#[derive(Debug)]
pub struct Spooled {
    pub(crate) file: NamedTempFile,
    pub(crate) computed: Computed,
}

#[derive(Debug)]
struct SpoolFile {
    file: NamedTempFile,
    hasher: Hasher,
}

impl Store {
    /// Creates a spool file whose bytes are hashed by `hasher`.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub async fn spool(&self, hasher: Hasher) -> Result<Spool, StoreError> {
        let directory = self.spool_directory().to_owned();
        let readers = if self.on_disk().is_some() { Readers::Everyone } else { Readers::Owner };
        let file = blocking("create a spool file", move || temporary::create_in(&directory, readers)).await?;
        let path = file.path().to_owned();
        let file = Some(SpoolFile { file, hasher });
        Ok(Spool { file, path, waiting: Vec::new(), waiting_bytes: 0, length: 0 })
    }
}

impl Spool {
    /// Appends the next piece.
    ///
    /// # Errors
    /// When the disk fails. The spool cannot be used after that, nor after a cancelled call.
    pub async fn append(&mut self, piece: Bytes) -> Result<(), StoreError> {
        self.length += piece.len() as u64;
        self.waiting_bytes += piece.len();
        self.waiting.push(piece);
        if self.waiting_bytes >= BATCH_BYTES { self.flush().await } else { Ok(()) }
    }

    /// How many bytes were received.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether nothing was received yet.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Discards the received bytes: the server sent another version, or does not resume.
    ///
    /// # Errors
    /// When the file cannot be emptied.
    pub async fn restart(&mut self, hasher: Hasher) -> Result<(), StoreError> {
        self.waiting.clear();
        self.waiting_bytes = 0;
        self.length = 0;
        self.with_file(move |spool, path| {
            spool.hasher = hasher;
            let file = spool.file.as_file_mut();
            file.set_len(0).and_then(|()| file.rewind()).at_file("empty spool file", path)
        })
        .await
    }

    /// Ends the spool: the body is complete.
    ///
    /// # Errors
    /// When the disk does not take the rest.
    pub async fn finish(mut self) -> Result<Spooled, StoreError> {
        self.flush().await?;
        self.with_file(|spool, path| spool.file.as_file_mut().rewind().at_file("read spool file", path))
            .await?;
        let SpoolFile { file, hasher } = self.file.take().ok_or_else(|| interrupted(&self.path))?;
        Ok(Spooled { file, computed: hasher.finish() })
    }

    async fn flush(&mut self) -> Result<(), StoreError> {
        let pieces = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        if pieces.is_empty() {
            return Ok(());
        }
        self.with_file(move |spool, path| {
            for piece in &pieces {
                spool.hasher.update(piece);
                spool.file.as_file_mut().write_all(piece).at_file("write spool file", path)?;
            }
            Ok(())
        })
        .await
    }

    async fn with_file(
        &mut self,
        work: impl FnOnce(&mut SpoolFile, &Path) -> Result<(), StoreError> + Send + 'static,
    ) -> Result<(), StoreError> {
        let path = self.path.clone();
        let mut file = self.file.take().ok_or_else(|| interrupted(&path))?;
        let file = blocking("write a spool file", move || work(&mut file, &path).map(|()| file)).await?;
        self.file = Some(file);
        Ok(())
    }
}

impl Spooled {
    /// Reads a range into memory: the caller bounds its length.
    ///
    /// # Errors
    /// When the disk fails, or there are fewer bytes.
    pub async fn read_range(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        let path = self.file.path().to_owned();
        let file = self.file.as_file().try_clone();
        blocking("read a spool file", move || {
            let mut bytes =
                vec![0; usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX)];
            // A positional read: the file's own position stays where it is.
            file.and_then(|file| file.read_exact_at(&mut bytes, range.start))
                .at_file("read spool file", &path)?;
            Ok(bytes.into())
        })
        .await
    }

    /// Its length and digests.
    pub fn computed(&self) -> &Computed {
        &self.computed
    }
}

/// Total bytes in a spool directory: the bodies being received by all processes that share it. A missing
/// directory counts as empty.
pub fn spooled_bytes(directory: &Path) -> u64 {
    temporary::of_ours(directory).map(|(_, about)| about.len()).sum()
}

fn interrupted(path: &Path) -> StoreError {
    let source =
        std::io::Error::other("an earlier write failed or was cancelled; begin with a new spool file");
    StoreError::Io { action: "write spool file", path: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use fs_err as fs;

    use super::*;

    #[tokio::test]
    async fn bytes_are_hashed_as_they_are_written() {
        let mut spool = Store::in_memory().spool(Hasher::new([])).await.unwrap();
        let mut whole = Vec::new();
        for n in 0..100_u8 {
            let piece = vec![n; 10_007];
            whole.extend_from_slice(&piece);
            spool.append(piece.into()).await.unwrap();
        }
        assert_eq!(spool.len(), whole.len() as u64);
        let spooled = spool.finish().await.unwrap();
        assert_eq!(*spooled.computed(), Computed::of(&whole));
        assert_eq!(fs::read(spooled.file.path()).unwrap(), whole);
    }

    #[tokio::test]
    async fn a_restarted_spool_holds_only_what_came_after() {
        let mut spool = Store::in_memory().spool(Hasher::new([])).await.unwrap();
        spool.append(vec![1; BATCH_BYTES + 1].into()).await.unwrap();
        spool.append(vec![2; 5].into()).await.unwrap();
        spool.restart(Hasher::new([])).await.unwrap();
        assert!(spool.is_empty());
        spool.append(Bytes::from_static(b"new")).await.unwrap();
        let spooled = spool.finish().await.unwrap();
        assert_eq!(*spooled.computed(), Computed::of(b"new"));
        assert_eq!(fs::read(spooled.file.path()).unwrap(), b"new");
    }

    #[tokio::test]
    async fn ranges_of_a_spooled_body_are_read_and_it_can_be_stored_after_that() {
        let store = Store::in_memory();
        let mut spool = store.spool(Hasher::new([])).await.unwrap();
        spool.append(Bytes::from_static(b"0123456789")).await.unwrap();
        let spooled = spool.finish().await.unwrap();
        assert_eq!(spooled.read_range(7..10).await.unwrap(), "789");
        assert_eq!(spooled.read_range(2..4).await.unwrap(), "23");
        assert!(spooled.read_range(8..11).await.is_err());
        let location = store.put_bitstream(spooled).await.unwrap();
        assert_eq!(store.read_range(&location, 0..10).await.unwrap(), "0123456789");
    }

    #[tokio::test]
    async fn what_is_spooled_is_told_until_it_is_gone() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("of somebody else"), "12345").unwrap();
        let objects = std::sync::Arc::new(object_store::memory::InMemory::new());
        let store = Store::over_objects(objects, "memory", directory.path().to_owned());
        let mut spool = store.spool(Hasher::new([])).await.unwrap();
        spool.append(Bytes::from(vec![7; 3 * BATCH_BYTES])).await.unwrap();
        assert_eq!(spooled_bytes(store.spool_directory()), 3 * BATCH_BYTES as u64);
        drop(spool);
        assert_eq!(spooled_bytes(store.spool_directory()), 0);
        assert_eq!(spooled_bytes(&directory.path().join("absent")), 0);
    }

    #[tokio::test]
    async fn a_dropped_spool_leaves_nothing_behind() {
        let spool = Store::in_memory().spool(Hasher::new([])).await.unwrap();
        let path = spool.path.clone();
        assert!(path.exists());
        drop(spool);
        assert!(!path.exists());
    }
}
