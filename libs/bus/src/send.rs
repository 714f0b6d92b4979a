//! Sends the message of a job to the next stage.

use std::sync::Arc;

use model::JobId;

use crate::{Bus, BusError, Payload, Published, Queue};

/// Queues a message about `job`, with an ID derived from its stage. If it is sent again, it is queued once. A reader in
/// the same process gets this very message.
///
/// # Errors
/// [`BusError::TooLarge`], [`BusError::Unavailable`].
pub async fn send<M: model::Message>(
    bus: &dyn Bus,
    queue: Queue,
    job: JobId,
    message: Arc<M>,
) -> Result<Published, BusError> {
    let id = queue.message_of(job);
    bus.publish(queue, id, Payload::of(message)).await
}

/// Queues one of several messages about `job`, with an ID that includes `part`. If it is sent again, it is queued once.
///
/// # Errors
/// As [`send`].
pub async fn send_part<M: model::Message>(
    bus: &dyn Bus,
    queue: Queue,
    job: JobId,
    part: u32,
    message: Arc<M>,
) -> Result<Published, BusError> {
    let id = queue.part_of(job, part);
    bus.publish(queue, id, Payload::of(message)).await
}
