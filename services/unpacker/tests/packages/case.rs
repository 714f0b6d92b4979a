//! A store with a package in it, and an unpacker.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, ConsumerSpec, Filter, HandlerResult, MemoryBus};
use bytes::Bytes;
use fixity::{Hasher, Sha256};
use model::{
    Assurance, Bitstream, Contents, Declaration, Failure, JobId, Location, MemberOutcome, MemberResult,
    Method, PackageId, PackageOutcome, PackageResult, RunId, Seq, SourceId, StoredBitstream, SystemClock,
    UnpackJob, UnpackTask,
};
use store::Store;
use unpacker::{Unpacker, UnpackerConfig};

pub const PACKAGE: &str = "http://e.org/dump/1.zip";

pub struct Case {
    pub store: Store,
    pub bus: Arc<MemoryBus>,
    pub source: SourceId,
    pub config: UnpackerConfig,
    /// Names of the outcomes, in the order they were queued.
    pub names: std::sync::Mutex<Vec<String>>,
}

/// An entry of a manifest.
pub fn entry(loc: &str, metadata: &str) -> String {
    format!("<url><loc>http://e.org/{loc}</loc><rs:md {metadata}/></url>\n")
}

/// An entry with the path, length and digest of a content.
pub fn holding(loc: &str, path: &str, content: &[u8]) -> String {
    let sha256 = Sha256::of(content);
    let length = content.len();
    entry(loc, &format!(r#"path="{path}" hash="sha-256:{sha256}" length="{length}""#))
}

pub fn dump(entries: &[String]) -> Vec<u8> {
    manifest(r#"capability="resourcedump-manifest" at="2026-01-01T00:00:00Z""#, entries)
}

pub fn changes(entries: &[String]) -> Vec<u8> {
    manifest(r#"capability="changedump-manifest" from="2026-01-01T00:00:00Z""#, entries)
}

pub fn manifest(metadata: &str, entries: &[String]) -> Vec<u8> {
    let namespaces = r#"xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:rs="http://www.openarchives.org/rs/terms/""#;
    format!("<urlset {namespaces}><rs:md {metadata}/>\n{}</urlset>", entries.concat()).into_bytes()
}

impl Case {
    pub async fn new() -> Self {
        let case = Self {
            store: Store::in_memory(),
            bus: Arc::new(MemoryBus::new(10_000)),
            source: "case".parse().unwrap(),
            config: UnpackerConfig::default(),
            names: Default::default(),
        };
        let filter = Filter::Outcomes(case.source.clone());
        case.bus.open(ConsumerSpec::new(filter, 10_000, Duration::from_secs(60), 2)).await.unwrap();
        case
    }

    /// Stores a package.
    pub async fn put(&self, bytes: impl Into<Bytes>) -> StoredBitstream {
        let bytes = bytes.into();
        let mut spool = self.store.spool(Hasher::new([])).await.unwrap();
        spool.append(bytes.clone()).await.unwrap();
        let package = PackageId::fresh();
        let spooled = spool.finish().await.unwrap();
        let computed = spooled.computed().clone();
        self.store.put_beside_packages(&self.source, package, spooled).await.unwrap();
        let source = self.source.clone();
        let stored_length = bytes.len() as u64;
        StoredBitstream {
            location: Location::Package { source, package, offset: 0, stored_length, method: Method::Stored },
            computed,
            media_type: None,
            encoding: None,
            validators: Default::default(),
            modified: None,
            final_url: None,
        }
    }

    pub fn job(&self, stored: &StoredBitstream, task: UnpackTask) -> UnpackJob {
        UnpackJob {
            id: JobId::fresh(),
            source: self.source.clone(),
            run: RunId::fresh(),
            origin: "http://e.org".parse().unwrap(),
            uri: PACKAGE.parse().unwrap(),
            seq: Seq::new(1),
            declaration: Declaration::default(),
            stored: stored.clone(),
            task,
        }
    }

    pub fn unpacker(&self) -> Unpacker {
        let bus = Arc::clone(&self.bus) as Arc<dyn Bus>;
        Unpacker::new(self.store.clone(), bus, Arc::new(SystemClock), self.config.clone())
    }

    /// Processes a job, and returns its outcomes.
    pub async fn work(&self, job: &UnpackJob) -> (HandlerResult, Vec<PackageResult>) {
        self.work_again(job, 1).await
    }

    /// Processes a job in its `attempt`th delivery.
    pub async fn work_again(&self, job: &UnpackJob, attempt: u32) -> (HandlerResult, Vec<PackageResult>) {
        let unpacker = self.unpacker();
        let mut working = std::pin::pin!(unpacker.work(model::encode(job).into(), attempt));
        let mut said = Vec::new();
        // No further slice is reported before the last outcome was received.
        let work = loop {
            tokio::select! {
                work = &mut working => break work,
                more = self.said(Duration::from_secs(60)) => said.extend(more),
            }
        };
        said.extend(self.said(Duration::ZERO).await);
        (work, said)
    }

    /// The outcomes since the last call, or within `wait`.
    pub async fn said(&self, wait: Duration) -> Vec<PackageResult> {
        let filter = Filter::Outcomes(self.source.clone());
        let mut said = Vec::new();
        for delivery in self.bus.pull(&filter, 1_000, wait).await.unwrap() {
            assert!(delivery.payload.to_bytes().len() < bus::MAX_PAYLOAD);
            let outcome: PackageOutcome = Arc::unwrap_or_clone(delivery.payload.read().unwrap());
            self.names.lock().unwrap().push(delivery.id.to_string());
            said.push(outcome.result);
            delivery.ack().await.unwrap();
        }
        said
    }

    /// The only outcome of a job.
    pub async fn answer(&self, job: &UnpackJob) -> PackageResult {
        let (work, mut said) = self.work(job).await;
        assert_eq!((work, said.len()), (HandlerResult::Done, 1), "{said:?}");
        said.remove(0)
    }

    pub async fn open(&self, package: impl Into<Bytes>) -> PackageResult {
        let stored = self.put(package).await;
        self.answer(&self.job(&stored, UnpackTask::default())).await
    }

    /// Why a package is not read.
    pub async fn refusal(&self, package: impl Into<Bytes>) -> Failure {
        match self.open(package).await {
            PackageResult::Failed(failure) => failure,
            other => panic!("it was opened: {other:?}"),
        }
    }

    /// Opens a ZIP and processes all its slices, the last first.
    pub async fn unpack(&self, package: impl Into<Bytes>) -> Unpacked {
        self.unpack_by(package, UnpackTask::default()).await
    }

    /// The same, opened by this task.
    pub async fn unpack_by(&self, package: impl Into<Bytes>, task: UnpackTask) -> Unpacked {
        let stored = self.put(package).await;
        let opened = self.answer(&self.job(&stored, task)).await;
        let PackageResult::Opened(contents) = opened else { panic!("{opened:?}") };
        let mut slices = BTreeMap::new();
        for number in (0..contents.slices).rev() {
            let task = UnpackTask::Slice { index: contents.index.unwrap(), number };
            match self.answer(&self.job(&stored, task)).await {
                PackageResult::Slice { number: found, items, .. } => {
                    assert_eq!(found, number);
                    slices.insert(number, items);
                }
                other => panic!("{other:?}"),
            }
        }
        let slices: Vec<_> = slices.into_values().collect();
        Unpacked { items: slices.iter().flatten().cloned().collect(), slices, contents }
    }

    /// The stored bytes of a member, compared with their digest once more by the store.
    pub async fn bytes(&self, stored: &StoredBitstream) -> Bytes {
        let bitstream = Bitstream {
            location: stored.location.clone(),
            computed: stored.computed.clone(),
            assurance: Assurance::None,
            media_type: None,
            encoding: None,
            validators: Default::default(),
            final_url: None,
            stored_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        };
        self.store.read_verified(&bitstream).await.unwrap()
    }
}

/// A package that was opened and read.
#[derive(Debug)]
pub struct Unpacked {
    pub contents: Contents,
    pub slices: Vec<Vec<MemberOutcome>>,
    pub items: Vec<MemberOutcome>,
}

impl Unpacked {
    /// Result of an entry.
    pub fn of(&self, loc: &str) -> &MemberResult {
        let loc = format!("http://e.org/{loc}");
        let mut found = self.items.iter().filter(|item| item.entry.loc == loc);
        let one = found.next().unwrap_or_else(|| panic!("nothing is said of {loc}: {:?}", self.items));
        assert!(found.next().is_none(), "{loc} is told twice");
        &one.result
    }

    pub fn taken(&self, loc: &str) -> &StoredBitstream {
        match self.of(loc) {
            MemberResult::Verified { stored, .. } => stored,
            other => panic!("{loc}: {other:?}"),
        }
    }

    pub fn failure(&self, loc: &str) -> &Failure {
        match self.of(loc) {
            MemberResult::Failed(failure) => failure,
            other => panic!("{loc}: {other:?}"),
        }
    }
}
