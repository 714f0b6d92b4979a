//! A store with faults, for this crate's own tests.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

/// Changes the options of a put, or makes it fail.
pub(crate) type PutFault = fn(PutOptions) -> Result<PutOptions>;

/// Makes a read fail, or not.
pub(crate) type GetFault = fn(&GetOptions) -> Result<()>;

/// A store whose puts and reads go through faults.
#[derive(Debug)]
pub(crate) struct Faulty {
    inner: Arc<dyn ObjectStore>,
    fault: PutFault,
    reading: GetFault,
}

impl Faulty {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, fault: PutFault) -> Self {
        Self { inner, fault, reading: |_| Ok(()) }
    }

    pub(crate) fn reading(inner: Arc<dyn ObjectStore>, reading: GetFault) -> Self {
        Self { inner, fault: Ok, reading }
    }
}

/// Like a server that answers every HEAD with a 500.
pub(crate) fn no_heads(options: &GetOptions) -> Result<()> {
    let failed = || Error::Generic { store: "S3", source: "500".into() };
    if options.head { Err(failed()) } else { Ok(()) }
}

/// Like an S3 server that ignores `If-None-Match`.
pub(crate) fn ignore_conditions(options: PutOptions) -> Result<PutOptions> {
    Ok(PutOptions { mode: PutMode::Overwrite, ..options })
}

/// Like a local file system without space.
pub(crate) fn full_disk(_: PutOptions) -> Result<PutOptions> {
    let source = std::io::Error::from_raw_os_error(28);
    Err(Error::Generic { store: "LocalFileSystem", source: source.into() })
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faulty({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(location, payload, (self.fault)(opts)?).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        (self.fault)(PutOptions::default())?;
        self.inner.put_multipart_opts(at, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        (self.reading)(&options)?;
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
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

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}
