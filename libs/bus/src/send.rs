//! A job, handed to the next stage.

use std::sync::Arc;

use model::JobId;

use crate::{Bus, BusError, Payload, Published, Queue};

/// Queues a message about `job`, under the name that its stage gives it: sent again, it is queued once.
/// Where its reader is of the same process, that gets this very message.
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

/// Queues one of several messages about `job`, under the name of its `part`: sent again, it is queued once.
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
