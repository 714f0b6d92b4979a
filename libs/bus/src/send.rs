//! A job, handed to the next stage.

use model::JobId;

use crate::{Bus, BusError, Published, Queue};

/// Queues a message about `job`, under the name that its stage gives it: sent again, it is queued once.
///
/// # Errors
/// [`BusError::TooLarge`], [`BusError::Unavailable`].
pub async fn send<M: model::Message>(
    bus: &dyn Bus,
    queue: Queue,
    job: JobId,
    message: &M,
) -> Result<Published, BusError> {
    let id = queue.message_of(job);
    bus.publish(queue, id, model::encode(message).into()).await
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
    message: &M,
) -> Result<Published, BusError> {
    let id = queue.part_of(job, part);
    bus.publish(queue, id, model::encode(message).into()).await
}
