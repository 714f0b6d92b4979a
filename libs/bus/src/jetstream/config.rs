//! Where the NATS server is, how to log in, and how much it keeps.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use service::SecretRef;

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
    /// Addresses of the servers of one cluster, `nats://host:port` or `tls://host:port`; more of them are learnt from those.
    pub servers: Vec<String>,
    /// Leads the names of all streams, subjects and buckets, so that several fleets share a server: letters, digits, `-`, `_`.
    pub namespace: String,
    /// Whether this process makes the streams and buckets, and changes them where the configuration has changed. Otherwise it
    /// takes them as they are and waits until they are there: its user at the server may have no right to make them.
    pub make_streams: bool,
    /// Servers that keep each message: 1, or 3 or 5 in a cluster.
    pub replicas: usize,
    /// Messages that one queue (a stage, for one Source; a lane, for one Source) holds before its publishers wait.
    pub messages_per_queue: usize,
    /// Bytes that one stage holds, over all its queues, before publishers wait. The server sets the room aside; 0 = no limit.
    pub megabytes_per_stage: u64,
    /// Seconds for which the server remembers the names of messages, so that one sent twice is queued once.
    pub duplicate_window_seconds: u64,
    /// Seconds without any worker after which the server drops the consumer of a lane or of a Source's outcomes. Its
    /// messages stay, and it is there again when somebody asks for it; 0 = never.
    pub idle_consumer_seconds: u64,
    /// Seconds for which a call tries again while the server cannot be reached, before it fails.
    pub patience_seconds: u64,
    /// How to log in; nothing where the server asks for nothing.
    pub credentials: Credentials,
    /// Encryption.
    pub tls: TlsConfig,
}

/// How to log in. At most one of `user` (with `password`), `token` and `file`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Credentials {
    /// The user's name.
    pub user: Option<String>,
    /// Where the user's password lies.
    pub password: Option<SecretRef>,
    /// Where the token lies.
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
    /// The client's certificate, where the server asks for one.
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
            megabytes_per_stage: 1024,
            duplicate_window_seconds: 120,
            idle_consumer_seconds: 3600,
            patience_seconds: 30,
            credentials: Credentials::default(),
            tls: TlsConfig::default(),
        }
    }
}

impl JetStreamConfig {
    /// Refuses what cannot work, before anything is tried.
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
        if self.duplicate_window_seconds < self.patience_seconds.saturating_mul(2) {
            return refuse(
                "`duplicate_window_seconds` must be at least twice `patience_seconds`, or a message that is sent again is \
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

    /// How to connect to the servers: with the credentials and the encryption that are configured.
    ///
    /// # Errors
    /// [`BusError::Refused`] when a secret or a file is not there.
    pub async fn connect_options(
        &self,
        vars: &service::Vars,
    ) -> Result<async_nats::ConnectOptions, BusError> {
        super::link::login(self, vars).await
    }

    pub(super) fn patience(&self) -> Duration {
        Duration::from_secs(self.patience_seconds.max(1))
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
            ("{duplicate_window_seconds: 30, patience_seconds: 20}", "`duplicate_window_seconds`"),
            ("credentials: {user: a}", "`credentials.password`"),
            ("credentials: {token: {env: T}, file: a.creds}", "`credentials`"),
            ("tls: {key_file: a.pem}", "`tls.certificate_file`"),
        ] {
            let said = refusal(yaml);
            assert!(said.contains(field), "{yaml}: {said}");
        }
    }
}
