//! Notifications that others have posted to inboxes. They are stored for a while, within limits that the server
//! enforces.

mod notification;

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{self, DiscardPolicy, LastRawMessageErrorKind, StorageType, Stream};
use futures::StreamExt as _;
use model::{Persisted, SourceId};

use crate::error::ControlError;

pub use notification::{KeptNotification, NotificationId, NotificationIdError};

/// The header with the digest of a notification. The server drops a message with a known digest as a duplicate.
const DIGEST: &str = "Nats-Msg-Id";
/// How long a repeated notification counts as the same.
const REPEATED: Duration = Duration::from_secs(120);
/// How long the server keeps the consumer of a reader that is gone.
const READER_GONE: Duration = Duration::from_secs(10);
/// Stands for the common inbox in subjects. No Source has this ID.
const FOR_ALL: &str = "_";

/// The limits of stored notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxLimits {
    /// The most from one sender in one inbox. The oldest are dropped first.
    pub max_per_sender: u32,
    /// How long each is stored.
    pub kept: Duration,
    /// The most bytes of all together. The oldest are dropped first. 0 = no limit of their own.
    pub bytes: u64,
}

/// The stored notifications.
#[derive(Debug, Clone)]
pub struct Inboxes {
    context: Context,
    stream: Stream,
    prefix: String,
}

/// A page of an inbox, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InboxPage {
    /// The IDs of the notifications.
    pub ids: Vec<NotificationId>,
    /// Whether there are more behind them.
    pub more: bool,
}

impl Inboxes {
    /// Opens the stream, and sets the limits. The newest limits apply.
    pub(crate) async fn open(
        context: &Context,
        namespace: &str,
        replicas: usize,
        limits: InboxLimits,
    ) -> Result<Self, ControlError> {
        let prefix = format!("{namespace}-{}", Persisted::Inbox.name());
        let config = stream::Config {
            name: prefix.clone(),
            description: Some("Notifications that others have left".to_owned()),
            subjects: vec![format!("{prefix}.*.*")],
            storage: StorageType::File,
            num_replicas: replicas,
            discard: DiscardPolicy::Old,
            max_messages_per_subject: limits.max_per_sender.into(),
            max_messages: -1,
            max_age: limits.kept,
            max_bytes: if limits.bytes == 0 { -1 } else { limits.bytes.try_into().unwrap_or(i64::MAX) },
            duplicate_window: REPEATED.min(limits.kept),
            ..stream::Config::default()
        };
        let made = context.create_or_update_stream(config).await;
        made.map_err(ControlError::unavailable(format!("open the stream {prefix}")))?;
        let stream = context.get_stream(&prefix).await;
        let stream = stream.map_err(ControlError::unavailable(format!("open the stream {prefix}")))?;
        Ok(Self { context: context.clone(), stream, prefix })
    }

    /// Stores a notification. When this returns, it or its duplicate is on the server's disk.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`]: it may be stored or not.
    pub async fn keep(&self, notification: &KeptNotification) -> Result<NotificationId, ControlError> {
        let digest = notification.digest();
        let message = PublishMessage::build().message_id(&digest).payload(model::encode(notification).into());
        let subject =
            self.subject(notification.inbox.as_ref(), &notification::sender_token(&notification.sender));
        let action = "keep a notification";
        let sent =
            self.context.send_publish(subject, message).await.map_err(ControlError::unavailable(action))?;
        let kept = sent.await.map_err(ControlError::unavailable(action))?;
        Ok(NotificationId::new(kept.sequence, &digest))
    }

    /// A notification of an inbox.
    ///
    /// # Errors
    /// [`ControlError::Absent`] when there is none with this ID, or it was dropped; [`ControlError::Unavailable`],
    /// [`ControlError::Unreadable`].
    pub async fn get(
        &self,
        inbox: Option<&SourceId>,
        id: &NotificationId,
    ) -> Result<KeptNotification, ControlError> {
        let absent = || ControlError::Absent { what: format!("notification {id} (kept for a while only)") };
        let message = match self.stream.get_raw_message(id.sequence).await {
            Ok(message) => message,
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => return Err(absent()),
            Err(error) => return Err(ControlError::unavailable("read a notification")(error)),
        };
        let is_of_inbox = message.subject.starts_with(&self.subject(inbox, ""));
        if !is_of_inbox || name(message.sequence, &message.headers).as_ref() != Some(id) {
            return Err(absent());
        }
        model::decode(&message.payload).map_err(|source| ControlError::Unreadable {
            bucket: self.prefix.clone(),
            key: id.to_string(),
            source,
        })
    }

    /// The notifications of an inbox that came after `after`, of one sender or of all, limited in number. No bodies are
    /// read.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn list(
        &self,
        inbox: Option<&SourceId>,
        sender: Option<&str>,
        after: Option<&NotificationId>,
        limit: usize,
    ) -> Result<InboxPage, ControlError> {
        let action = "list notifications";
        let sender = sender.map_or_else(|| "*".to_owned(), notification::sender_token);
        let config = pull::Config {
            description: Some("a page of an inbox".to_owned()),
            deliver_policy: match after {
                Some(after) => DeliverPolicy::ByStartSequence { start_sequence: after.sequence + 1 },
                None => DeliverPolicy::All,
            },
            ack_policy: AckPolicy::None,
            filter_subject: self.subject(inbox, &sender),
            headers_only: true,
            memory_storage: true,
            num_replicas: 1,
            inactive_threshold: READER_GONE,
            ..pull::Config::default()
        };
        let consumer =
            self.stream.create_consumer(config).await.map_err(ControlError::unavailable(action))?;
        let mut messages = consumer
            .fetch()
            .max_messages(limit + 1)
            .messages()
            .await
            .map_err(ControlError::unavailable(action))?;
        let mut ids = Vec::new();
        let mut seen = 0;
        while let Some(message) = messages.next().await {
            let message = message.map_err(ControlError::unavailable(action))?;
            seen += 1;
            let sequence = message.info().map_err(ControlError::unavailable(action))?.stream_sequence;
            ids.extend(message.headers.as_ref().and_then(|headers| name(sequence, headers)));
        }
        // If this fails, the server deletes it a little later.
        let _ = self.stream.delete_consumer(&consumer.cached_info().name).await;
        ids.truncate(limit);
        Ok(InboxPage { ids, more: seen > limit })
    }

    fn subject(&self, inbox: Option<&SourceId>, sender: &str) -> String {
        format!("{}.{}.{sender}", self.prefix, inbox.map_or(FOR_ALL, SourceId::as_str))
    }
}

/// The ID of the notification in a message.
fn name(sequence: u64, headers: &HeaderMap) -> Option<NotificationId> {
    Some(NotificationId::new(sequence, headers.get(DIGEST)?.as_str()))
}
