//! Object storage in memory, which survives every process. Each process accesses it through its effects.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use jiff::Timestamp;
use model::Clock;
use object_store::memory::InMemory;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartId, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use crate::clock::SimClock;
use crate::effects::{Begun, Effects};

/// The objects, and when each was stored by the simulation's clock.
#[derive(Debug)]
pub(crate) struct Objects {
    inner: InMemory,
    clock: Arc<SimClock>,
    times: Mutex<HashMap<Path, Timestamp>>,
}

/// The objects, behind the effects of one process.
#[derive(Debug, Clone)]
pub(crate) struct SimObjects {
    objects: Arc<Objects>,
    effects: Arc<Effects>,
}

impl Objects {
    /// An empty store.
    pub(crate) fn new(clock: Arc<SimClock>) -> Self {
        Self { inner: InMemory::new(), clock, times: Mutex::default() }
    }

    fn stored(&self, path: &Path) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.insert(path.clone(), self.clock.now());
    }

    /// Replaces the time of an object by the simulation's.
    fn told(&self, mut meta: ObjectMeta) -> ObjectMeta {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(time) = times.get(&meta.location) {
            meta.last_modified = SystemTime::from(*time).into();
        }
        meta
    }
}

impl SimObjects {
    /// The objects behind the effects of a process.
    pub(crate) fn new(objects: Arc<Objects>, effects: Arc<Effects>) -> Self {
        Self { objects, effects }
    }

    /// Starts a change; it may fail before anything is changed.
    async fn begin(&self, what: &str, path: &Path) -> Result<Begun> {
        let begun = self.effects.begin(format!("{what} {path}")).await;
        // The catalog's database retries by itself, and its own tests make it fail.
        let fails = !is_catalog(path) && begun.is_one_of(self.effects.rates.store_fails, 5);
        if fails { Err(unavailable()) } else { Ok(begun) }
    }

    /// Ends a change; it may be made, and reported as failed.
    async fn end<T>(&self, begun: Begun, path: &Path, result: Result<T>) -> Result<T> {
        self.effects.end(begun).await;
        let fails = !is_catalog(path) && begun.is_one_of(self.effects.rates.store_fails, 6);
        if fails && result.is_ok() { Err(unavailable()) } else { result }
    }
}

fn is_catalog(path: &Path) -> bool {
    path.as_ref().starts_with("catalogs/")
}

fn unavailable() -> Error {
    Error::Generic { store: "simulation", source: "Error performing PUT: 503 Slow Down".into() }
}

impl fmt::Display for SimObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("simulated objects")
    }
}

#[async_trait]
impl ObjectStore for SimObjects {
    async fn put_opts(&self, at: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let begun = self.begin("put", at).await?;
        let result = self.objects.inner.put_opts(at, payload, options).await;
        if result.is_ok() {
            self.objects.stored(at);
        }
        self.end(begun, at, result).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.effects.alive().await;
        let upload = self.objects.inner.put_multipart_opts(at, options).await?;
        Ok(Box::new(SimUpload { upload, of: self.clone(), at: at.clone() }))
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.effects.alive().await;
        let mut result = self.objects.inner.get_opts(at, options).await?;
        result.meta = self.objects.told(result.meta);
        Ok(result)
    }

    async fn get_ranges(&self, at: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.effects.alive().await;
        self.objects.inner.get_ranges(at, ranges).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let of = self.clone();
        let deleted = paths.then(move |path| {
            let of = of.clone();
            async move {
                let path = path?;
                let begun = of.begin("delete", &path).await?;
                let one = futures::stream::iter([Ok(path.clone())]).boxed();
                let mut result = of.objects.inner.delete_stream(one);
                let result = result.next().await.unwrap_or(Ok(path.clone()));
                of.end(begun, &path, result).await
            }
        });
        deleted.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let of = self.clone();
        let listed = self.objects.inner.list(prefix);
        listed
            .then(move |meta| {
                let of = of.clone();
                async move {
                    of.effects.alive().await;
                    meta.map(|meta| of.objects.told(meta))
                }
            })
            .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.effects.alive().await;
        let mut result = self.objects.inner.list_with_delimiter(prefix).await?;
        result.objects = result.objects.into_iter().map(|meta| self.objects.told(meta)).collect();
        Ok(result)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let begun = self.begin("copy to", to).await?;
        let result = self.objects.inner.copy_opts(from, to, options).await;
        if result.is_ok() {
            self.objects.stored(to);
        }
        self.end(begun, to, result).await
    }
}

/// An upload, each part of which is an effect.
#[derive(Debug)]
struct SimUpload {
    upload: Box<dyn MultipartUpload>,
    of: SimObjects,
    at: Path,
}

#[async_trait]
impl MultipartUpload for SimUpload {
    fn put_part(&mut self, data: PutPayload) -> object_store::UploadPart {
        let part = self.upload.put_part(data);
        let of = self.of.clone();
        let at = self.at.clone();
        Box::pin(async move {
            let begun = of.begin("put a part of", &at).await?;
            let result = part.await;
            of.end(begun, &at, result).await
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let begun = self.of.begin("complete", &self.at).await?;
        let result = self.upload.complete().await;
        if result.is_ok() {
            self.of.objects.stored(&self.at);
        }
        self.of.end(begun, &self.at, result).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.of.effects.alive().await;
        self.upload.abort().await
    }
}

#[async_trait]
impl MultipartStore for SimObjects {
    async fn create_multipart(&self, at: &Path) -> Result<MultipartId> {
        self.create_multipart_opts(at, PutMultipartOptions::default()).await
    }

    async fn create_multipart_opts(&self, at: &Path, options: PutMultipartOptions) -> Result<MultipartId> {
        let begun = self.begin("begin an upload of", at).await?;
        let result = self.objects.inner.create_multipart_opts(at, options).await;
        self.end(begun, at, result).await
    }

    async fn put_part(&self, at: &Path, id: &MultipartId, part: usize, data: PutPayload) -> Result<PartId> {
        let begun = self.begin("put a part of", at).await?;
        let result = self.objects.inner.put_part(at, id, part, data).await;
        self.end(begun, at, result).await
    }

    async fn complete_multipart(&self, at: &Path, id: &MultipartId, parts: Vec<PartId>) -> Result<PutResult> {
        let begun = self.begin("complete", at).await?;
        let result = self.objects.inner.complete_multipart(at, id, parts).await;
        if result.is_ok() {
            self.objects.stored(at);
        }
        self.end(begun, at, result).await
    }

    async fn abort_multipart(&self, at: &Path, id: &MultipartId) -> Result<()> {
        let begun = self.begin("abort", at).await?;
        let result = self.objects.inner.abort_multipart(at, id).await;
        self.end(begun, at, result).await
    }
}
