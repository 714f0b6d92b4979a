//! Settles deliveries of the JetStream bus.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_nats::Subject;
use async_nats::jetstream::AckKind;
use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

use super::connection::Link;
use crate::{BusError, Receipt};

/// The time limit of a progress report. A late one is skipped, because the next follows soon.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);

/// Settles one delivery.
#[derive(Debug)]
pub(super) struct JetStreamReceipt {
    link: Link,
    reply: Subject,
    ack_wait: Duration,
    /// When the server last received a progress report.
    heard: Mutex<Instant>,
}

impl JetStreamReceipt {
    pub(super) fn new(link: Link, reply: Subject, ack_wait: Duration) -> Self {
        Self { link, reply, ack_wait, heard: Mutex::new(Instant::now()) }
    }

    /// Whether the server may have redelivered the message by now: a nak would take it away from its new worker.
    fn is_late(&self) -> bool {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).elapsed() >= self.ack_wait
    }
}

#[async_trait]
impl Receipt for JetStreamReceipt {
    async fn ack(&self) -> Result<(), BusError> {
        self.link.confirm(&self.reply, AckKind::Ack.into(), "acknowledge a message").await
    }

    async fn nak(&self, delay: Duration) -> Result<(), BusError> {
        if self.is_late() {
            return Ok(());
        }
        let delay = (!delay.is_zero()).then_some(delay);
        self.link.confirm(&self.reply, AckKind::Nak(delay).into(), "put a message back").await
    }

    async fn progress(&self) -> Result<(), BusError> {
        let unavailable = |source| BusError::Unavailable { action: "keep a message".to_owned(), source };
        let sent = self.link.client.publish(self.reply.clone(), AckKind::Progress.into());
        match timeout(SIGN_OF_LIFE, sent).await {
            Ok(Ok(())) => {
                *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                Ok(())
            }
            Ok(Err(error)) => Err(unavailable(error.into())),
            Err(late) => Err(unavailable(late.into())),
        }
    }

    async fn term(&self) -> Result<(), BusError> {
        self.link.confirm(&self.reply, AckKind::Term.into(), "drop a message").await
    }

    fn abandon(&self) {
        if self.is_late() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        let client = self.link.client.clone();
        let reply = self.reply.clone();
        runtime.spawn(async move {
            // If it is lost, the server notices the silence.
            let _ = client.publish(reply, AckKind::Nak(None).into()).await;
        });
    }
}
