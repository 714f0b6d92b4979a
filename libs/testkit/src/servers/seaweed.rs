//! SeaweedFS as an S3 server: it supports conditional puts, which the catalog's fence needs.

use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use data_encoding::HEXLOWER;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::{ObjectStoreExt as _, RetryConfig};
use tempfile::TempDir;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep, timeout};

use super::{Venv, env, ports::free_ports, process::ServerProcess};

const ACCESS_KEY: &str = "testkey";
const SECRET_KEY: &str = "testsecret123";
/// The keys of an identity that may only read and list.
const READING_ACCESS_KEY: &str = "testreadkey";
const READING_SECRET_KEY: &str = "testreadsecret123";
/// It starts within three to eight seconds; a loaded machine takes longer.
const PATIENCE: Duration = Duration::from_secs(90);

static OWN: OnceCell<SeaweedServer> = OnceCell::const_new();

/// A SeaweedFS server on loopback with an empty store; it ends when dropped.
#[derive(Debug)]
pub struct SeaweedServer {
    endpoint: String,
    process: ServerProcess,
}

/// The S3 server of this run, and a bucket of its own.
#[derive(Debug, Clone)]
pub struct S3Fixture {
    /// `http://127.0.0.1:<port>`
    pub endpoint: String,
    /// Any region works; this one is the usual default.
    pub region: String,
    /// The access key of an identity with all permissions.
    pub access_key: String,
    /// Its secret key.
    pub secret_key: String,
    /// A unique bucket name. The bucket is created with its first object.
    pub bucket: String,
}

impl SeaweedServer {
    /// Starts one and waits until an object can be put.
    ///
    /// # Errors
    /// When it cannot be installed or started, or is not ready in time; with the end of its log.
    pub async fn start() -> anyhow::Result<SeaweedServer> {
        let venv = tokio::task::spawn_blocking(Venv::servers).await??;
        let [s3, filer, master, volume] = free_ports()?;
        let folder = TempDir::with_prefix("weed-").context("cannot create a folder for the server's data")?;
        let data = folder.path().join("data");
        let sockets = folder.path().join("tmp");
        for made in [&data, &sockets] {
            std::fs::create_dir(made)?;
        }
        let config = folder.path().join("s3.json");
        let identity = format!(
            r#"{{"identities":[{{"name":"t","credentials":[{{"accessKey":"{ACCESS_KEY}","secretKey":"{SECRET_KEY}"}}],
            "actions":["Admin","Read","Write","List","Tagging"]}},
            {{"name":"r","credentials":[{{"accessKey":"{READING_ACCESS_KEY}","secretKey":"{READING_SECRET_KEY}"}}],
            "actions":["Read","List"]}}]}}"#
        );
        std::fs::write(&config, identity)?;
        let mut command = Command::new(venv.program("weed"));
        command
            .args(["-logtostderr=true", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"])
            .arg(format!("-dir={}", data.display()))
            .arg(format!("-s3.config={}", config.display()))
            .args([format!("-s3.port={s3}"), format!("-filer.port={filer}")])
            .args([format!("-master.port={master}"), format!("-volume.port={volume}")])
            .args(["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"])
            .args([
                "-master.volumeSizeLimitMB=1024",
                "-master.electionTimeout=1s",
                "-volume.preStopSeconds=0",
            ])
            // Each bucket uses volumes of its own, seven at a time by default: enough for hundreds of tests.
            .arg("-volume.max=1000")
            .env("WEED_MASTER_VOLUME_GROWTH_COPY_1", "1")
            // Its Unix sockets are named by ports only and are in the temporary folder.
            .env("TMPDIR", sockets);
        let mut process = ServerProcess::start("weed", command, folder)?;
        let server = S3Fixture::at(format!("http://127.0.0.1:{s3}"), ACCESS_KEY, SECRET_KEY);
        let store = server.store()?;
        let deadline = Instant::now() + PATIENCE;
        // Its parts start one after another: only a successful put shows that all are ready.
        while !can_put(&store).await {
            process.check()?;
            if Instant::now() > deadline {
                return Err(process.complaint("was not ready in time"));
            }
            sleep(Duration::from_millis(100)).await;
        }
        Ok(SeaweedServer { endpoint: server.endpoint, process })
    }

    /// Pauses it: it accepts connections, and answers no requests.
    ///
    /// # Errors
    /// When it has ended.
    pub fn pause(&mut self) -> anyhow::Result<()> {
        self.process.pause()
    }

    /// Resumes it after a [`pause`](Self::pause); it then answers the waiting requests.
    ///
    /// # Errors
    /// When it has ended.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        self.process.resume()
    }

    /// Its process id.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// `http://127.0.0.1:<port>`
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The access key and the secret key.
    pub fn keys(&self) -> (&str, &str) {
        (ACCESS_KEY, SECRET_KEY)
    }

    /// The same for an identity that may only read and list.
    pub fn reading_keys(&self) -> (&str, &str) {
        (READING_ACCESS_KEY, READING_SECRET_KEY)
    }

    /// A fixture on this server, with a bucket of its own.
    pub fn fixture(&self) -> S3Fixture {
        S3Fixture::at(self.endpoint.clone(), ACCESS_KEY, SECRET_KEY)
    }
}

impl S3Fixture {
    /// A new bucket on the server of this run, which is started if needed.
    ///
    /// # Panics
    /// When it cannot be started.
    pub async fn get() -> S3Fixture {
        let var = |name| std::env::var(name).ok();
        if let (Some(endpoint), Some(key), Some(secret)) =
            (var(env::S3_ENDPOINT), var(env::S3_ACCESS_KEY), var(env::S3_SECRET_KEY))
        {
            return S3Fixture::at(endpoint, &key, &secret);
        }
        let server = OWN.get_or_try_init(SeaweedServer::start).await;
        server.unwrap_or_else(|error| panic!("no S3 server for this test: {error:#}")).fixture()
    }

    /// An object store on the bucket; it does not retry, so that a test sees the server's own responses.
    ///
    /// # Errors
    /// When the client cannot be made.
    pub fn store(&self) -> object_store::Result<AmazonS3> {
        let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        AmazonS3Builder::new()
            .with_endpoint(&self.endpoint)
            .with_region(&self.region)
            .with_access_key_id(&self.access_key)
            .with_secret_access_key(&self.secret_key)
            .with_bucket_name(&self.bucket)
            .with_allow_http(true)
            .with_retry(retry)
            .build()
    }

    /// The usual variables for a program's environment to reach the server.
    pub fn aws_environment(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT_URL", self.endpoint.clone()),
            ("AWS_ACCESS_KEY_ID", self.access_key.clone()),
            ("AWS_SECRET_ACCESS_KEY", self.secret_key.clone()),
            ("AWS_REGION", self.region.clone()),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
        ]
    }

    fn at(endpoint: String, access_key: &str, secret_key: &str) -> S3Fixture {
        S3Fixture {
            endpoint,
            region: "us-east-1".to_owned(),
            access_key: access_key.to_owned(),
            secret_key: secret_key.to_owned(),
            bucket: format!("test-{}", HEXLOWER.encode(&rand::random::<[u8; 8]>())),
        }
    }
}

async fn can_put(store: &AmazonS3) -> bool {
    let path = "ready".into();
    let put = store.put(&path, "yes".into());
    matches!(timeout(Duration::from_secs(5), put).await, Ok(Ok(_)))
}
