//! Small files in memory, so that a server does not open the same list for every reader.
//!
//! A file leaves when the place writes it. A place may have other writers: so nothing is trusted for long.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use fixity::Sha256;
use lru::LruCache;
use object_store::ObjectMeta;
use tokio::time::Instant;

/// The largest file that is small, in bytes.
pub(super) const SMALL_BYTES: u64 = 64 * 1024;
/// How many files are in memory: with the largest ones, 16 MiB.
const FILES: NonZeroUsize = NonZeroUsize::new(256).unwrap();
/// How long a file is trusted. What another process writes is seen after that.
const TRUSTED: Duration = Duration::from_secs(1);

/// A small file.
#[derive(Debug, Clone)]
pub(super) struct SmallFile {
    pub(super) meta: ObjectMeta,
    pub(super) bytes: Bytes,
    pub(super) sha256: Sha256,
    /// Whether it never changes.
    pub(super) is_final: bool,
}

/// The small files of one place that were read last. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct SmallFiles(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    files: LruCache<String, (SmallFile, Instant)>,
    /// Files that are being written. One whose writing was abandoned stays here: it may still appear.
    writing: HashSet<String>,
    /// Of the writes so far.
    writes: u64,
}

/// A reading that has begun: what comes of it is kept if nothing was written meanwhile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    writes: u64,
    at: Instant,
}

impl Default for SmallFiles {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State { files: LruCache::new(FILES), writing: HashSet::new(), writes: 0 })))
    }
}

impl SmallFiles {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file, or a reading of it that begins now.
    pub(super) fn get(&self, path: &str) -> Result<SmallFile, Reading> {
        let mut state = self.state();
        let now = Instant::now();
        match state.files.get(path) {
            Some((file, at)) if now.duration_since(*at) < TRUSTED => Ok(file.clone()),
            _ => Err(Reading { writes: state.writes, at: now }),
        }
    }

    /// Keeps what a reading has brought.
    pub(super) fn keep(&self, path: &str, file: &SmallFile, reading: Reading) {
        let mut state = self.state();
        if state.writes == reading.writes && !state.writing.contains(path) {
            state.files.put(path.to_owned(), (file.clone(), reading.at));
        }
    }

    /// A write begins: until [`written`](Self::written), either version may be there.
    pub(super) fn writing(&self, path: &str) {
        let mut state = self.state();
        state.writes += 1;
        state.files.pop(path);
        state.writing.insert(path.to_owned());
    }

    /// The write is over.
    pub(super) fn written(&self, path: &str) {
        let mut state = self.state();
        state.writes += 1;
        state.writing.remove(path);
    }
}

#[cfg(test)]
mod tests {
    use object_store::path::Path as Key;

    use super::*;

    fn file(text: &'static str) -> SmallFile {
        let meta = ObjectMeta {
            location: Key::from("a"),
            last_modified: Default::default(),
            size: text.len() as u64,
            e_tag: None,
            version: None,
        };
        let sha256 = Sha256::of(text.as_bytes());
        SmallFile { meta, bytes: Bytes::from_static(text.as_bytes()), sha256, is_final: false }
    }

    fn held(files: &SmallFiles) -> Option<Bytes> {
        files.get("a").ok().map(|file| file.bytes)
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_is_kept_for_a_second() {
        let files = SmallFiles::default();
        let reading = files.get("a").unwrap_err();
        files.keep("a", &file("old"), reading);
        tokio::time::advance(Duration::from_millis(999)).await;
        assert_eq!(held(&files), Some("old".into()));
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(held(&files), None, "another process may have written it");
    }

    #[tokio::test(start_paused = true)]
    async fn no_reader_gets_what_was_there_before_a_write() {
        let files = SmallFiles::default();
        files.keep("a", &file("old"), files.get("a").unwrap_err());
        let reading = files.get("b").unwrap_err();
        files.writing("a");
        assert_eq!(held(&files), None);
        files.keep("a", &file("old"), reading);
        files.keep("a", &file("old"), files.get("a").unwrap_err());
        assert_eq!(held(&files), None, "either version may have been read");
        let reading = files.get("a").unwrap_err();
        files.written("a");
        files.keep("a", &file("old"), reading);
        assert_eq!(held(&files), None, "it was read before the write was over");
        files.keep("a", &file("new"), files.get("a").unwrap_err());
        assert_eq!(held(&files), Some("new".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_files_that_were_read_last_stay() {
        let files = SmallFiles::default();
        for number in 0..=FILES.get() {
            let path = number.to_string();
            let reading = files.get(&path).unwrap_err();
            files.keep(&path, &file("a file"), reading);
        }
        assert!(files.get("0").is_err() && files.get("1").is_ok());
    }
}
