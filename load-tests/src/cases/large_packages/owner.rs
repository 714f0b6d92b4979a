//! A minimal owner of a package: it has the package opened, sends jobs for all its slices at once, and counts
//! the outcomes. So the unpackers are measured without a scheduler's time for settling.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bus::{Bus as _, ConsumerSpec, Filter, JetStreamBus, JetStreamConfig, Queue};
use fixity::Hasher;
use model::{
    Contents, Declaration, JobId, Location, Method, PackageId, PackageOutcome, PackageResult, RunId, Seq,
    SourceId, StoredBitstream, UnpackJob, UnpackTask, Validators,
};
use secrets::Vars;
use store::{Store, StoreOptions, StoreTarget};

/// The longest time until a package is opened, or an outcome arrives.
const PATIENCE: Duration = Duration::from_secs(300);
/// The most unacknowledged outcomes at this process: enough that no unpacker waits for it.
const OUTCOMES: usize = 64;
const BUFFER: usize = 8 << 20;

/// The owner of one package.
pub(super) struct Owner {
    bus: JetStreamBus,
    source: SourceId,
    run: RunId,
    stored: StoredBitstream,
}

impl Owner {
    /// Stores the package in a directory, as if it had been received, and subscribes to its outcomes on a
    /// bus.
    pub(super) async fn of(
        archive: &Path,
        directory: &Path,
        nats: &str,
        namespace: &str,
    ) -> anyhow::Result<Self> {
        let source: SourceId = "large-packages".parse()?;
        let target = StoreTarget::Directory(directory.to_owned());
        let store = Store::open(&target, StoreOptions::default()).await?;
        let mut spool = store.spool(Hasher::new([])).await?;
        let mut file = File::open(archive)?;
        loop {
            let mut bytes = Vec::with_capacity(BUFFER);
            file.by_ref().take(BUFFER as u64).read_to_end(&mut bytes)?;
            if bytes.is_empty() {
                break;
            }
            spool.append(bytes.into()).await?;
        }
        let spooled = spool.finish().await?;
        let package = PackageId::fresh();
        let computed = spooled.computed().clone();
        store.put_beside_packages(&source, package, spooled).await?;
        let stored_length = computed.length();
        let location = Location::Package {
            source: source.clone(),
            package,
            offset: 0,
            stored_length,
            method: Method::Stored,
        };
        let config = JetStreamConfig {
            servers: vec![nats.to_owned()],
            namespace: namespace.to_owned(),
            max_megabytes_per_stream: 0,
            ..JetStreamConfig::default()
        };
        let bus = JetStreamBus::connect(config, &Vars::of_process()).await?;
        let outcomes = Filter::Outcomes(source.clone());
        bus.open(ConsumerSpec::new(outcomes, OUTCOMES, PATIENCE, 1)).await?;
        let stored = StoredBitstream {
            location,
            computed,
            media_type: None,
            encoding: None,
            validators: Validators::default(),
            modified: None,
            final_url: None,
        };
        Ok(Self { bus, source, run: RunId::fresh(), stored })
    }

    /// Has the package opened.
    pub(super) async fn open(&self) -> anyhow::Result<Contents> {
        self.send(UnpackTask::default()).await?;
        let filter = Filter::Outcomes(self.source.clone());
        let mut said = self.bus.pull(&filter, 1, PATIENCE).await?;
        let outcome = said.pop().context("nobody has opened the package")?;
        let result = outcome.payload.read::<PackageOutcome>()?.result.clone();
        outcome.ack().await?;
        match result {
            PackageResult::Opened(contents) => Ok(contents),
            other => bail!("the package was not opened: {other:?}"),
        }
    }

    /// Sends jobs for all slices, and waits for an outcome of each.
    pub(super) async fn unpack(&self, contents: &Contents) -> anyhow::Result<()> {
        let index = contents.index.context("a package with an index")?;
        for number in 0..contents.slices {
            self.send(UnpackTask::Slice { index, number }).await?;
        }
        let filter = Filter::Outcomes(self.source.clone());
        let mut names = HashSet::new();
        while names.len() < contents.slices as usize {
            let said = self.bus.pull(&filter, OUTCOMES, PATIENCE).await?;
            if said.is_empty() {
                bail!("{} of {} slices came", names.len(), contents.slices);
            }
            for outcome in said {
                names.insert(outcome.id.clone());
                outcome.ack().await?;
            }
        }
        Ok(())
    }

    async fn send(&self, task: UnpackTask) -> anyhow::Result<()> {
        let source = self.source.clone();
        let queue = match task {
            UnpackTask::Open { .. } => Queue::Open { source },
            UnpackTask::Slice { .. } => Queue::Unpack { source },
        };
        let job = UnpackJob {
            id: JobId::fresh(),
            source: self.source.clone(),
            run: self.run,
            origin: "http://127.0.0.1:9".parse()?,
            uri: "http://127.0.0.1:9/package.zip".parse()?,
            seq: Seq::new(1),
            declaration: Declaration::default(),
            stored: self.stored.clone(),
            task,
        };
        bus::send(&self.bus, queue, job.id, Arc::new(job)).await?;
        Ok(())
    }
}
