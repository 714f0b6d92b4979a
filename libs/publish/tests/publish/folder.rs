//! A directory of files that change, and publications of it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fixity::Sha256;
use jiff::Timestamp;
use model::SourceId;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use publish::files::{FileRecords, Scanned};
use publish::{Place, Policy, Publication, PublishError, Published, Seen};
use store::SourceMarker;
use tempfile::TempDir;

use crate::world::{BASE, publication};

pub(crate) struct Folder {
    folder: TempDir,
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) publication: Publication,
    pub(crate) files: FileRecords,
    /// Seconds since the begin.
    clock: u64,
}

impl Folder {
    pub(crate) fn new(policy: Policy) -> Self {
        Self::at(Arc::new(InMemory::new()), policy)
    }

    pub(crate) fn at(objects: Arc<dyn ObjectStore>, policy: Policy) -> Self {
        let folder = TempDir::with_prefix("files-").unwrap();
        let place = Place::bucket("memory", Arc::clone(&objects));
        let url = format!("{BASE}files/");
        let files = FileRecords::new(folder.path(), &url.parse().unwrap(), &place).unwrap();
        let source = SourceMarker::new("files".parse::<SourceId>().unwrap(), url);
        let publication = publication(place, source, policy);
        Self { folder, objects, publication, files, clock: 0 }
    }

    /// With this many files.
    pub(crate) fn with(files: usize, policy: Policy) -> Self {
        let mut folder = Self::new(policy);
        for number in 0..files {
            folder.put(&format!("{}/{number:03}.txt", number % 3), &format!("body {number}"));
        }
        folder
    }

    pub(crate) fn passes(&mut self, hours: u64) {
        self.clock += hours * 3_600;
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn url(path: &str) -> String {
        format!("{BASE}files/{path}")
    }

    fn now(&self) -> Timestamp {
        let begin: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        begin.checked_add(Duration::from_secs(self.clock)).unwrap()
    }

    /// Writes a file, long ago for the clock of the file system, so that its time tells later writes from this one.
    pub(crate) fn put(&mut self, path: &str, body: &str) {
        self.clock += 1;
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, body).unwrap();
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + self.clock);
        File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    }

    pub(crate) fn remove(&mut self, path: &str) {
        self.clock += 1;
        fs::remove_file(self.path(path)).unwrap();
    }

    pub(crate) async fn publish(&mut self) -> (Published, Scanned) {
        self.try_publish().await.unwrap()
    }

    pub(crate) async fn try_publish(&mut self) -> Result<(Published, Scanned), PublishError> {
        self.clock += 1;
        let mut scanned = None;
        let mut see = |seen: Seen<'_>| {
            if let Seen::Scanned(found) = seen {
                scanned = Some(found.clone());
            }
        };
        let done = self.publication.run(&self.files, self.now(), &mut see).await?;
        Ok((done, scanned.expect("a scan")))
    }

    /// The digest of each file, by its URL. Names need no escape here.
    pub(crate) fn there(&self) -> BTreeMap<String, String> {
        let mut there = BTreeMap::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(self.folder.path()).unwrap().to_str().unwrap();
                    there.insert(Self::url(name), Sha256::of(&fs::read(&path).unwrap()).to_string());
                }
            }
        }
        there
    }
}
