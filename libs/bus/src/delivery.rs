//! A message that was delivered to a worker.

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use crate::{BusError, MessageId, Payload, Queue};

/// The message, as a worker reads it.
#[derive(Debug, Clone)]
pub struct Message {
    /// The ID it was published under.
    pub id: MessageId,
    /// The queue it was published to.
    pub queue: Queue,
    /// The payload.
    pub payload: Payload,
    /// The number of this delivery, from 1.
    pub attempt: u32,
}

/// A message that was delivered to a worker. Dropping it without settling counts as the death of the worker: the
/// message is redelivered, at the latest after the consumer's `ack_wait`.
#[derive(Debug)]
pub struct Delivery {
    message: Message,
    receipt: Box<dyn Receipt>,
    settled: AtomicBool,
}

/// Settles a delivery: the part that each bus implements.
///
/// A delivery whose `ack_wait` is over may still be acknowledged or terminated, since its work is done: the message is
/// not redelivered. Any other late answer costs another delivery at most.
#[async_trait]
pub trait Receipt: Debug + Send + Sync {
    /// The message is done.
    async fn ack(&self) -> Result<(), BusError>;
    /// Redeliver the message, not before `delay` has passed.
    async fn nak(&self, delay: Duration) -> Result<(), BusError>;
    /// The worker lives: `ack_wait` starts anew.
    async fn progress(&self) -> Result<(), BusError>;
    /// Never redeliver the message.
    async fn term(&self) -> Result<(), BusError>;
    /// The delivery was dropped without an answer. A bus that cannot act at once relies on `ack_wait`.
    fn abandon(&self) {}
}

impl Delivery {
    /// The delivery of `message`, to be settled through `receipt`.
    pub fn new(message: Message, receipt: Box<dyn Receipt>) -> Self {
        Self { message, receipt, settled: AtomicBool::new(false) }
    }

    /// The message is done, and its results are stored. This is the last step of a worker.
    ///
    /// # Errors
    /// [`BusError::Unavailable`]: it will be redelivered.
    pub async fn ack(&self) -> Result<(), BusError> {
        self.receipt.ack().await?;
        self.settled.store(true, Ordering::Release);
        Ok(())
    }

    /// Requests a redelivery, not before `delay` has passed. Until then the message counts as in flight.
    ///
    /// # Errors
    /// [`BusError::Unavailable`]: it will be redelivered when `ack_wait` is over.
    pub async fn nak(&self, delay: Duration) -> Result<(), BusError> {
        self.receipt.nak(delay).await?;
        self.settled.store(true, Ordering::Release);
        Ok(())
    }

    /// Reports that the work goes on: `ack_wait` starts anew.
    ///
    /// # Errors
    /// [`BusError::Unavailable`].
    pub async fn progress(&self) -> Result<(), BusError> {
        self.receipt.progress().await
    }

    /// Drops the message for good. Dead-letter it first ([`DeadLetter::bury`](crate::DeadLetter::bury)), or it is lost.
    ///
    /// # Errors
    /// [`BusError::Unavailable`]: it will be redelivered.
    pub async fn term(&self) -> Result<(), BusError> {
        self.receipt.term().await?;
        self.settled.store(true, Ordering::Release);
        Ok(())
    }
}

impl Deref for Delivery {
    type Target = Message;

    fn deref(&self) -> &Message {
        &self.message
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if !*self.settled.get_mut() {
            self.receipt.abandon();
        }
    }
}
