//! IDs of messages: derived from their job, and parsed back.

use std::fmt;
use std::sync::Arc;

use model::JobId;
use serde::{Deserialize, Serialize};

use crate::Queue;

/// The ID of a message, unique over all queues. A sender that repeats a message gives it the same ID, so that it is
/// queued once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageId(Arc<str>);

impl Queue {
    /// The ID of the message about `job` in this queue: `<stage>-<job>`. A job has at most one message with this ID in
    /// each stage.
    pub fn message_of(&self, job: JobId) -> MessageId {
        MessageId::new(format!("{}-{job}", self.stage()))
    }

    /// The ID of one of several messages about `job` in this queue: `<stage>-<job>.<part>`. A worker that repeats the
    /// job must number them alike.
    pub fn part_of(&self, job: JobId, part: u32) -> MessageId {
        MessageId::new(format!("{}-{job}.{part}", self.stage()))
    }
}

impl MessageId {
    /// The ID with this text.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The ID of the dead letter of this message.
    pub fn of_letter(&self) -> Self {
        Self::new(format!("dead-{self}"))
    }

    /// The job of the message, or of the message in the dead letter. Every stage derives message IDs from the job, so a
    /// damaged payload does not matter. None for an ID that no stage made.
    pub fn job(&self) -> Option<JobId> {
        let (_, job) = self.0.rsplit_once('-')?;
        // Job IDs contain no dot.
        job.split('.').next()?.parse().ok()
    }

    /// The text of the ID.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use model::{Origin, SourceId};

    use super::*;

    #[test]
    fn the_messages_of_every_stage_and_their_letters_name_their_job() {
        let source: SourceId = "example-1".parse().unwrap();
        let origin: Origin = "https://a-b.example.org:8443".parse().unwrap();
        let queues = [
            Queue::Fetch { origin, source: source.clone() },
            Queue::Verify { source: source.clone() },
            Queue::Open { source: source.clone() },
            Queue::Unpack { source: source.clone() },
            Queue::Outcomes { source },
        ];
        let job = JobId::fresh();
        let mut names = Vec::new();
        for (queue, stage) in queues.iter().zip(["fetch", "verify", "open", "unpack", "outcomes"]) {
            let id = queue.message_of(job);
            assert_eq!(id.as_str(), format!("{stage}-{job}"));
            assert_eq!(id.job(), Some(job), "{id}");
            let letter = id.of_letter();
            assert_eq!(letter.job(), Some(job), "{letter}");
            names.extend([id, letter]);
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 10, "each has a name of its own: {names:?}");
    }

    #[test]
    fn the_parts_of_a_job_have_names_of_their_own_and_name_their_job() {
        let queue = Queue::Outcomes { source: "example-1".parse().unwrap() };
        let job = JobId::fresh();
        let ids =
            [queue.message_of(job), queue.part_of(job, 0), queue.part_of(job, 1), queue.part_of(job, 10)];
        assert_eq!(ids[3].as_str(), format!("outcomes-{job}.10"));
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(id.job(), Some(job), "{id}");
            assert_eq!(id.of_letter().job(), Some(job), "{id}");
            assert!(!ids[..n].contains(id), "{id}");
        }
    }

    #[test]
    fn a_name_that_no_stage_gave_names_no_job() {
        assert_eq!(MessageId::new("unnamed-17").job(), None);
        assert_eq!(MessageId::new("").job(), None);
    }
}
