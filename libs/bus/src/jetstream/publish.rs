//! Publishing: a message is queued when the server confirms it, and a full queue makes its publisher wait.

use std::time::Duration;

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::{Context, ErrorCode};
use async_nats::{HeaderValue, header, jetstream};
use bytes::Bytes;
use tokio::time::Instant;

use super::Shared;
use super::connection::Failure;
use crate::backoff::Backoff;
use crate::{BusError, Filter, MAX_PAYLOAD, MessageId, Published, Queue};

/// The first wait for room in a full queue. It doubles up to the longest, because the server does not report free room.
const FIRST_WAIT: Duration = Duration::from_millis(10);
const LONGEST_WAIT: Duration = Duration::from_millis(500);
/// A publisher that waits longer than this logs it.
const LONG: Duration = Duration::from_secs(60);

/// The server's answer to a publish.
enum Sent {
    Queued { duplicate: bool },
    Full,
}

impl Shared {
    pub(super) async fn publish(
        &self,
        queue: Queue,
        id: MessageId,
        payload: Bytes,
    ) -> Result<Published, BusError> {
        if payload.len() > MAX_PAYLOAD {
            return Err(BusError::TooLarge { queue, bytes: payload.len(), limit: MAX_PAYLOAD });
        }
        let action = || format!("queue message {id} for {queue}");
        let Ok(name) = id.as_str().parse::<HeaderValue>() else {
            let why = "its name has a line break".to_owned();
            return Err(BusError::Refused { action: action(), why });
        };
        let message = PublishMessage::build().header(header::NATS_MESSAGE_ID, name).payload(payload);
        let subject = self.names.subject(&queue.subject());
        let filter = queue.filter();
        let opened = self.opened_spec(&filter);
        let begin = Instant::now();
        let mut backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT);
        let mut told = false;
        let duplicate = loop {
            match self.link.with_retries(action, || self.send(&subject, message.clone())).await? {
                Sent::Queued { duplicate } => break duplicate,
                Sent::Full => {
                    if !told && begin.elapsed() > LONG {
                        told = true;
                        tracing::warn!(%queue, "the queue is full, and nothing in it is acknowledged");
                    }
                    backoff.pause().await;
                }
            }
        };
        if let (Some(spec), Filter::Fetch(_)) = (opened, &filter)
            && self.opened_spec(&filter).is_none()
        {
            // Another process closed the origin queue while the message was on its way.
            self.open(spec).await?;
        }
        Ok(Published { duplicate })
    }

    async fn send(&self, subject: &str, message: PublishMessage) -> Result<Sent, Failure> {
        match acknowledged(&self.link.context, subject.to_owned(), message).await {
            Ok(ack) => Ok(Sent::Queued { duplicate: ack.duplicate }),
            Err(error) if error.kind() == PublishErrorKind::StreamNotFound => {
                // No stream listens on the subject: JetStream is starting, or the server has lost its store with the
                // streams.
                self.restore().await;
                Err(Failure::temporary(error))
            }
            Err(error) => match answer(&error) {
                Some(answer) if answer.error_code() == ErrorCode::STREAM_STORE_FAILED => Ok(Sent::Full),
                Some(answer) => Err(Failure::answered(answer)),
                None => Err(Failure::temporary(error)),
            },
        }
    }
}

/// Publishes, and waits until the server confirms it.
pub(super) async fn acknowledged(
    context: &Context,
    subject: String,
    message: PublishMessage,
) -> Result<PublishAck, PublishError> {
    context.send_publish(subject, message).await?.await
}

/// The JetStream error in a failed publish.
fn answer(error: &PublishError) -> Option<&jetstream::Error> {
    std::error::Error::source(error)?.downcast_ref()
}
