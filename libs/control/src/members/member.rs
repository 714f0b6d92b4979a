//! A process of the fleet.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use model::{Message, Persisted};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::kept::Kept;

/// The ID of a process, from its start to its end: 1 to 100 of `a-z`, `0-9` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MemberId(String);

/// Why a text is no member ID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no member id: 1 to 100 of a-z, 0-9 and -")]
pub struct MemberIdError(String);

/// The role of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It owns Sources, and requests their documents.
    Scheduler,
    /// It requests resources.
    Fetcher,
    /// It publishes what is stored of Sources.
    Publisher,
}

/// A process that is alive. It sends heartbeats; without them, the record expires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its ID.
    pub id: MemberId,
    /// Its role.
    pub role: Role,
    /// Its version.
    pub version: String,
    /// Its start, by its own clock.
    pub since: Timestamp,
}

impl MemberId {
    /// An ID for a process that starts now. It begins with a name that operators know (a host, a pod).
    pub fn fresh(name: &str) -> Self {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name: String = name.chars().take(60).map(plain).collect();
        let ulid = Ulid::new().to_string().to_ascii_lowercase();
        match name.trim_matches('-') {
            "" => Self(ulid),
            name => Self(format!("{name}-{ulid}")),
        }
    }

    /// The text of the ID.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Role {
    /// The name of the role.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduler => "scheduler",
            Self::Fetcher => "fetcher",
            Self::Publisher => "publisher",
        }
    }
}

impl TryFrom<String> for MemberId {
    type Error = MemberIdError;

    fn try_from(text: String) -> Result<Self, MemberIdError> {
        let named = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if (1..=100).contains(&text.len()) && text.bytes().all(named) {
            Ok(Self(text))
        } else {
            Err(MemberIdError(text))
        }
    }
}

impl FromStr for MemberId {
    type Err = MemberIdError;

    fn from_str(text: &str) -> Result<Self, MemberIdError> {
        text.to_owned().try_into()
    }
}

impl From<MemberId> for String {
    fn from(id: MemberId) -> Self {
        id.0
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Message for Member {
    const KIND: &'static str = "member";
    const VERSION: u16 = Persisted::Members.version();
}

impl Kept for Member {
    type Id = (Role, MemberId);

    fn key((role, id): &(Role, MemberId)) -> String {
        format!("{}.{id}", role.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_id_tells_where_it_is_from_and_is_never_the_same() {
        let id = MemberId::fresh("Pod_7.example");
        assert!(id.as_str().starts_with("pod-7-example-"), "{id}");
        assert_ne!(id, MemberId::fresh("Pod_7.example"));
        for name in ["", "---", &"ä".repeat(200)] {
            let id = MemberId::fresh(name);
            assert_eq!(id.as_str().parse::<MemberId>().unwrap(), id);
        }
    }

    #[test]
    fn ids_that_could_leave_their_key_are_refused() {
        for bad in ["", "a.b", "A", "a b", "*", &"x".repeat(101)] {
            assert!(bad.parse::<MemberId>().is_err(), "{bad}");
        }
    }
}
