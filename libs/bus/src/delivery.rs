//! A message in a worker's hands.

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use crate::{BusError, MessageId, Payload, Queue};

/// What a worker gets to read.
#[derive(Debug, Clone)]
pub struct Message {
    /// The name it was published under.
    pub id: MessageId,
    /// Where it was published.
    pub queue: Queue,
    /// What was published.
    pub payload: Payload,
    /// Which delivery this is, from 1.
    pub attempt: u32,
}

/// A message in a worker's hands. Dropped without a word, it counts as held by a worker that died: it is handed out again,
/// at the latest when the consumer's `ack_wait` is over.
#[derive(Debug)]
pub struct Delivery {
    message: Message,
    receipt: Box<dyn Receipt>,
    settled: AtomicBool,
}

/// How a delivery is answered: the part that each bus brings.
///
/// A delivery whose `ack_wait` is over may still be acknowledged or terminated, since its work is done: the message is not
/// handed out again. Any other late answer costs another delivery at most.
#[async_trait]
pub trait Receipt: Debug + Send + Sync {
    /// The message is done.
    async fn ack(&self) -> Result<(), BusError>;
    /// The message is to be handed out again, not before `delay` has passed.
    async fn nak(&self, delay: Duration) -> Result<(), BusError>;
    /// The worker lives: `ack_wait` starts anew.
    async fn progress(&self) -> Result<(), BusError>;
    /// The message is never to be handed out again.
    async fn term(&self) -> Result<(), BusError>;
    /// The delivery was dropped without an answer. Where nothing can be done at once, `ack_wait` will tell.
    fn abandon(&self) {}
}

impl Delivery {
    /// The delivery of `message`, to be answered through `receipt`.
    pub fn new(message: Message, receipt: Box<dyn Receipt>) -> Self {
        Self { message, receipt, settled: AtomicBool::new(false) }
    }

    /// The message is done, and what follows from it is safe: the last thing a worker does.
    ///
    /// # Errors
    /// [`BusError::Unavailable`]: it will be handed out again.
    pub async fn ack(&self) -> Result<(), BusError> {
        self.receipt.ack().await?;
        self.settled.store(true, Ordering::Release);
        Ok(())
    }

    /// Not now: the message is handed out again, not before `delay` has passed. It keeps its place among those in flight.
    ///
    /// # Errors
    /// [`BusError::Unavailable`]: it will be handed out again when `ack_wait` is over.
    pub async fn nak(&self, delay: Duration) -> Result<(), BusError> {
        self.receipt.nak(delay).await?;
        self.settled.store(true, Ordering::Release);
        Ok(())
    }

    /// Still working on it: `ack_wait` starts anew.
    ///
    /// # Errors
    /// [`BusError::Unavailable`].
    pub async fn progress(&self) -> Result<(), BusError> {
        self.receipt.progress().await
    }

    /// Never again: the message is dropped. Bury it first ([`DeadLetter::bury`](crate::DeadLetter::bury)), or it is lost.
    ///
    /// # Errors
    /// [`BusError::Unavailable`]: it will be handed out again.
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
