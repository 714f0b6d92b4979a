//! A bucket of NATS KV: compare-and-set, values that expire, and a watch on changes.
//!
//! Writes do not use the client's own calls. These drop the lifetime of a value if its key was deleted before, and
//! cannot renew one. Instead, the code publishes to the bucket's subjects, which is how KV works internally.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, ReplayPolicy, push};
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::kv::{self, Store};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, StorageType};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, HeaderMap};
use bytes::Bytes;
use futures::StreamExt as _;
use tokio::sync::watch;

use crate::error::ControlError;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How long the delete marker of an expired value stays. The server raises shorter lifetimes of values to this.
const EXPIRY_TRACE: Duration = Duration::from_secs(1);
/// How long the delete marker of a deleted value stays: longer than any reader takes to notice.
const DELETION_TRACE: Duration = Duration::from_secs(60);

/// An open bucket. Cheap to clone, and small to move, because connecting holds all buckets at once.
#[derive(Debug, Clone)]
pub(crate) struct Bucket(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    name: String,
    client: Client,
    context: Context,
    store: Store,
    line: watch::Receiver<Line>,
}

/// The state of the connection. After every change, a feed that was opened before may have missed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Line {
    /// Whether there is a connection.
    pub(crate) up: bool,
    /// How often a connection was made, or messages on it were lost.
    pub(crate) made: u64,
}

/// The configuration of a bucket.
#[derive(Debug, Clone)]
pub(crate) struct Layout<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) description: &'a str,
    /// Stored revisions of each key.
    pub(crate) revisions: u8,
    pub(crate) replicas: usize,
    pub(crate) made: Made,
}

/// The process that creates a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    /// This process. It also updates an existing bucket to its own configuration.
    Here,
    /// Another process.
    Elsewhere,
}

/// The state of a key.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    /// The revision of the value, or of its delete marker; 0 where there is neither.
    pub(crate) revision: u64,
    pub(crate) value: Option<Bytes>,
}

/// Why nothing was written.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The revision is not the expected one any more.
    Conflict,
    /// The value may have been written or not.
    Unavailable(PublishError),
}

/// A change of a key: its new value, or the end of its value.
#[derive(Debug)]
pub(crate) struct KvEvent {
    pub(crate) key: String,
    pub(crate) value: Option<Bytes>,
    pub(crate) revision: u64,
    /// How many further changes the watch has ready.
    pub(crate) behind: u64,
}

/// A watch: all values of a bucket, then all changes.
pub(crate) struct KvWatch {
    messages: push::Ordered,
    prefix: String,
    /// How many keys there were at the beginning.
    pub(crate) held: u64,
}

impl Bucket {
    /// Opens a bucket. Creates it or updates its configuration, if `made` says so.
    pub(crate) async fn open(
        client: &Client,
        context: &Context,
        line: &watch::Receiver<Line>,
        layout: Layout<'_>,
    ) -> Result<Self, ControlError> {
        let name = format!("{}-{}", layout.namespace, layout.name);
        let config = kv::Config {
            bucket: name.clone(),
            description: layout.description.to_owned(),
            history: layout.revisions.into(),
            storage: StorageType::File,
            num_replicas: layout.replicas,
            limit_markers: Some(EXPIRY_TRACE),
            ..kv::Config::default()
        };
        let opened = match layout.made {
            Made::Here => context.create_or_update_key_value(config).await.map_err(BoxError::from),
            Made::Elsewhere => context.get_key_value(&name).await.map_err(BoxError::from),
        };
        let maker = if layout.made == Made::Elsewhere { ", which the scheduler makes" } else { "" };
        let store = opened.map_err(ControlError::unavailable(format!("open the bucket {name}{maker}")))?;
        let parts =
            Parts { name, client: client.clone(), context: context.clone(), store, line: line.clone() };
        Ok(Self(Arc::new(parts)))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    /// Watches the state of the connection.
    pub(crate) fn line(&self) -> watch::Receiver<Line> {
        self.0.line.clone()
    }

    /// The current value of a key, from the leader of the bucket. Another server of a cluster may lag, and a write
    /// based on its answer would fail.
    pub(crate) async fn get(&self, key: &str) -> Result<Slot, ControlError> {
        let subject = format!("{}{key}", self.0.store.prefix);
        match self.0.store.stream.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => Ok(Slot {
                revision: message.sequence,
                value: (!marks_the_end(Some(&message.headers))).then_some(message.payload),
            }),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                Ok(Slot { revision: 0, value: None })
            }
            Err(error) => Err(ControlError::unavailable(format!("read {key} in {}", self.0.name))(error)),
        }
    }

    /// Writes a value if the key's revision is the expected one. The value expires after `ttl` (whole seconds), if
    /// given. Returns the new revision.
    pub(crate) async fn put(
        &self,
        key: &str,
        value: Vec<u8>,
        expected: Option<u64>,
        ttl: Option<Duration>,
    ) -> Result<u64, WriteError> {
        let mut message = PublishMessage::build().payload(value.into());
        if let Some(revision) = expected {
            message = message.expected_last_subject_sequence(revision);
        }
        if let Some(ttl) = ttl {
            message = message.ttl(ttl);
        }
        let ack = self.0.context.send_publish(format!("{}{key}", self.0.store.prefix), message).await?;
        Ok(ack.await?.sequence)
    }

    /// Deletes a value, if the key's revision is the expected one.
    pub(crate) async fn remove(&self, key: &str, expected: Option<u64>) -> Result<(), WriteError> {
        let mut message = PublishMessage::build()
            .header("KV-Operation", "PURGE")
            .header("Nats-Rollup", "sub")
            .ttl(DELETION_TRACE);
        if let Some(revision) = expected {
            message = message.expected_last_subject_sequence(revision);
        }
        self.0.context.send_publish(format!("{}{key}", self.0.store.prefix), message).await?.await?;
        Ok(())
    }

    /// The stored revisions of a key, oldest first, with one request for each. A consumer would need fewer requests,
    /// but the server keeps it for a while after each read, and their number is limited.
    pub(crate) async fn history(&self, key: &str) -> Result<Vec<Bytes>, ControlError> {
        let subject = format!("{}{key}", self.0.store.prefix);
        let mut next = 1;
        let mut values = Vec::new();
        loop {
            let asked = self.0.store.stream.raw_message_builder().next_by_subject(&subject).sequence(next);
            let message = match asked.send().await {
                Ok(message) => message,
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => return Ok(values),
                Err(error) => {
                    let action = format!("read the history of {key} in {}", self.0.name);
                    return Err(ControlError::unavailable(action)(error));
                }
            };
            next = message.sequence + 1;
            if !marks_the_end(Some(&message.headers)) {
                values.push(message.payload);
            }
        }
    }

    /// Watches the bucket: all values, then all changes.
    pub(crate) async fn feed(&self) -> Result<KvWatch, ControlError> {
        let action = || format!("watch {}", self.0.name);
        let config = push::OrderedConfig {
            deliver_subject: self.0.client.new_inbox(),
            description: Some("control view".to_owned()),
            filter_subject: format!("{}>", self.0.store.prefix),
            replay_policy: ReplayPolicy::Instant,
            deliver_policy: DeliverPolicy::LastPerSubject,
            ..push::OrderedConfig::default()
        };
        let consumer =
            self.0.store.stream.create_consumer(config).await.map_err(ControlError::unavailable(action()))?;
        let held = consumer.cached_info().num_pending;
        let messages = consumer.messages().await.map_err(ControlError::unavailable(action()))?;
        Ok(KvWatch { messages, prefix: self.0.store.prefix.clone(), held })
    }
}

impl KvWatch {
    /// The next change.
    pub(crate) async fn next(&mut self) -> Result<KvEvent, ControlError> {
        let ended =
            || ControlError::Unavailable { action: "go on watching".to_owned(), source: "it ended".into() };
        loop {
            let message = self.messages.next().await.ok_or_else(ended)?;
            let message = message.map_err(ControlError::unavailable("go on watching"))?;
            let info = message.info().map_err(ControlError::unavailable("read the place of a change"))?;
            let revision = info.stream_sequence;
            let behind = info.pending;
            let jetstream::Message { message, .. } = message;
            let Some(key) = message.subject.strip_prefix(self.prefix.as_str()) else { continue };
            let value = (!marks_the_end(message.headers.as_ref())).then_some(message.payload);
            return Ok(KvEvent { key: key.to_owned(), value, revision, behind });
        }
    }
}

/// Whether a message marks the end of a value: it was deleted, or it expired.
fn marks_the_end(headers: Option<&HeaderMap>) -> bool {
    headers.is_some_and(|headers| {
        let deleted = headers.get("KV-Operation").is_some_and(|operation| operation.as_str() != "PUT");
        deleted || headers.get("Nats-Marker-Reason").is_some()
    })
}

impl From<PublishError> for WriteError {
    fn from(error: PublishError) -> Self {
        match error.kind() {
            PublishErrorKind::WrongLastSequence => Self::Conflict,
            _ => Self::Unavailable(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletions_and_expiries_are_ends_and_values_are_not() {
        let headers = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value);
            headers
        };
        assert!(!marks_the_end(None));
        assert!(!marks_the_end(Some(&headers("Nats-TTL", "5s"))));
        assert!(!marks_the_end(Some(&headers("KV-Operation", "PUT"))));
        assert!(marks_the_end(Some(&headers("KV-Operation", "PURGE"))));
        assert!(marks_the_end(Some(&headers("KV-Operation", "DEL"))));
        assert!(marks_the_end(Some(&headers("Nats-Marker-Reason", "MaxAge"))));
    }
}
