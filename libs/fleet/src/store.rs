//! The store that all services of a fleet share.

use std::path::PathBuf;

use secrets::{SecretRef, Vars};
use serde::Deserialize;
use service::{ConfigError, Context, Readiness};
use store::{DATA_DIRECTORY, Store, StoreError, StoreOptions, StoreTarget};
use tokio_util::sync::CancellationToken;

use crate::connect;
use crate::counted_store::count_operations;

/// The location of the fleet's store: field `store` of each service's configuration.
///
/// Missing fields come from the usual `AWS_*` variables.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreConfig {
    /// `s3://bucket/prefix`, or a directory that all services can reach.
    pub url: String,
    /// The URL of the server, for stores other than Amazon's.
    #[serde(default)]
    pub endpoint: Option<String>,
    /// The region.
    #[serde(default)]
    pub region: Option<String>,
    /// Reference to the access key ID.
    #[serde(default)]
    pub access_key_id: Option<SecretRef>,
    /// Reference to the secret access key.
    #[serde(default)]
    pub secret_access_key: Option<SecretRef>,
    /// The local directory for large bodies until they are complete. Default: the system's temporary directory.
    #[serde(default)]
    pub spool_directory: Option<PathBuf>,
    /// Directories only: flush every object to the disk before it counts as stored.
    #[serde(default)]
    pub fsync: bool,
}

impl StoreConfig {
    /// The `AWS_*` variables, overridden by the configuration.
    fn variables(&self, vars: &Vars) -> Result<Vec<(String, String)>, ConfigError> {
        let secret = |place: &Option<SecretRef>| {
            place.as_ref().map(|place| place.read(vars).map(|secret| secret.expose().to_owned())).transpose()
        };
        let over = [
            ("AWS_ENDPOINT_URL", self.endpoint.clone()),
            ("AWS_REGION", self.region.clone()),
            ("AWS_ACCESS_KEY_ID", secret(&self.access_key_id)?),
            ("AWS_SECRET_ACCESS_KEY", secret(&self.secret_access_key)?),
        ];
        let environment = vars.iter().filter(|(name, _)| name.starts_with("AWS_"));
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let over = over.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Ok(environment.chain(over).collect())
    }
}

/// Opens the store for writing as soon as it is reachable.
///
/// # Errors
/// When the configuration or the permissions are wrong, the store lacks conditional puts, or the service is to stop.
pub(crate) async fn open_store(
    config: &StoreConfig,
    vars: &Vars,
    readiness: &Readiness,
    stop: &CancellationToken,
) -> anyhow::Result<Store> {
    open(config, vars, readiness, stop, false).await
}

/// Opens the store for a service that only reads, as soon as it is reachable. From then on the service is not ready
/// while the store fails.
///
/// # Errors
/// When the configuration is wrong, or the service is to stop.
pub async fn open_for_reading<C>(context: &Context<C>, config: &StoreConfig) -> anyhow::Result<Store> {
    let Context { vars, readiness, stop, metrics, .. } = context;
    let store = open(config, vars, readiness, stop, true).await?;
    count_operations(&store, metrics);
    tokio::spawn(watch_store(store.clone(), readiness.clone(), stop.clone()));
    Ok(store)
}

async fn open(
    config: &StoreConfig,
    vars: &Vars,
    readiness: &Readiness,
    stop: &CancellationToken,
    read_only: bool,
) -> anyhow::Result<Store> {
    let target: StoreTarget = config.url.parse()?;
    let variables = config.variables(vars)?;
    let options =
        || StoreOptions { read_only, spool_directory: config.spool_directory.clone(), fsync: config.fsync };
    // A writer creates the directory, and may start later than this reader.
    let is_to_come = || match &target {
        StoreTarget::Directory(directory) => read_only && !directory.join(DATA_DIRECTORY).is_dir(),
        StoreTarget::S3 { .. } => false,
    };
    let passes = |error: &StoreError| error.is_retryable() || is_to_come();
    let store =
        connect("store", readiness, stop, passes, || Store::open_with(&target, variables.clone(), options()));
    let store = store.await?;
    tracing::info!(store.root = store.root(), "the store is open");
    Ok(store)
}

/// Marks the service as not ready, with the reason, while the store fails. Ends with `stop`.
pub(crate) async fn watch_store(store: Store, readiness: Readiness, stop: CancellationToken) {
    let mut trouble = store.trouble();
    let mut latch = None;
    loop {
        let now = trouble.borrow_and_update().clone();
        match (now, latch.take()) {
            (Some(trouble), held) => {
                let held = held.unwrap_or_else(|| readiness.latch("store", "in trouble"));
                held.waits_for(&trouble.message);
                tracing::warn!(why = trouble.message, "the store is in trouble");
                latch = Some(held);
            }
            (None, Some(held)) => {
                held.release();
                tracing::info!("the store works again");
            }
            (None, None) => {}
        }
        tokio::select! {
            changed = trouble.changed() => if changed.is_err() { return },
            () = stop.cancelled() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: &str) -> StoreConfig {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn what_the_configuration_says_counts_before_the_environment() {
        let config = config(
            r#"{"url": "s3://b/p", "endpoint": "http://127.0.0.1:1", "access_key_id": {"env": "KEY"}}"#,
        );
        let vars = Vars::from([
            ("AWS_ENDPOINT_URL", "http://elsewhere"),
            ("AWS_SECRET_ACCESS_KEY", "hush"),
            ("KEY", "me"),
            ("HOME", "/"),
        ]);
        let variables = config.variables(&vars).unwrap();
        let last = |wanted: &str| {
            variables.iter().rev().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
        };
        assert_eq!(last("AWS_ENDPOINT_URL"), Some("http://127.0.0.1:1"));
        assert_eq!(last("AWS_SECRET_ACCESS_KEY"), Some("hush"));
        assert_eq!(last("AWS_ACCESS_KEY_ID"), Some("me"));
        assert_eq!(last("HOME"), None);
    }

    #[test]
    fn a_secret_that_is_not_there_is_named_and_an_unknown_field_refused() {
        let missing = config(r#"{"url": "s3://b", "secret_access_key": {"env": "NONE"}}"#);
        assert!(missing.variables(&Vars::default()).unwrap_err().to_string().contains("NONE"));
        assert!(serde_json::from_str::<StoreConfig>(r#"{"url": "s3://b", "key": "x"}"#).is_err());
    }

    #[tokio::test]
    async fn a_directory_opens_and_a_mistake_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let readiness = Readiness::default();
        let stop = CancellationToken::new();
        let open = |url: String| StoreConfig { url, ..config(r#"{"url": "."}"#) };
        let good = open(directory.path().display().to_string());
        open_store(&good, &Vars::default(), &readiness, &stop).await.unwrap();
        assert!(readiness.is_ready());
        let bad = open("s3://bucket".to_owned());
        let error = open_store(&bad, &Vars::default(), &readiness, &stop).await.unwrap_err();
        assert!(error.to_string().contains("AWS_REGION"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_only_reads_a_directory_waits_for_who_writes_there() {
        let directory = tempfile::tempdir().unwrap();
        let readiness = Readiness::default();
        let stop = CancellationToken::new();
        let config = StoreConfig { url: directory.path().display().to_string(), ..config(r#"{"url": "."}"#) };
        let vars = Vars::default();
        let reading = open(&config, &vars, &readiness, &stop, true);
        let mut reading = std::pin::pin!(reading);
        let waits = tokio::time::timeout(std::time::Duration::from_secs(60), &mut reading).await;
        assert!(waits.is_err() && !readiness.is_ready());
        std::fs::create_dir(directory.path().join(DATA_DIRECTORY)).unwrap();
        reading.await.unwrap();
        assert!(readiness.is_ready());
    }
}
