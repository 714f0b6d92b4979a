//! One bucket of NATS KV: compare-and-set, values that expire, and a feed of what changes.
//!
//! Writes do not go through the client's own calls, since these drop the lifetime of a value when its key had been
//! deleted before, and cannot renew one. They are publications to the bucket's subjects, which is what KV is made of.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, ReplayPolicy, push};
use async_nats::jetstream::context::{
    GetStreamError, GetStreamErrorKind, KeyValueError, PublishError, PublishErrorKind,
};
use async_nats::jetstream::kv::{self, Store};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, StorageType};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, HeaderMap};
use bytes::Bytes;
use futures::StreamExt as _;
use tokio::sync::watch;

use crate::ControlError;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How long the trace of a value that expired stays. The server raises shorter lifetimes of values to this.
const EXPIRY_TRACE: Duration = Duration::from_secs(1);
/// How long the trace of a value that was deleted stays: longer than any reader takes to notice.
const DELETION_TRACE: Duration = Duration::from_secs(60);

/// A bucket, open. Cheap to clone, and to move: whoever connects holds all buckets at once.
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

/// How the line to the server is. With every change, a feed that was opened before may have missed something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Line {
    /// Whether there is a connection.
    pub(crate) up: bool,
    /// How often there was a new one, or something was lost on the old one.
    pub(crate) made: u64,
}

/// How a bucket is kept.
#[derive(Debug, Clone)]
pub(crate) struct Layout<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) description: &'a str,
    /// Revisions kept of each key.
    pub(crate) revisions: u8,
    pub(crate) replicas: usize,
    pub(crate) made: Made,
}

/// Who makes a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    /// This process, which also changes one that is kept in another way.
    Here,
    /// This process where there is none. One that is there is taken as it is kept.
    WhereMissing,
    /// Another process.
    Elsewhere,
}

/// What is at a key.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    /// Of the value, or of the trace of its end; 0 where nothing is.
    pub(crate) revision: u64,
    pub(crate) value: Option<Bytes>,
}

/// Why nothing was written.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The revision is not the expected one any more.
    Conflict,
    /// Perhaps it was written, perhaps not.
    Unavailable(PublishError),
}

/// What was written to a key, or that its value is gone.
#[derive(Debug)]
pub(crate) struct Fact {
    pub(crate) key: String,
    pub(crate) value: Option<Bytes>,
    pub(crate) revision: u64,
    /// How many facts are waiting behind this one.
    pub(crate) behind: u64,
}

/// All that is in a bucket, then all that changes.
pub(crate) struct Feed {
    messages: push::Ordered,
    prefix: String,
    /// How many keys there were at the beginning.
    pub(crate) held: u64,
}

/// The bucket as it is kept; made where there is none.
async fn as_found(context: &Context, config: kv::Config) -> Result<Store, BoxError> {
    let name = config.bucket.clone();
    match context.get_key_value(&name).await {
        Ok(store) => return Ok(store),
        Err(error) if !is_missing(&error) => return Err(error.into()),
        Err(_) => {}
    }
    match context.create_key_value(config).await {
        Ok(store) => Ok(store),
        // Somebody was quicker, and keeps it in another way.
        Err(error) => context.get_key_value(name).await.map_err(|_| error.into()),
    }
}

/// Whether there is no such bucket, and not merely no answer.
fn is_missing(error: &KeyValueError) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<GetStreamError>());
    matches!(cause.map(|cause| cause.kind()), Some(GetStreamErrorKind::JetStream(answer)) if answer.code() == 404)
}

impl Bucket {
    /// Opens a bucket; creates it, or brings its configuration up to date, where need be. One that is taken as found is never changed.
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
            Made::WhereMissing => as_found(context, config).await,
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

    /// How the line to the server is.
    pub(crate) fn line(&self) -> watch::Receiver<Line> {
        self.0.line.clone()
    }

    /// What is at a key now. The leader of the bucket is asked: another server of a cluster may be a moment behind, and
    /// what is decided on its word would fail when it is written.
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

    /// Writes a value, which lasts for `ttl` (whole seconds) where one is given, if the key's revision is the expected
    /// one. Tells the new revision.
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

    /// The revisions that are kept of a key, oldest first: a request for each. One consumer would tell them all, but stay at the server for a
    /// while after each look, and of these there may only be so many.
    pub(crate) async fn history(&self, key: &str) -> Result<Vec<Bytes>, ControlError> {
        let subject = format!("{}{key}", self.0.store.prefix);
        let (mut next, mut values) = (1, Vec::new());
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

    /// All that is there, then all that changes.
    pub(crate) async fn feed(&self) -> Result<Feed, ControlError> {
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
        Ok(Feed { messages, prefix: self.0.store.prefix.clone(), held })
    }
}

impl Feed {
    /// What comes next.
    pub(crate) async fn next(&mut self) -> Result<Fact, ControlError> {
        let ended =
            || ControlError::Unavailable { action: "go on watching".to_owned(), source: "it ended".into() };
        loop {
            let message = self.messages.next().await.ok_or_else(ended)?;
            let message = message.map_err(ControlError::unavailable("go on watching"))?;
            let info = message.info().map_err(ControlError::unavailable("read the place of a change"))?;
            let (revision, behind) = (info.stream_sequence, info.pending);
            let jetstream::Message { message, .. } = message;
            let Some(key) = message.subject.strip_prefix(self.prefix.as_str()) else { continue };
            let value = (!marks_the_end(message.headers.as_ref())).then_some(message.payload);
            return Ok(Fact { key: key.to_owned(), value, revision, behind });
        }
    }
}

/// Whether a message stands for the end of a value: by deletion, or because its time is over.
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

impl WriteError {
    /// As the error of a call that was to write `what`.
    pub(crate) fn of(self, what: impl FnOnce() -> String) -> ControlError {
        match self {
            Self::Conflict => ControlError::Conflict { what: what() },
            Self::Unavailable(source) => ControlError::unavailable(format!("write {}", what()))(source),
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
