//! The store as the owner of a catalog sees it: what its own parts tell each other is not asked for again.
//!
//! The writer, the merging and the removal of files talk through two series of numbered files, `manifest/` and
//! `compactions/`. Each looks for the next file every second, and asks for the boundary of removal beside it. That is
//! eight requests a second for an open catalog, nearly all of which find nothing: only this process writes these files,
//! until another owner takes the catalog over. So the newest file of each series, and what was not there a moment ago,
//! are remembered here.
//!
//! - A file is never changed, so a remembered one is right.
//! - That there is no later file is believed for [`BELIEVED`]. Another owner's file is then noticed that much later.
//!   It shuts this one out all the same: a write fails if the file that it would create is there. What was believed
//!   is forgotten then, and when an owner fences the log.
//! - A list of the files is believed as long, unless one of them turns out to be removed. The database would ask again
//!   and again for a file that the list names and that is gone.
//! - The boundary is read anew after each write to its series, as the database does to learn whether its write counts.
//! - A closing database writes its last manifest once more. That is left out if it says the same as the one before,
//!   which this process wrote a moment ago.
//!
//! The end of the log is looked for with one request where it takes one (`log`). Small tables are read as a whole
//! ([`SmallTables`]).

mod log;
mod series;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use self::log::Log;
use self::series::{Part, Series};
use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

use crate::small_tables::SmallTables;

/// How long it is believed that there is no later file.
pub(crate) const BELIEVED: Duration = Duration::from_secs(10);

/// The store of one catalog, for its writer and its upkeep.
#[derive(Debug)]
pub(crate) struct OwnerStore {
    inner: Arc<dyn ObjectStore>,
    series: Arc<[Series; 2]>,
    log: Log,
    /// The folder of the tables.
    tables: Path,
    small: Arc<SmallTables>,
    /// Whether the database is being closed.
    ends: AtomicBool,
}

impl OwnerStore {
    /// The store of the catalog at `path`, with the small tables of the process.
    pub(crate) fn of(inner: Arc<dyn ObjectStore>, path: &str, small: Arc<SmallTables>) -> Arc<Self> {
        let series = Arc::new(["manifest", "compactions"].map(|name| Series::of(path, name)));
        let tables = Path::from(format!("{path}/compacted"));
        Arc::new(Self { inner, series, log: Log::of(path), tables, small, ends: AtomicBool::new(false) })
    }

    /// All that the database has is in its files, and it is closed now.
    pub(crate) fn end(&self) {
        self.ends.store(true, Ordering::Release);
    }

    fn part_of(&self, at: &Path) -> Option<(&Series, Part)> {
        self.series.iter().find_map(|series| Some((series, series.part(at)?)))
    }
}

impl fmt::Display for OwnerStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
// No default method is inherited: it would bypass the inner store's own implementation.
#[deny(clippy::missing_trait_methods)]
impl ObjectStore for OwnerStore {
    async fn put_opts(&self, at: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let part = self.part_of(at);
        let bytes = part.map(|_| Bytes::from(payload.clone()));
        if let (Some((series, Part::File(number))), Some(bytes)) = (part, &bytes)
            && self.ends.load(Ordering::Acquire)
            && let Some(put) = series.said_already(number, bytes)
        {
            return Ok(put);
        }
        let table = at.prefix_matches(&self.tables).then(|| payload.clone());
        // An owner begins with an empty file of the log, and then looks whether it still is the owner.
        let is_fence = payload.content_length() == 0 && self.log.has(at);
        let result = self.inner.put_opts(at, payload, options).await;
        if let Ok(put) = &result {
            if let Some(table) = &table {
                self.small.note_put(at, table, put);
            }
            if is_fence {
                self.log.note_fence(at, put);
            }
        }
        if let Some(((series, part), bytes)) = part.zip(bytes) {
            series.note_put(at, part, bytes, &result);
        }
        // A directory refuses attributes, and the database writes again without them.
        let is_refused = matches!(&result, Err(error) if !matches!(error, Error::NotImplemented { .. } | Error::NotSupported { .. }));
        if is_fence || (is_refused && self.log.has(at)) {
            self.series.iter().for_each(Series::doubt);
        }
        result
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        let has_condition = options.version.is_some()
            || options.if_match.is_some()
            || options.if_modified_since.is_some()
            || options.if_unmodified_since.is_some();
        if has_condition {
            return self.inner.get_opts(at, options).await;
        }
        let e_tag = options.if_none_match.clone();
        match (options.range.clone(), self.part_of(at)) {
            (None, None) if options.head && e_tag.is_none() => self.log.look(&*self.inner, at, options).await,
            (Some(GetRange::Bounded(piece)), None)
                if !options.head && e_tag.is_none() && at.prefix_matches(&self.tables) =>
            {
                self.small.read(&*self.inner, at, piece, options).await
            }
            (None, Some((series, part))) if !options.head => {
                let asked = match series.known(at, part, e_tag.as_deref()) {
                    Ok(answer) => return answer,
                    Err(asked) => asked,
                };
                let answer = self.inner.get_opts(at, options).await;
                series.note_get(part, e_tag.as_deref(), &asked, answer).await
            }
            _ => self.inner.get_opts(at, options).await,
        }
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_ranges(&self, at: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(at, ranges).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let is_listed = |series: &Series| prefix.is_some_and(|prefix| series.is_folder(prefix));
        let Some(place) = self.series.iter().position(is_listed) else { return self.inner.list(prefix) };
        // An opening looks three times for the newest file.
        let asked = match self.series[place].listed() {
            Ok(files) => return stream::iter(files.into_iter().map(Ok)).boxed(),
            Err(asked) => asked,
        };
        let all = Arc::clone(&self.series);
        let files = self.inner.list(prefix);
        let listed = async move {
            let files: Vec<ObjectMeta> = files.try_collect().await?;
            all[place].note_list(&asked, &files);
            Ok::<_, object_store::Error>(stream::iter(files.into_iter().map(Ok)))
        };
        stream::once(listed).try_flatten().boxed()
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
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

/// The number of the file at this place, of those with this suffix in this folder.
fn number_of(at: &Path, folder: &Path, suffix: &str) -> Option<u64> {
    let mut below = at.prefix_match(folder)?;
    let number = below.next()?.as_ref().strip_suffix(suffix)?.parse().ok()?;
    below.next().is_none().then_some(number)
}
