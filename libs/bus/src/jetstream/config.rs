//! Configuration of the NATS connection: servers, credentials and limits.

use std::path::PathBuf;
use std::time::Duration;

use secrets::SecretRef;
use serde::Deserialize;

use crate::BusError;

/// The JetStream bus, as a part of a service's configuration.
///
/// ```yaml
/// bus:
///   servers: ["nats://nats-0:4222", "nats://nats-1:4222"]
///   replicas: 3
///   credentials: {user: thresher, password: {env: NATS_PASSWORD}}
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JetStreamConfig {
    /// Addresses of servers of one cluster, `nats://host:port` or `tls://host:port`. The client learns of the others
    /// from these.
    pub servers: Vec<String>,
    /// The prefix of all streams, subjects and buckets, so that several fleets can share a server: letters, digits,
    /// `-`, `_`.
    pub namespace: String,
    /// Whether this process creates the streams and buckets, and updates them when the configuration changes. Otherwise
    /// it uses the existing ones, and waits until they exist: its NATS user may lack the right to create them.
    pub make_streams: bool,
    /// Replicas of each message: 1, or 3 or 5 in a cluster.
    pub replicas: usize,
    /// The most messages in one queue (a stage or an origin, for one Source) before its publishers wait.
    pub messages_per_queue: usize,
    /// The most megabytes in one stage, over all its queues, before publishers wait. The server reserves the space; 0 =
    /// no limit.
    pub max_megabytes_per_stream: u64,
    /// How long the server remembers message IDs, in seconds. Within that time, a message that is sent twice is queued
    /// once.
    pub duplicate_window_seconds: u64,
    /// How long a consumer of an origin or of a Source's outcomes may be without workers before the server drops it, in
    /// seconds. Its messages stay, and the next worker creates it again; 0 = never.
    pub idle_consumer_seconds: u64,
    /// How long a call retries while the server is unreachable, in seconds, before it fails.
    pub retry_timeout_seconds: u64,
    /// The credentials; empty if the server requires none.
    pub credentials: Credentials,
    /// Encryption.
    pub tls: TlsConfig,
}

/// The credentials. At most one of `user` (with `password`), `token` and `file`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Credentials {
    /// The name of the user.
    pub user: Option<String>,
    /// Reference to the user's password.
    pub password: Option<SecretRef>,
    /// Reference to the token.
    pub token: Option<SecretRef>,
    /// A credentials file (`.creds`): a user's JWT and its key.
    pub file: Option<PathBuf>,
}

/// Encryption of the connection.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsConfig {
    /// Refuse a server that does not encrypt. Without it, the server decides.
    pub required: bool,
    /// Files of root certificates to trust, instead of the system's.
    pub ca_files: Vec<PathBuf>,
    /// The client certificate, if the server requires one.
    pub certificate_file: Option<PathBuf>,
    /// The key of that certificate.
    pub key_file: Option<PathBuf>,
}

impl Default for JetStreamConfig {
    fn default() -> Self {
        Self {
            servers: vec!["nats://127.0.0.1:4222".to_owned()],
            namespace: "thresher".to_owned(),
            make_streams: true,
            replicas: 1,
            messages_per_queue: 1024,
            max_megabytes_per_stream: 1024,
            duplicate_window_seconds: 120,
            idle_consumer_seconds: 3600,
            retry_timeout_seconds: 30,
            credentials: Credentials::default(),
            tls: TlsConfig::default(),
        }
    }
}

impl JetStreamConfig {
    /// Rejects an invalid configuration before connecting.
    ///
    /// # Errors
    /// [`BusError::Refused`], with the field.
    pub fn check(&self) -> Result<(), BusError> {
        let refuse =
            |why: &str| Err(BusError::Refused { action: "be configured".to_owned(), why: why.to_owned() });
        let named = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if self.servers.is_empty() {
            return refuse("`servers` is empty: name at least one, nats://host:port");
        }
        if self.namespace.is_empty() || self.namespace.len() > 64 || !self.namespace.chars().all(named) {
            return refuse("`namespace` must be of 1 to 64 letters, digits, `-` and `_`");
        }
        if !(1..=5).contains(&self.replicas) {
            return refuse("`replicas` must be from 1 to 5");
        }
        if self.messages_per_queue == 0 {
            return refuse("`messages_per_queue` must be at least 1");
        }
        if self.duplicate_window_seconds < self.retry_timeout_seconds.saturating_mul(2) {
            return refuse(
                "`duplicate_window_seconds` must be at least twice `retry_timeout_seconds`, or a message that is sent again is \
                 queued twice",
            );
        }
        let Credentials { user, password, token, file } = &self.credentials;
        if user.is_some() != password.is_some() {
            return refuse("`credentials.user` and `credentials.password` go together");
        }
        if [user.is_some(), token.is_some(), file.is_some()].into_iter().filter(|given| *given).count() > 1 {
            return refuse("`credentials` must be one of `user` and `password`, `token`, `file`");
        }
        if self.tls.certificate_file.is_some() != self.tls.key_file.is_some() {
            return refuse("`tls.certificate_file` and `tls.key_file` go together");
        }
        Ok(())
    }

    /// The connect options, with the configured credentials and encryption.
    ///
    /// # Errors
    /// [`BusError::Refused`] when a secret or a file is missing.
    pub async fn connect_options(
        &self,
        vars: &secrets::Vars,
    ) -> Result<async_nats::ConnectOptions, BusError> {
        super::connection::login(self, vars).await
    }

    pub(super) fn patience(&self) -> Duration {
        Duration::from_secs(self.retry_timeout_seconds.max(1))
    }

    pub(super) fn duplicate_window(&self) -> Duration {
        Duration::from_secs(self.duplicate_window_seconds)
    }

    pub(super) fn idle_consumer(&self) -> Duration {
        Duration::from_secs(self.idle_consumer_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(yaml: &str) -> Result<JetStreamConfig, String> {
        // As services do it: the file first, then the fields.
        let fields: serde_json::Value = serde_saphyr::from_str(yaml).map_err(|error| error.to_string())?;
        serde_json::from_value(fields).map_err(|error| error.to_string())
    }

    fn refusal(yaml: &str) -> String {
        read(yaml).unwrap().check().unwrap_err().to_string()
    }

    #[test]
    fn everything_has_a_default_that_passes() {
        let config = read("{}").unwrap();
        assert_eq!(config, JetStreamConfig::default());
        config.check().unwrap();
    }

    #[test]
    fn the_example_of_the_documentation_is_read() {
        let config = read(
            "servers: [\"nats://nats-0:4222\", \"nats://nats-1:4222\"]\nnamespace: thresher\nreplicas: 3\n\
             credentials: {user: thresher, password: {env: NATS_PASSWORD}}\ntls: {required: true}\n",
        )
        .unwrap();
        config.check().unwrap();
        assert_eq!((config.servers.len(), config.replicas, config.tls.required), (2, 3, true));
        assert_eq!(config.credentials.password, Some(SecretRef::Env("NATS_PASSWORD".to_owned())));
    }

    #[test]
    fn unknown_fields_and_written_secrets_are_refused() {
        assert!(read("patience: 3").unwrap_err().contains("patience"));
        let error = read("credentials: {user: a, password: hunter2}").unwrap_err();
        assert!(!error.contains("hunter2"), "{error}");
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_field() {
        for (yaml, field) in [
            ("servers: []", "`servers`"),
            ("namespace: a.b", "`namespace`"),
            ("namespace: ''", "`namespace`"),
            ("replicas: 0", "`replicas`"),
            ("messages_per_queue: 0", "`messages_per_queue`"),
            ("{duplicate_window_seconds: 30, retry_timeout_seconds: 20}", "`duplicate_window_seconds`"),
            ("credentials: {user: a}", "`credentials.password`"),
            ("credentials: {token: {env: T}, file: a.creds}", "`credentials`"),
            ("tls: {key_file: a.pem}", "`tls.certificate_file`"),
        ] {
            let said = refusal(yaml);
            assert!(said.contains(field), "{yaml}: {said}");
        }
    }
}
