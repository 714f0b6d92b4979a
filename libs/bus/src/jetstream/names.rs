//! Names of streams, subjects and consumers.

use data_encoding::HEXLOWER;
use model::{Origin, Persisted};
use sha2::{Digest, Sha256};

use crate::{Filter, Queue};

/// The longest name of a consumer. Longer names are shortened, because the server stores a consumer in a directory of
/// this name.
const LONGEST: usize = 200;

/// The stages, each with its own stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    Fetch,
    Verify,
    Open,
    Unpack,
    Outcomes,
    Notices,
    Dead,
}

/// The names of one fleet on a server.
#[derive(Debug, Clone)]
pub(super) struct Names {
    namespace: String,
}

impl Stage {
    pub(super) const ALL: [Self; 7] =
        [Self::Fetch, Self::Verify, Self::Open, Self::Unpack, Self::Outcomes, Self::Notices, Self::Dead];

    fn name(self) -> &'static str {
        match self {
            Self::Fetch => Persisted::FetchJobs.name(),
            Self::Verify => Persisted::VerifyJobs.name(),
            Self::Open => Persisted::OpenJobs.name(),
            Self::Unpack => Persisted::UnpackJobs.name(),
            Self::Outcomes => Persisted::Outcomes.name(),
            Self::Notices => Persisted::ChangeNotifications.name(),
            Self::Dead => Persisted::DeadLetters.name(),
        }
    }

    pub(super) fn of(filter: &Filter) -> Self {
        match filter {
            Filter::Fetch(_) => Self::Fetch,
            Filter::Verify => Self::Verify,
            Filter::Open => Self::Open,
            Filter::Unpack => Self::Unpack,
            Filter::Outcomes(_) => Self::Outcomes,
            Filter::Notices(_) => Self::Notices,
            Filter::Dead(_) => Self::Dead,
        }
    }
}

impl Names {
    pub(super) fn new(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned() }
    }

    /// The stream of a stage.
    pub(super) fn stream(&self, stage: Stage) -> String {
        format!("{}-{}", self.namespace, stage.name())
    }

    /// The wildcard for all subjects of a stage.
    pub(super) fn subjects(&self, stage: Stage) -> String {
        format!("{}.{}.>", self.namespace, stage.name())
    }

    /// The bucket that lists the open origin queues.
    pub(super) fn origins(&self) -> String {
        format!("{}-{}", self.namespace, Persisted::OriginQueues.name())
    }

    /// The bucket of the acquired permits.
    pub(super) fn permits(&self) -> String {
        format!("{}-{}", self.namespace, Persisted::OriginPermits.name())
    }

    /// The subject of a queue or of a filter; `local` is the part without the namespace.
    pub(super) fn subject(&self, local: &str) -> String {
        format!("{}.{local}", self.namespace)
    }

    /// The queue of a subject; none if another application uses the subject.
    pub(super) fn queue(&self, subject: &str) -> Option<Queue> {
        let local = subject.strip_prefix(&self.namespace)?.strip_prefix('.')?;
        let tokens: Vec<&str> = local.split('.').collect();
        Some(match tokens[..] {
            ["fetch", origin, source] => {
                Queue::Fetch { origin: Origin::from_token(origin)?, source: source.parse().ok()? }
            }
            ["verify", source] => Queue::Verify { source: source.parse().ok()? },
            ["open", source] => Queue::Open { source: source.parse().ok()? },
            ["unpack", source] => Queue::Unpack { source: source.parse().ok()? },
            ["outcomes", source] => Queue::Outcomes { source: source.parse().ok()? },
            ["notices", source] => Queue::Notices { source: source.parse().ok()? },
            ["dead", source] => Queue::Dead { source: source.parse().ok()? },
            _ => return None,
        })
    }
}

/// The durable name of the consumer of a filter, within the stream of its stage.
pub(super) fn consumer(filter: &Filter) -> String {
    let name = match filter {
        Filter::Fetch(origin) => origin.token(),
        Filter::Verify | Filter::Open | Filter::Unpack => "all".to_owned(),
        Filter::Outcomes(source) | Filter::Notices(source) | Filter::Dead(source) => source.to_string(),
    };
    if name.len() <= LONGEST {
        return name;
    }
    // Tokens are ASCII. The digest keeps two long names apart.
    let digest = HEXLOWER.encode(&Sha256::digest(name.as_bytes()));
    format!("{}-{}", &name[..LONGEST - 33], &digest[..32])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues() -> Vec<Queue> {
        let source: model::SourceId = "example-1".parse().unwrap();
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

    #[test]
    fn queue_is_read_back_from_its_subject() {
        let names = Names::new("fleet-1");
        for queue in queues() {
            let subject = names.subject(&queue.subject());
            assert_eq!(names.queue(&subject), Some(queue), "{subject}");
        }
    }

    #[test]
    fn subjects_of_others_are_no_queues() {
        let names = Names::new("fleet");
        for subject in [
            "fleet2.verify.s",
            "verify.s",
            "fleet.verify",
            "fleet.verify.s.t",
            "fleet.fetch.=zz.s",
            "fleet.x.s",
        ] {
            assert_eq!(names.queue(subject), None, "{subject}");
        }
    }

    #[test]
    fn long_origins_have_short_names_that_differ() {
        let host = "long-label.".repeat(22);
        let [a, b] = ["a", "b"].map(|tld| {
            let origin: Origin = format!("https://{host}{tld}").parse().unwrap();
            consumer(&Filter::Fetch(origin))
        });
        assert!(a.len() <= LONGEST && b.len() <= LONGEST, "{a}");
        assert_ne!(a, b);
    }
}
