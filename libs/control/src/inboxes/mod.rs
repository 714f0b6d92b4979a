//! Notifications that others have left in inboxes: kept for a while, within bounds that the server holds.

mod notification;

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{self, DiscardPolicy, LastRawMessageErrorKind, StorageType, Stream};
use futures::StreamExt as _;
use model::SourceId;

use crate::ControlError;

pub use notification::{KeptNotification, NotificationId, NotificationIdError};

/// What carries the digest of a notification; the server takes two messages with the same for one.
const DIGEST: &str = "Nats-Msg-Id";
/// How long the same notification again is the one that is there.
const REPEATED: Duration = Duration::from_secs(120);
/// How long the server remembers a reader that is gone.
const READER_GONE: Duration = Duration::from_secs(10);
/// What stands for the inbox that is for all: no Source has such a name.
const FOR_ALL: &str = "_";

/// How many notifications are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxLimits {
    /// The most of one sender in one inbox; the oldest make room.
    pub most_per_sender: u32,
    /// How long each is kept.
    pub kept: Duration,
    /// The most that all of them take, in bytes; the oldest make room. 0 = no limit of their own.
    pub bytes: u64,
}

/// The notifications that are kept.
#[derive(Debug, Clone)]
pub struct Inboxes {
    context: Context,
    stream: Stream,
    prefix: String,
}

/// A page of an inbox, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InboxPage {
    /// The names of the notifications.
    pub ids: Vec<NotificationId>,
    /// Whether there are more behind them.
    pub more: bool,
}

impl Inboxes {
    /// Opens them, and sets the limits: the newest word counts.
    pub(crate) async fn open(
        context: &Context,
        namespace: &str,
        replicas: usize,
        limits: InboxLimits,
    ) -> Result<Self, ControlError> {
        let prefix = format!("{namespace}-inbox");
        let config = stream::Config {
            name: prefix.clone(),
            description: Some("Notifications that others have left".to_owned()),
            subjects: vec![format!("{prefix}.*.*")],
            storage: StorageType::File,
            num_replicas: replicas,
            discard: DiscardPolicy::Old,
            max_messages_per_subject: limits.most_per_sender.into(),
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

    /// Keeps a notification. When this returns, it is on the server's disk, or the one that is the same.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`]: perhaps it is kept, perhaps not.
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
    /// [`ControlError::Absent`] when there is none of this name, or not any more; [`ControlError::Unavailable`], [`ControlError::Unreadable`].
    pub async fn get(
        &self,
        inbox: Option<&SourceId>,
        id: &NotificationId,
    ) -> Result<KeptNotification, ControlError> {
        let absent =
            || ControlError::Absent { what: format!("notification {id}; they are kept for a while only") };
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

    /// The notifications of an inbox, of one sender or of all, that were left after `after`, at most so many. No bodies are read.
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
        // If this fails, the server does it a little later.
        let _ = self.stream.delete_consumer(&consumer.cached_info().name).await;
        ids.truncate(limit);
        Ok(InboxPage { ids, more: seen > limit })
    }

    fn subject(&self, inbox: Option<&SourceId>, sender: &str) -> String {
        format!("{}.{}.{sender}", self.prefix, inbox.map_or(FOR_ALL, SourceId::as_str))
    }
}

/// The name of the notification in a message.
fn name(sequence: u64, headers: &HeaderMap) -> Option<NotificationId> {
    Some(NotificationId::new(sequence, headers.get(DIGEST)?.as_str()))
}
