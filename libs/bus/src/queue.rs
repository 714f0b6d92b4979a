//! Queues of messages, and the filters that workers pull from.

use std::fmt;

use model::{Origin, Persisted, SourceId};

/// A queue of messages: a stage of the pipeline, for one Source.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Queue {
    /// Resources to fetch from one origin.
    Fetch {
        /// The origin.
        origin: Origin,
        /// The Source.
        source: SourceId,
    },
    /// Bitstreams to verify.
    Verify {
        /// The Source.
        source: SourceId,
    },
    /// Packages to open. A package that can only be read from its beginning is unpacked at once, which may take hours.
    Open {
        /// The Source.
        source: SourceId,
    },
    /// Slices of opened packages to read.
    Unpack {
        /// The Source.
        source: SourceId,
    },
    /// Outcomes of the Source's resources; its owner settles them.
    Outcomes {
        /// The Source.
        source: SourceId,
    },
    /// Change Notifications of hubs about the Source; its owner plans them. No later stage follows from them, so they
    /// do not count as under way.
    Notices {
        /// The Source.
        source: SourceId,
    },
    /// Messages of the Source that were given up, each a [`DeadLetter`](crate::DeadLetter).
    Dead {
        /// The Source.
        source: SourceId,
    },
}

/// The queues that a consumer takes from. Every queue belongs to exactly one filter, so no two consumers overlap.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Filter {
    /// Fetch jobs of one origin, of all Sources.
    Fetch(Origin),
    /// Verify jobs of all Sources.
    Verify,
    /// Unpack jobs of all Sources that open packages.
    Open,
    /// Unpack jobs of all Sources that read slices. None of them waits behind a package that is being opened.
    Unpack,
    /// The outcomes of one Source.
    Outcomes(SourceId),
    /// The Change Notifications of one Source.
    Notices(SourceId),
    /// The dead letters of one Source.
    Dead(SourceId),
}

impl Queue {
    /// The subject of its messages: `fetch.<origin>.<source>`, `verify.<source>` and so on.
    pub fn subject(&self) -> String {
        match self {
            Self::Fetch { origin, source } => format!("{}.{}.{source}", self.stage(), origin.token()),
            Self::Verify { source }
            | Self::Open { source }
            | Self::Unpack { source }
            | Self::Outcomes { source }
            | Self::Notices { source }
            | Self::Dead { source } => format!("{}.{source}", self.stage()),
        }
    }

    /// The name of the stage, which prefixes its subjects and the IDs of its messages.
    pub(crate) fn stage(&self) -> &'static str {
        match self {
            Self::Fetch { .. } => Persisted::FetchJobs.name(),
            Self::Verify { .. } => Persisted::VerifyJobs.name(),
            Self::Open { .. } => Persisted::OpenJobs.name(),
            Self::Unpack { .. } => Persisted::UnpackJobs.name(),
            Self::Outcomes { .. } => Persisted::Outcomes.name(),
            Self::Notices { .. } => Persisted::ChangeNotifications.name(),
            Self::Dead { .. } => Persisted::DeadLetters.name(),
        }
    }

    /// The filter of the queue.
    pub fn filter(&self) -> Filter {
        match self {
            Self::Fetch { origin, .. } => Filter::Fetch(origin.clone()),
            Self::Verify { .. } => Filter::Verify,
            Self::Open { .. } => Filter::Open,
            Self::Unpack { .. } => Filter::Unpack,
            Self::Outcomes { source } => Filter::Outcomes(source.clone()),
            Self::Notices { source } => Filter::Notices(source.clone()),
            Self::Dead { source } => Filter::Dead(source.clone()),
        }
    }

    /// The Source of the queue.
    pub fn source(&self) -> &SourceId {
        match self {
            Self::Fetch { source, .. }
            | Self::Verify { source }
            | Self::Open { source }
            | Self::Unpack { source }
            | Self::Outcomes { source }
            | Self::Notices { source }
            | Self::Dead { source } => source,
        }
    }
}

impl Filter {
    /// The subjects of the filter, with `*` in place of the Source where it takes all Sources.
    pub fn subject(&self) -> String {
        match self {
            Self::Fetch(origin) => format!("fetch.{}.*", origin.token()),
            Self::Verify => "verify.*".to_owned(),
            Self::Open => "open.*".to_owned(),
            Self::Unpack => "unpack.*".to_owned(),
            Self::Outcomes(source) => format!("outcomes.{source}"),
            Self::Notices(source) => format!("notices.{source}"),
            Self::Dead(source) => format!("dead.{source}"),
        }
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.subject())
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.subject())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues() -> Vec<Queue> {
        let source: SourceId = "example-1".parse().unwrap();
        let origin: Origin = "https://a_b.example.org:8443".parse().unwrap();
        vec![
            Queue::Fetch { origin, source: source.clone() },
            Queue::Verify { source: source.clone() },
            Queue::Open { source: source.clone() },
            Queue::Unpack { source: source.clone() },
            Queue::Outcomes { source: source.clone() },
            Queue::Notices { source: source.clone() },
            Queue::Dead { source },
        ]
    }

    /// Whether a subject with `*` matches another, token by token.
    fn takes(filter: &str, subject: &str) -> bool {
        let filter: Vec<_> = filter.split('.').collect();
        let subject: Vec<_> = subject.split('.').collect();
        filter.len() == subject.len() && filter.iter().zip(subject).all(|(f, s)| *f == "*" || *f == s)
    }

    #[test]
    fn subjects_have_one_token_each_for_origin_and_source() {
        let subjects: Vec<String> = queues().iter().map(Queue::subject).collect();
        assert_eq!(subjects[0], "fetch.https=3a=2f=2fa=5fb_example_org=3a8443.example-1");
        assert_eq!(
            subjects[1..],
            [
                "verify.example-1",
                "open.example-1",
                "unpack.example-1",
                "outcomes.example-1",
                "notices.example-1",
                "dead.example-1"
            ]
        );
    }

    #[test]
    fn every_queue_is_taken_by_its_own_filter_and_by_no_other() {
        let queues = queues();
        for (n, queue) in queues.iter().enumerate() {
            for (m, other) in queues.iter().enumerate() {
                assert_eq!(takes(&other.filter().subject(), &queue.subject()), n == m, "{queue} by {other}");
            }
        }
    }
}
