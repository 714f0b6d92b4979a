//! One package: a ZIP with stored members, and its manifest. It is written on a thread of its own, and no
//! document lists it until it is complete.

use std::io::{BufReader, BufWriter, ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use fixity::{Computed, Hasher};
use fs_err::File;
use jiff::Timestamp;
use model::{Bitstream, Links, ResourceRecord, ResourceUri};
use resourcesync::{Capability, Entry, Header, Link, Metadata, Root, WriteError, Writer};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use url::Url;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::hash_of;
use crate::checkpoint::Closed;

/// Chunks that may wait for the thread.
const CHUNKS_AHEAD: usize = 8;

/// A package in progress.
#[derive(Debug)]
pub(super) struct PackageWriter {
    steps: mpsc::Sender<Step>,
    thread: JoinHandle<anyhow::Result<Closed>>,
    /// The number of its resources.
    pub(super) entries: u64,
    /// The bytes of its resources.
    pub(super) bytes: u64,
}

#[derive(Debug)]
enum Step {
    Begin(Box<Entry>),
    Bytes(Bytes),
    GiveUp,
    End,
    Close,
}

/// The manifest's entry of a stored resource.
fn entry_of(uri: &ResourceUri, record: &ResourceRecord, bitstream: &Bitstream) -> Entry {
    Entry {
        lastmod: record.declaration.lastmod.map(Into::into),
        metadata: Metadata {
            hash: Some(hash_of(&bitstream.computed)),
            length: Some(bitstream.computed.length()),
            media_type: bitstream.media_type.clone().or_else(|| record.declaration.media_type.clone()),
            encoding: bitstream.encoding.clone(),
            ..Metadata::default()
        },
        links: record.listing.links.as_ref().map(Links::to_vec).unwrap_or_default(),
        ..Entry::new(uri.as_str())
    }
}

impl PackageWriter {
    /// Begins the `number`th package in a directory; it is in `aside` until it is complete. `up` is the
    /// Capability List that the manifest belongs to.
    pub(super) fn create(
        directory: &Path,
        aside: &Path,
        number: usize,
        at: Timestamp,
        up: Url,
    ) -> anyhow::Result<Self> {
        let (steps, received) = mpsc::channel(CHUNKS_AHEAD);
        let name = format!("package-{:05}.zip", number + 1);
        let mut archive = Archive::create(aside, &name, at, up)?;
        let path = directory.join(&name);
        let thread = tokio::task::spawn_blocking(move || {
            if !archive.work(received)? {
                anyhow::bail!("the package {name} was left where it was");
            }
            archive.close(&path, name)
        });
        Ok(Self { steps, thread, entries: 0, bytes: 0 })
    }

    /// Begins the member of a stored resource.
    pub(super) async fn begin(
        &mut self,
        uri: &ResourceUri,
        record: &ResourceRecord,
        bitstream: &Bitstream,
    ) -> anyhow::Result<()> {
        self.send(Step::Begin(Box::new(entry_of(uri, record, bitstream)))).await
    }

    /// The next bytes of the member.
    pub(super) async fn write(&mut self, bytes: Bytes) -> anyhow::Result<()> {
        self.bytes += bytes.len() as u64;
        self.send(Step::Bytes(bytes)).await
    }

    /// Removes the member in progress from the package.
    pub(super) async fn give_up(&mut self) -> anyhow::Result<()> {
        self.send(Step::GiveUp).await
    }

    /// Completes the member.
    pub(super) async fn end(&mut self) -> anyhow::Result<()> {
        self.entries += 1;
        self.send(Step::End).await
    }

    /// Adds the manifest, and renames the package to its final name.
    pub(super) async fn close(mut self) -> anyhow::Result<Closed> {
        self.send(Step::Close).await?;
        self.thread.await?
    }

    async fn send(&mut self, step: Step) -> anyhow::Result<()> {
        if self.steps.send(step).await.is_ok() {
            return Ok(());
        }
        // The thread ended early, with an error.
        match (&mut self.thread).await? {
            Ok(_) => anyhow::bail!("the package was closed too early"),
            Err(error) => Err(error),
        }
    }
}

/// The archive and its manifest, as files that are not published yet.
struct Archive {
    zip: ZipWriter<BufWriter<File>>,
    partial: PathBuf,
    manifest: Writer<BufWriter<std::fs::File>>,
    members: u64,
    open: Option<Box<Entry>>,
}

impl Archive {
    fn create(aside: &Path, name: &str, at: Timestamp, up: Url) -> anyhow::Result<Self> {
        let partial = aside.join(name);
        // Left over by an interrupted export.
        match fs_err::remove_file(&partial) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let header = Header {
            at: Some(at.into()),
            links: vec![Link::new("up", up)],
            ..Header::new(Root::UrlSet, Some(Capability::ResourceDumpManifest))
        };
        // On the disk of the packages, where there is room.
        let spool = tempfile::tempfile_in(aside)?;
        Ok(Self {
            zip: ZipWriter::new(BufWriter::new(File::create_new(&partial)?)),
            partial,
            manifest: Writer::new(BufWriter::new(spool), &header)?,
            members: 0,
            open: None,
        })
    }

    /// Returns whether the package is to be closed. It is not when the writer has stopped.
    fn work(&mut self, mut steps: mpsc::Receiver<Step>) -> anyhow::Result<bool> {
        while let Some(step) = steps.blocking_recv() {
            match step {
                Step::Begin(mut entry) => {
                    self.members += 1;
                    let name = format!("resources/{:05}", self.members);
                    entry.metadata.path = Some(format!("/{name}"));
                    let large = entry.metadata.length.is_some_and(|length| length > u64::from(u32::MAX));
                    self.zip.start_file(name, stored().large_file(large))?;
                    self.open = Some(entry);
                }
                Step::Bytes(bytes) => self.zip.write_all(&bytes)?,
                Step::GiveUp => {
                    self.zip.abort_file()?;
                    self.open = None;
                }
                Step::End => {
                    if let Some(entry) = self.open.take() {
                        self.describe(*entry)?;
                    }
                }
                Step::Close => return Ok(true),
            }
        }
        Ok(false)
    }

    fn describe(&mut self, mut entry: Entry) -> anyhow::Result<()> {
        let mut written = self.manifest.write(&entry);
        if matches!(written, Err(WriteError::NotText { .. })) {
            // The URI as requested has no control characters.
            entry.loc = entry.loc.parse::<ResourceUri>()?.to_url().into();
            entry.metadata.media_type = None;
            written = self.manifest.write(&entry);
        }
        Ok(written?)
    }

    fn close(self, path: &Path, name: String) -> anyhow::Result<Closed> {
        let Self { mut zip, partial, manifest, .. } = self;
        let mut manifest = manifest.finish()?.into_inner()?;
        manifest.rewind()?;
        zip.start_file("manifest.xml", stored().large_file(true))?;
        std::io::copy(&mut BufReader::new(manifest), &mut zip)?;
        let file = zip.finish()?.into_inner()?;
        file.sync_all()?;
        let computed = computed_of(&partial)?;
        fs_err::rename(&partial, path)?;
        Ok(Closed { name, computed })
    }
}

/// Uncompressed and with a constant date, so that equal members give equal packages.
fn stored() -> SimpleFileOptions {
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644)
}

/// Reads the archive once more: its directory was overwritten several times, so digests could not be computed
/// on the way.
fn computed_of(path: &Path) -> anyhow::Result<Computed> {
    let mut hasher = Hasher::new([]);
    let mut file = File::open(path)?;
    let mut piece = vec![0; 256 * 1024];
    loop {
        match std::io::Read::read(&mut file, &mut piece)? {
            0 => return Ok(hasher.finish()),
            length => hasher.update(&piece[..length]),
        }
    }
}
