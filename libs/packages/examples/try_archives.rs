//! Reads the given archives, and prints the result of each: members read and refused, or why the whole is
//! refused.
//!
//! ```sh
//! cargo run --release -p packages --example try_archives -- FILE…
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use packages::tar::{Entries, Item};
use packages::zip::Directory;
use packages::{
    Blocks, Limits, PackageError, Packaging, ReadAhead, ReadAt, SNIFF_BYTES, Scope, range_reader, sniff,
};

/// A file read by ranges. A service would not read it on a thread of the runtime; this example has no other
/// tasks.
struct FileAt {
    file: File,
    length: u64,
}

#[async_trait]
impl ReadAt for FileAt {
    fn len(&self) -> u64 {
        self.length
    }

    async fn read_at(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes.into())
    }
}

#[derive(Default)]
struct Outcome {
    archives: u64,
    read: u64,
    bytes: u64,
    refused: BTreeMap<&'static str, u64>,
}

impl Outcome {
    fn refuse(&mut self, error: &PackageError) {
        *self.refused.entry(error.name()).or_default() += 1;
    }

    fn add(&mut self, other: &Self) {
        self.archives += 1;
        self.read += other.read;
        self.bytes += other.bytes;
        for (name, count) in &other.refused {
            *self.refused.entry(name).or_default() += count;
        }
    }
}

async fn read_zip(source: Arc<FileAt>, outcome: &mut Outcome) -> Result<(), PackageError> {
    let directory = Directory::open(&source, &Limits::default()).await?;
    let blocks = Blocks::new(source, 4 << 20);
    for member in directory.slice(0..directory.len()) {
        let (_, mut reader) = match directory.read(&blocks, &member, ReadAhead::default()).await {
            Ok(opened) => opened,
            Err(PackageError::Folder { .. }) => continue,
            Err(error) if error.scope() == Scope::Member => {
                outcome.refuse(&error);
                continue;
            }
            Err(error) => return Err(error),
        };
        loop {
            match reader.chunk().await {
                Ok(Some(chunk)) => outcome.bytes += chunk.len() as u64,
                Ok(None) => break outcome.read += 1,
                Err(error) if error.scope() == Scope::Member => break outcome.refuse(&error),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

async fn read_tar(source: Arc<FileAt>, outcome: &mut Outcome) -> Result<(), PackageError> {
    let length = source.len();
    let stream = range_reader(source, 0..length, ReadAhead::default());
    let mut entries = Entries::open(stream, &Limits::default()).await?;
    while let Some(item) = entries.next().await? {
        match item {
            Item::Member(_) => {
                while let Some(chunk) = entries.chunk().await? {
                    outcome.bytes += chunk.len() as u64;
                }
                outcome.read += 1;
            }
            Item::Refused(error) => outcome.refuse(&error),
        }
    }
    Ok(())
}

async fn read(path: &str, outcome: &mut Outcome) -> Result<Packaging, PackageError> {
    let file = File::open(path).and_then(|file| Ok(FileAt { length: file.metadata()?.len(), file }));
    let source = Arc::new(file.map_err(PackageError::from_io)?);
    let length = source.len().min(SNIFF_BYTES as u64) as usize;
    let first = source.read_at(0, length).await.map_err(PackageError::from_io)?;
    let packaging = match (sniff(&first), path.ends_with(".zip")) {
        // A ZIP behind a program is recognized by its end.
        (Err(PackageError::NotAnArchive { .. }), true) => Packaging::Zip,
        (sniffed, _) => sniffed?,
    };
    match packaging {
        Packaging::Zip => read_zip(source, outcome).await?,
        Packaging::Tar(_) => read_tar(source, outcome).await?,
    }
    Ok(packaging)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut totals: BTreeMap<String, Outcome> = BTreeMap::new();
    for path in std::env::args().skip(1) {
        let mut outcome = Outcome::default();
        let begun = Instant::now();
        let result = read(&path, &mut outcome).await;
        let ms = begun.elapsed().as_secs_f64() * 1000.0;
        let Outcome { read, bytes, refused, .. } = &outcome;
        let kind = match &result {
            Ok(packaging) => packaging.to_string(),
            Err(error) => format!("refused: {}", error.name()),
        };
        writeln!(out, "{kind:<24} {read:>7} read {bytes:>12} bytes {ms:>9.1} ms  {refused:?} {path}")?;
        if let Err(error) = &result {
            writeln!(out, "    {error}")?;
        }
        totals.entry(kind).or_default().add(&outcome);
    }
    for (kind, Outcome { archives, read, bytes, refused }) in totals {
        writeln!(
            out,
            "= {kind}: {archives} archives, {read} members read, {bytes} bytes, refused {refused:?}"
        )?;
    }
    Ok(())
}
