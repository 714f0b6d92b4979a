//! Objects in memory whose PUTs wait until a test releases them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartId, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tokio::sync::{Semaphore, watch};

/// The gate before the PUTs: closed, until some are released or refused.
#[derive(Debug)]
pub struct Gate {
    come: watch::Sender<usize>,
    through: Semaphore,
    refused: AtomicUsize,
}

/// Objects in memory behind a [`Gate`]; only PUTs of whole objects wait at it. Each HEAD and GET request is counted.
#[derive(Debug)]
pub struct GatedObjects {
    inner: InMemory,
    gate: Arc<Gate>,
    heads: AtomicUsize,
    gets: AtomicUsize,
}

impl Gate {
    /// Releases the next `puts`: first those that wait, then those that arrive.
    pub fn open(&self, puts: usize) {
        self.through.add_permits(puts);
    }

    /// Makes the next PUT fail, as with an overloaded server.
    pub fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::SeqCst);
        self.through.add_permits(1);
    }

    /// How many PUTs have arrived so far.
    pub fn come(&self) -> usize {
        *self.come.borrow()
    }

    /// Waits until this many PUTs have arrived.
    pub async fn have_come(&self, puts: usize) {
        let mut come = self.come.subscribe();
        // The sender still exists.
        come.wait_for(|come| *come >= puts).await.ok();
    }

    async fn pass(&self) -> Result<()> {
        self.come.send_modify(|come| *come += 1);
        // It is never closed.
        if let Ok(permit) = self.through.acquire().await {
            permit.forget();
        }
        let refused =
            self.refused.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match refused {
            Ok(_) => {
                Err(Error::Generic { store: "gate", source: "Error performing PUT: 503 Slow Down".into() })
            }
            Err(_) => Ok(()),
        }
    }
}

impl GatedObjects {
    /// An empty store, and its closed gate.
    pub fn closed() -> (Arc<Self>, Arc<Gate>) {
        let come = watch::Sender::new(0);
        let refused = AtomicUsize::new(0);
        let gate = Arc::new(Gate { come, through: Semaphore::new(0), refused });
        let (heads, gets) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let objects = Self { inner: InMemory::new(), gate: Arc::clone(&gate), heads, gets };
        (Arc::new(objects), gate)
    }

    /// How many HEAD requests for an object were made.
    pub fn heads(&self) -> usize {
        self.heads.load(Ordering::SeqCst)
    }

    /// How many GET requests for an object, or a part of it, were made.
    pub fn gets(&self) -> usize {
        self.gets.load(Ordering::SeqCst)
    }
}

impl fmt::Display for GatedObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("gated objects")
    }
}

#[async_trait]
impl ObjectStore for GatedObjects {
    async fn put_opts(&self, at: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.gate.pass().await?;
        self.inner.put_opts(at, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        if options.head {
            self.heads.fetch_add(1, Ordering::SeqCst);
            // Others may send the same request before the response.
            tokio::task::yield_now().await;
        } else {
            self.gets.fetch_add(1, Ordering::SeqCst);
        }
        self.inner.get_opts(at, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[async_trait]
impl MultipartStore for GatedObjects {
    async fn create_multipart(&self, at: &Path) -> Result<MultipartId> {
        self.inner.create_multipart(at).await
    }

    async fn put_part(&self, at: &Path, id: &MultipartId, part: usize, data: PutPayload) -> Result<PartId> {
        self.inner.put_part(at, id, part, data).await
    }

    async fn complete_multipart(&self, at: &Path, id: &MultipartId, parts: Vec<PartId>) -> Result<PutResult> {
        self.inner.complete_multipart(at, id, parts).await
    }

    async fn abort_multipart(&self, at: &Path, id: &MultipartId) -> Result<()> {
        self.inner.abort_multipart(at, id).await
    }
}

#[cfg(test)]
mod tests {
    use futures::poll;
    use object_store::ObjectStoreExt;

    use super::*;

    #[tokio::test]
    async fn puts_wait_until_they_are_let_through_or_refused() {
        let (objects, gate) = GatedObjects::closed();
        let path = Path::from("a");
        let mut put = Box::pin(objects.put(&path, "x".into()));
        assert!(poll!(&mut put).is_pending());
        gate.have_come(1).await;
        assert!(objects.head(&path).await.is_err());
        gate.open(1);
        put.await.unwrap();
        assert!(objects.head(&path).await.is_ok());
        gate.refuse();
        assert!(objects.put(&path, "x".into()).await.is_err());
        assert_eq!((gate.come(), objects.heads()), (2, 2));
    }
}
