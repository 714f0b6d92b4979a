//! The connection to the server, and retries on it.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use async_nats::jetstream::context::ContextBuilder;
use async_nats::jetstream::{self, ErrorCode};
use async_nats::{
    Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, Request, ServerAddr, Subject, rustls,
};
use bytes::Bytes;
use secrets::Vars;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use super::config::JetStreamConfig;
use super::names::Stage;
use crate::backoff::Backoff;
use crate::{BusError, MAX_PAYLOAD};

/// The time limit of one request.
const REQUEST: Duration = Duration::from_secs(5);
/// The first wait between two attempts. It doubles with every failure.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// The longest wait between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// The interval of pings on an idle connection, which detect a dead one.
const PING: Duration = Duration::from_secs(10);
/// Room for the headers of a message, in bytes.
const HEADERS: usize = 4096;
/// The oldest server version with all features that the bus uses.
const OLDEST: (i64, i64, i64) = (2, 11, 0);

/// The state of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Whether the connection is up.
    pub up: bool,
    /// How often it was made, the first time included.
    pub connections: u64,
    /// The last error while it was down.
    pub trouble: Option<String>,
}

/// Why an attempt failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// A retry may succeed.
    Temporary(Box<dyn StdError + Send + Sync>),
    /// It succeeds once the operator has freed storage.
    NoRoom(String),
    /// It fails for good.
    Lasting(String),
}

/// The connection. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) client: Client,
    pub(super) context: jetstream::Context,
    pub(super) health: watch::Receiver<Health>,
    patience: Duration,
}

impl Failure {
    pub(super) fn temporary(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::Temporary(error.into())
    }

    /// Classifies the server's answer to a request. A request that it rejects as invalid fails for good.
    pub(super) fn answered(error: &jetstream::Error) -> Self {
        if error.error_code() == ErrorCode::STORAGE_RESOURCES_EXCEEDED {
            return Self::NoRoom(format!(
                "{error}. For each of its {} stages, `nats.max_megabytes_per_stream` is set aside on the server's disk: lower it (0 sets \
                 nothing aside), or give the server a larger disk or `max_file_store`",
                Stage::ALL.len()
            ));
        }
        match error.code() {
            408 => Self::temporary(error.to_string()),
            400..500 => Self::Lasting(error.to_string()),
            _ => Self::temporary(error.to_string()),
        }
    }
}

impl Link {
    /// Connects, with retries while the server is unreachable.
    pub(super) async fn connect(config: &JetStreamConfig, vars: &Vars) -> Result<Self, BusError> {
        config.check()?;
        let (report, health) = watch::channel(Health { up: false, connections: 0, trouble: None });
        let servers = servers(config)?;
        let deadline = Instant::now() + config.patience();
        let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
        let client = loop {
            match options(config, vars, report.clone()).await?.connect(&servers).await {
                Ok(client) => break client,
                Err(error) if is_lasting(&error) => {
                    let why = format!("{error}; check `credentials` and `tls`");
                    return Err(BusError::Refused { action: "connect".to_owned(), why });
                }
                Err(error) if Instant::now() >= deadline => {
                    let action = format!("connect to {}", config.servers.join(", "));
                    return Err(BusError::Unavailable { action, source: error.into() });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot connect to the message bus yet");
                    backoff.pause().await;
                }
            }
        };
        let (major, minor, patch) = OLDEST;
        let info = client.server_info();
        let refuse = |why: String| Err(BusError::Refused { action: "use this server".to_owned(), why });
        if !client.is_server_compatible(major, minor, patch) {
            return refuse(format!(
                "nats-server {} is too old: install {major}.{minor} or later",
                info.version
            ));
        }
        if info.max_payload < MAX_PAYLOAD + HEADERS {
            let needed = MAX_PAYLOAD + HEADERS;
            return refuse(format!(
                "it takes messages of {} bytes: set its max_payload to {needed}",
                info.max_payload
            ));
        }
        let context =
            ContextBuilder::new().timeout(REQUEST).backpressure_on_inflight(true).build(client.clone());
        Ok(Self { client, context, health, patience: config.patience() })
    }

    /// Retries an action until it succeeds, fails for good, or the configured time is over.
    pub(super) async fn with_retries<T, F>(
        &self,
        action: impl Fn() -> String,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, BusError>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let deadline = Instant::now() + self.patience;
        let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
        loop {
            let error = match attempt().await {
                Ok(done) => return Ok(done),
                Err(Failure::Lasting(why)) => return Err(BusError::Refused { action: action(), why }),
                Err(Failure::NoRoom(why)) => BusError::NoRoom { action: action(), why },
                Err(Failure::Temporary(source)) => BusError::Unavailable { action: action(), source },
            };
            let wait = backoff.next_wait();
            if Instant::now() + wait >= deadline {
                return Err(error);
            }
            tracing::debug!(%error, "trying again");
            sleep(wait).await;
            self.wait_until_up(deadline).await;
        }
    }

    /// Waits until the connection is up, up to `deadline`.
    async fn wait_until_up(&self, deadline: Instant) {
        let mut health = self.health.clone();
        // After the deadline, or on a permanent failure, the next attempt reports the error.
        let _ = timeout_at(deadline, health.wait_for(|health| health.up)).await;
    }

    /// How often the connection was made so far.
    pub(super) fn connections(&self) -> u64 {
        self.health.borrow().connections
    }

    /// Resolves when there is a newer connection. Requests that waited on the earlier one are lost.
    pub(super) async fn reconnected(&self, connections: u64) {
        let mut health = self.health.clone();
        let newer = health.wait_for(|health| health.up && health.connections > connections).await.is_ok();
        if !newer {
            std::future::pending::<()>().await;
        }
    }

    /// Sends the answer to a delivery, and waits until the server has confirmed it.
    pub(super) async fn confirm(&self, reply: &Subject, answer: Bytes, action: &str) -> Result<(), BusError> {
        self.with_retries(
            || action.to_owned(),
            || async {
                let request = Request::new().payload(answer.clone()).timeout(Some(REQUEST));
                match self.client.send_request(reply.clone(), request).await {
                    Ok(_) => Ok(()),
                    Err(error) => Err(Failure::temporary(error)),
                }
            },
        )
        .await
    }
}

fn servers(config: &JetStreamConfig) -> Result<Vec<ServerAddr>, BusError> {
    let parse = |url: &String| {
        url.parse().map_err(|error| {
            let why = format!("`servers`: {url:?} is no address like nats://host:port ({error})");
            BusError::Refused { action: "be configured".to_owned(), why }
        })
    };
    config.servers.iter().map(parse).collect()
}

/// The connect options, with the configured credentials and encryption.
pub(super) async fn login(config: &JetStreamConfig, vars: &Vars) -> Result<ConnectOptions, BusError> {
    // Each user of TLS in this process takes the default provider. It panics if two providers exist and none is the
    // default.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    }
    let refuse = |why: String| BusError::Refused { action: "log in".to_owned(), why };
    let mut options = ConnectOptions::new().require_tls(config.tls.required);
    let credentials = &config.credentials;
    let read = |secret: &secrets::SecretRef| secret.read(vars).map_err(|error| refuse(error.to_string()));
    if let (Some(user), Some(password)) = (&credentials.user, &credentials.password) {
        options = options.user_and_password(user.clone(), read(password)?.expose().to_owned());
        if let Some(prefix) = inbox_prefix(user) {
            options = options.custom_inbox_prefix(prefix);
        }
    }
    if let Some(token) = &credentials.token {
        options = options.token(read(token)?.expose().to_owned());
    }
    if let Some(file) = &credentials.file {
        let why = |error| refuse(format!("cannot read the credentials file {}: {error}", file.display()));
        options = options.credentials_file(file).await.map_err(why)?;
    }
    for file in &config.tls.ca_files {
        options = options.add_root_certificates(file.clone());
    }
    if let (Some(certificate), Some(key)) = (&config.tls.certificate_file, &config.tls.key_file) {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(options)
}

/// The prefix of a user's reply subjects, so that the server can hide them from other users.
fn inbox_prefix(user: &str) -> Option<String> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (!user.is_empty() && user.chars().all(is_token)).then(|| format!("_INBOX.{user}"))
}

async fn options(
    config: &JetStreamConfig,
    vars: &Vars,
    report: watch::Sender<Health>,
) -> Result<ConnectOptions, BusError> {
    let options = login(config, vars).await?;
    Ok(options
        .name(format!("thresher {}", config.namespace))
        .max_reconnects(None)
        .reconnect_delay_callback(|failures| {
            if failures == 0 { Duration::ZERO } else { Backoff::after(failures, FIRST_WAIT, LONGEST_WAIT) }
        })
        .request_timeout(Some(REQUEST))
        .ping_interval(PING)
        .event_callback(move |event| {
            note(&report, event);
            std::future::ready(())
        }))
}

/// Records an event of the client's connection.
fn note(report: &watch::Sender<Health>, event: Event) {
    match event {
        Event::Connected => {
            tracing::info!("connected to the message bus");
            report.send_modify(|health| {
                *health = Health { up: true, connections: health.connections + 1, trouble: None };
            });
        }
        Event::Disconnected | Event::Closed | Event::LameDuckMode | Event::Draining => {
            tracing::warn!(%event, "the connection to the message bus changes");
            if matches!(event, Event::Disconnected | Event::Closed) {
                report.send_modify(|health| health.up = false);
            }
        }
        Event::ServerError(_) | Event::ClientError(_) | Event::SlowConsumer(_) => {
            tracing::warn!(%event, "trouble with the message bus");
            report.send_modify(|health| health.trouble = Some(event.to_string()));
        }
    }
}

/// Whether an operator must act before this can work. Invalid secrets and certificates stay invalid.
fn is_lasting(error: &ConnectError) -> bool {
    use ConnectErrorKind::{Authentication, AuthorizationViolation, Io, ServerParse, Tls};
    match error.kind() {
        Authentication | AuthorizationViolation | ServerParse | Tls => true,
        // A failed TLS handshake is reported as an error of the connection.
        Io => {
            let error = error.source().and_then(|source| source.downcast_ref::<io::Error>());
            error.and_then(io::Error::get_ref).is_some_and(|cause| cause.is::<rustls::Error>())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_a_user_go_below_a_subject_of_its_own() {
        assert_eq!(inbox_prefix("gateway").as_deref(), Some("_INBOX.gateway"));
        for other in ["", "a.b", "a b", "*", ">"] {
            assert_eq!(inbox_prefix(other), None, "{other:?} is no part of a subject");
        }
    }
}
