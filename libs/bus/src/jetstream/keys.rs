//! Keys that one process owns at a time, and that expire after its death.
//!
//! Writes do not use the client's own calls, which drop the lifetime of a value whose key was deleted before, and
//! cannot renew one. They are publications to the subjects of the bucket.

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

use super::connection::Failure;
use super::publish::acknowledged;

/// How long the delete marker of a returned or expired key stays. The server raises shorter lifetimes of keys to this.
pub(super) const TRACE: Duration = Duration::from_secs(1);

/// A bucket of such keys. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    bucket: Store,
    context: Context,
}

/// The state of a key.
#[derive(Debug)]
struct Slot {
    revision: u64,
    /// The value and its time, by the server's clock.
    value: Option<(Bytes, DateTime)>,
}

/// A key that this process owns. Dropping it returns it.
#[derive(Debug)]
pub(super) struct OwnedKey {
    keys: Keys,
    key: String,
    /// Identifies the owner: the value is unique.
    value: Bytes,
    revision: u64,
    ttl: Duration,
}

impl Keys {
    pub(super) fn new(bucket: Store, context: Context) -> Self {
        Self { bucket, context }
    }

    /// Acquires a key for `ttl` (whole seconds), unless another owner has it. `value` identifies the owner.
    pub(super) async fn take(
        &self,
        key: &str,
        value: Bytes,
        ttl: Duration,
    ) -> Result<Option<OwnedKey>, Failure> {
        let slot = self.read(key).await?;
        let held = |revision| OwnedKey {
            keys: self.clone(),
            key: key.to_owned(),
            value: value.clone(),
            revision,
            ttl,
        };
        match &slot.value {
            // An earlier attempt wrote it, and only the response was lost.
            Some((found, _)) if *found == value => Ok(Some(held(slot.revision))),
            Some(_) => Ok(None),
            None => Ok(self.write(key, value.clone(), slot.revision, ttl).await?.map(held)),
        }
    }

    /// Since when the key has an owner, by the server's clock.
    pub(super) async fn since(&self, key: &str) -> Result<Option<DateTime>, Failure> {
        Ok(self.read(key).await?.value.map(|(_, since)| since))
    }

    async fn read(&self, key: &str) -> Result<Slot, Failure> {
        let subject = format!("{}{key}", self.bucket.prefix);
        // Read from the leader, because another server of a cluster may lag behind.
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

    /// The new revision; none if the key changed since `revision`.
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

    /// Removes a key. False if it changed since `revision`.
    async fn remove(&self, key: &str, revision: u64) -> Result<bool, Failure> {
        let message = PublishMessage::build()
            .header("KV-Operation", "PURGE")
            .header("Nats-Rollup", "sub")
            .ttl(TRACE)
            .expected_last_subject_sequence(revision);
        Ok(self.publish(key, message).await?.is_some())
    }

    async fn publish(&self, key: &str, message: PublishMessage) -> Result<Option<u64>, Failure> {
        let subject = format!("{}{key}", self.bucket.prefix);
        match acknowledged(&self.context, subject, message).await {
            Ok(ack) => Ok(Some(ack.sequence)),
            Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Ok(None),
            Err(error) => Err(Failure::temporary(error)),
        }
    }
}

impl OwnedKey {
    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Renews the key for its lifetime. Returns whether this process still owns it.
    pub(super) async fn renew(&mut self) -> Result<bool, Failure> {
        let written = self.keys.write(&self.key, self.value.clone(), self.revision, self.ttl).await?;
        let revision = match written {
            Some(revision) => Some(revision),
            // It may have been renewed, and only the response was lost.
            None => {
                let slot = self.keys.read(&self.key).await?;
                slot.value.filter(|(value, _)| *value == self.value).map(|_| slot.revision)
            }
        };
        self.revision = revision.unwrap_or(self.revision);
        Ok(revision.is_some())
    }

    /// Returns the key, and waits until other processes can acquire it. After a failure the key expires.
    pub(super) async fn give_back(mut self) {
        let keys = self.keys.clone();
        // Taken out, so that the following drop has nothing to return.
        let key = std::mem::take(&mut self.key);
        remove(&keys, &key, &self.value, self.revision).await;
    }
}

impl Drop for OwnedKey {
    fn drop(&mut self) {
        if self.key.is_empty() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let keys = self.keys.clone();
        let key = std::mem::take(&mut self.key);
        let (value, revision) = (self.value.clone(), self.revision);
        runtime.spawn(async move { remove(&keys, &key, &value, revision).await });
    }
}

/// Returns a key. A renewal that was cut off may have landed without its owner's knowledge: then the key has a newer
/// revision and the same value, and is still returned. Otherwise it would block others for its lifetime.
async fn remove(keys: &Keys, key: &str, value: &Bytes, revision: u64) {
    match keys.remove(key, revision).await {
        Ok(true) => return,
        Ok(false) => {}
        Err(error) => return tracing::debug!(?error, key, "cannot give a key back: it expires"),
    }
    let renewed = match keys.read(key).await {
        Ok(slot) => slot.value.filter(|(found, _)| found == value).map(|_| slot.revision),
        Err(error) => return tracing::debug!(?error, key, "cannot give a key back: it expires"),
    };
    // Without such a value it has expired, and may have another owner.
    if let Some(revision) = renewed
        && !matches!(keys.remove(key, revision).await, Ok(true))
    {
        tracing::debug!(key, "cannot give a key back: it expires");
    }
}

/// Whether a message marks the end of a key: it was returned, or it expired.
fn marks_the_end(headers: &HeaderMap) -> bool {
    headers.get("KV-Operation").is_some() || headers.get("Nats-Marker-Reason").is_some()
}

#[cfg(test)]
mod tests {
    use testkit::servers::NatsFixture;

    use super::super::tests::connect;
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[tokio::test]
    async fn a_key_whose_renewal_was_cut_off_is_returned_at_once() {
        let server = NatsFixture::get().await;
        let bus = connect(&server.url, "keys-renewal").await;
        let keys = &bus.0.keys;
        let held = keys.take("a.0", "one".into(), LONG).await.unwrap().unwrap();
        // The renewal has landed, and its owner never learned of it.
        let renewed = keys.write("a.0", "one".into(), held.revision, LONG).await.unwrap();
        assert!(renewed.is_some_and(|renewed| renewed > held.revision));
        held.give_back().await;
        assert!(keys.take("a.0", "two".into(), LONG).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn the_key_of_another_owner_is_not_returned() {
        let server = NatsFixture::get().await;
        let bus = connect(&server.url, "keys-other").await;
        let keys = &bus.0.keys;
        let lost = keys.take("a.0", "one".into(), LONG).await.unwrap().unwrap();
        assert!(keys.remove("a.0", lost.revision).await.unwrap());
        let held = keys.take("a.0", "two".into(), LONG).await.unwrap().unwrap();
        lost.give_back().await;
        assert!(keys.take("a.0", "three".into(), LONG).await.unwrap().is_none());
        held.give_back().await;
    }
}
