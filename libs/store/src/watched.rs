//! An object store wrapper that records the store's health.
//!
//! SlateDB retries failed requests for ever, without telling its callers: on a full disk they would wait
//! silently. Every operation, ours and the catalog's, goes through this wrapper, which records failures on a
//! [`StoreHealth`].

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    OBJECT_STORE_COALESCE_DEFAULT, ObjectMeta, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, RenameOptions, Result, UploadPart, coalesce_ranges,
};

use crate::Operation;
use crate::health::StoreHealth;

/// Wraps a store and records how each operation ends.
#[derive(Debug, Clone)]
pub(crate) struct Watched {
    inner: Arc<dyn ObjectStore>,
    root: Arc<str>,
    health: StoreHealth,
}

#[derive(Debug)]
struct WatchedUpload {
    inner: Box<dyn MultipartUpload>,
    at: Arc<str>,
    health: StoreHealth,
}

/// The error of an object that ends before a requested range.
fn ends_early(location: &Path, range: &Range<u64>, received: usize) -> object_store::Error {
    let why =
        format!("{location} ends early: of bytes {} to {} there are {received}", range.start, range.end);
    object_store::Error::Generic { store: "range", source: why.into() }
}

impl Watched {
    /// Watches `inner`, which `root` names in messages.
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, root: Arc<str>, health: StoreHealth) -> Self {
        Self { inner, root, health }
    }

    /// Records a stream as one operation, counted when it began. A failure that ends it is counted as well.
    fn watch<T: Send + 'static>(
        &self,
        operation: Operation,
        at: Option<&Path>,
        stream: BoxStream<'static, Result<T>>,
    ) -> BoxStream<'static, Result<T>> {
        let health = self.health.clone();
        let root = Arc::clone(&self.root);
        let at = at.cloned().unwrap_or_default();
        stream.map(move |item| health.note_piece(operation, || format!("{root}/{at}"), item)).boxed()
    }

    fn listing(
        &self,
        prefix: Option<&Path>,
        stream: BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.health.begun(Operation::List);
        self.watch(Operation::List, prefix, stream)
    }

    fn note<T>(&self, operation: Operation, at: &Path, result: Result<T>) -> Result<T> {
        self.health.note(operation, || format!("{}/{at}", self.root), result)
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
// No default method is inherited: it would bypass the health and the inner store's own implementation.
#[deny(clippy::missing_trait_methods)]
impl ObjectStore for Watched {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let result = self.inner.put_opts(location, payload, opts).await;
        self.note(Operation::Put, location, result)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let result = self.inner.put_multipart_opts(location, opts).await;
        let inner = self.note(Operation::Put, location, result)?;
        let at = format!("{}/{location}", self.root).into();
        Ok(Box::new(WatchedUpload { inner, at, health: self.health.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let result = self.inner.get_opts(location, options).await;
        let result = self.note(Operation::Get, location, result)?;
        let payload = match result.payload {
            GetResultPayload::Stream(stream) => {
                GetResultPayload::Stream(self.watch(Operation::Get, Some(location), stream))
            }
            file @ GetResultPayload::File(..) => file,
        };
        Ok(GetResult { payload, ..result })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        // Not the inner store's method: where an object ends before a range, it returns bytes that were not
        // sent.
        let fetch = |range: Range<u64>| async move {
            let bytes =
                self.note(Operation::Get, location, self.inner.get_range(location, range.clone()).await)?;
            if bytes.len() as u64 == range.end.saturating_sub(range.start) {
                Ok(bytes)
            } else {
                Err(ends_early(location, &range, bytes.len()))
            }
        };
        coalesce_ranges(ranges, fetch, OBJECT_STORE_COALESCE_DEFAULT).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        // Each object is an operation of its own.
        let health = self.health.clone();
        let root = Arc::clone(&self.root);
        let deleted = self.inner.delete_stream(locations);
        deleted.map(move |item| health.note(Operation::Delete, || format!("{root}/"), item)).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listing(prefix, self.inner.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.listing(prefix, self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let result = self.inner.list_with_delimiter(prefix).await;
        let at = || format!("{}/{}", self.root, prefix.cloned().unwrap_or_default());
        self.health.note(Operation::List, at, result)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let result = self.inner.copy_opts(from, to, options).await;
        self.note(Operation::Copy, to, result)
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        let result = self.inner.rename_opts(from, to, options).await;
        self.note(Operation::Copy, to, result)
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl MultipartUpload for WatchedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let part = self.inner.put_part(data);
        let health = self.health.clone();
        let at = Arc::clone(&self.at);
        Box::pin(async move { health.note(Operation::Put, || at.to_string(), part.await) })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let result = self.inner.complete().await;
        self.health.note(Operation::Put, || self.at.to_string(), result)
    }

    async fn abort(&mut self) -> Result<()> {
        // A failed write ends with an abort, so that a successful abort proves nothing.
        self.inner.abort().await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::ObjectStoreExt;
    use object_store::memory::InMemory;

    use crate::backend::Backend;
    use crate::testing::{Faulty, full_disk};
    use crate::{FailureKind, Store, StoreError};

    fn full_store() -> Store {
        let objects = Arc::new(InMemory::new());
        let backend = Backend::unlisted(Arc::clone(&objects) as _);
        let faulty = Arc::new(Faulty::new(objects, full_disk));
        Store::over(faulty, backend, "full", std::env::temp_dir())
    }

    #[tokio::test]
    async fn the_catalogs_failing_writes_show_at_once_and_reads_do_not_hide_them() {
        let store = full_store();
        let mut trouble = store.trouble();
        let objects = store.object_store();
        let path = "catalogs/x/wal/1".into();
        objects.put(&path, "x".into()).await.unwrap_err();
        trouble.changed().await.unwrap();
        assert!(matches!(objects.get(&path).await, Err(object_store::Error::NotFound { .. })));
        let seen = trouble.borrow().clone().unwrap();
        assert_eq!((seen.kind, seen.writing), (FailureKind::Full, true));
        assert!(seen.message.contains("full/catalogs/x/wal/1"), "{}", seen.message);
        assert!(seen.message.contains("free space"), "{}", seen.message);
    }

    #[tokio::test]
    async fn our_own_writes_say_that_the_disk_is_full() {
        let body = bytes::Bytes::from_static(b"x");
        let error = full_store()
            .put_bitstream(crate::NewBitstream::Memory(fixity::Sha256::of(&body), body))
            .await
            .unwrap_err();
        assert!(matches!(error, StoreError::Full { .. }), "{error}");
        assert!(!error.is_retryable());
    }
}
