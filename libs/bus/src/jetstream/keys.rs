//! Keys that one process has at a time, and that end by themselves after it.
//!
//! Writes do not go through the client's own calls, which drop the lifetime of a value whose key was deleted before, and
//! cannot renew one: they are publications to the bucket's subjects.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::datetime::DateTime;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::PublishErrorKind;
use async_nats::jetstream::kv::Store;
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use bytes::Bytes;
use tokio::runtime::Handle;

use super::link::Failure;

/// How long the trace of a key stays that was given back or has ended. The server raises shorter lifetimes of keys to this.
pub(super) const TRACE: Duration = Duration::from_secs(1);

/// A bucket of such keys. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    bucket: Store,
    context: Context,
}

/// What is at a key.
#[derive(Debug)]
struct Slot {
    revision: u64,
    /// What somebody wrote there, and when, by the server's clock.
    value: Option<(Bytes, DateTime)>,
}

/// A key that this process has, given back when dropped.
#[derive(Debug)]
pub(super) struct Held {
    keys: Keys,
    key: String,
    /// Whose it is: no other holder says the same.
    value: Bytes,
    revision: u64,
    ttl: Duration,
}

impl Keys {
    pub(super) fn new(bucket: Store, context: Context) -> Self {
        Self { bucket, context }
    }

    /// Takes a key for `ttl` (whole seconds), unless somebody has it. `value` names the holder.
    pub(super) async fn take(&self, key: &str, value: Bytes, ttl: Duration) -> Result<Option<Held>, Failure> {
        let slot = self.read(key).await?;
        let held =
            |revision| Held { keys: self.clone(), key: key.to_owned(), value: value.clone(), revision, ttl };
        match &slot.value {
            // What an earlier try wrote, whose answer was lost.
            Some((found, _)) if *found == value => Ok(Some(held(slot.revision))),
            Some(_) => Ok(None),
            None => Ok(self.write(key, value.clone(), slot.revision, ttl).await?.map(held)),
        }
    }

    /// Since when somebody has a key, by the server's clock.
    pub(super) async fn since(&self, key: &str) -> Result<Option<DateTime>, Failure> {
        Ok(self.read(key).await?.value.map(|(_, since)| since))
    }

    async fn read(&self, key: &str) -> Result<Slot, Failure> {
        let subject = format!("{}{key}", self.bucket.prefix);
        // The leader is asked: another server of a cluster may be a moment behind.
        match self.bucket.stream.get_last_raw_message_by_subject(&subject).await {
            Ok(message) => {
                let is_over = marks_the_end(&message.headers);
                let value = (!is_over).then_some((message.payload, message.time));
                Ok(Slot { revision: message.sequence, value })
            }
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
                Ok(Slot { revision: 0, value: None })
            }
            Err(error) => Err(Failure::temporary(error)),
        }
    }

    /// The new revision; none when the key is not any more as it was at `revision`.
    async fn write(
        &self,
        key: &str,
        value: Bytes,
        revision: u64,
        ttl: Duration,
    ) -> Result<Option<u64>, Failure> {
        let message =
            PublishMessage::build().payload(value).ttl(ttl).expected_last_subject_sequence(revision);
        self.publish(key, message).await
    }

    async fn publish(&self, key: &str, message: PublishMessage) -> Result<Option<u64>, Failure> {
        let sent = self.context.send_publish(format!("{}{key}", self.bucket.prefix), message).await;
        let acknowledged = match sent {
            Ok(acknowledged) => acknowledged.await,
            Err(error) => Err(error),
        };
        match acknowledged {
            Ok(ack) => Ok(Some(ack.sequence)),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(None),
            Err(error) => Err(Failure::temporary(error)),
        }
    }
}

impl Held {
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Has the key for as long again. Says whether it is still this process's.
    pub(super) async fn renew(&mut self) -> Result<bool, Failure> {
        let written = self.keys.write(&self.key, self.value.clone(), self.revision, self.ttl).await?;
        let revision = match written {
            Some(revision) => Some(revision),
            // Perhaps it was renewed, and only the answer was lost.
            None => {
                let slot = self.keys.read(&self.key).await?;
                slot.value.filter(|(value, _)| *value == self.value).map(|_| slot.revision)
            }
        };
        self.revision = revision.unwrap_or(self.revision);
        Ok(revision.is_some())
    }

    /// Gives the key back, and waits until others can have it. What fails ends by itself.
    pub(super) async fn give_back(mut self) {
        let keys = self.keys.clone();
        // Taken out, so that the drop that follows finds nothing to give back.
        let (key, revision) = (std::mem::take(&mut self.key), self.revision);
        remove(&keys, &key, revision).await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let (false, Ok(runtime)) = (self.key.is_empty(), Handle::try_current()) else { return };
        let (keys, key, revision) = (self.keys.clone(), std::mem::take(&mut self.key), self.revision);
        runtime.spawn(async move { remove(&keys, &key, revision).await });
    }
}

async fn remove(keys: &Keys, key: &str, revision: u64) {
    let message = PublishMessage::build()
        .header("KV-Operation", "PURGE")
        .header("Nats-Rollup", "sub")
        .ttl(TRACE)
        .expected_last_subject_sequence(revision);
    if keys.publish(key, message).await.is_err() {
        tracing::debug!(key, "cannot give a key back: it ends by itself");
    }
}

/// Whether a message stands for the end of a key: because it was given back, or its time is over.
fn marks_the_end(headers: &HeaderMap) -> bool {
    headers.get("KV-Operation").is_some() || headers.get("Nats-Marker-Reason").is_some()
}
