//! How far a list has come: the part of a resumption token that is ours.

use std::fmt;

use jiff::Timestamp;
use model::{ChangeLogEntry, ResourceUri};

use crate::log_mark::mark;

/// The record behind which a list goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Position {
    /// One of the change log.
    Logged {
        /// Its number.
        number: u64,
        /// A digest of the entry: a catalog that was made anew has other entries.
        check: String,
    },
    /// One that was withdrawn, or is published again after that. They come behind the change log.
    Withdrawn {
        /// When it was withdrawn.
        at: Timestamp,
        /// A digest of its URI.
        check: String,
    },
}

impl Position {
    /// That of an entry of the change log.
    pub(super) fn logged(number: u64, entry: &ChangeLogEntry) -> Self {
        Self::Logged { number, check: mark(&entry.uri, entry.at) }
    }

    /// That of a withdrawn record.
    pub(super) fn withdrawn(uri: &ResourceUri, at: Timestamp) -> Self {
        Self::Withdrawn { at, check: mark(uri, at) }
    }

    /// Reads what [`Display`](fmt::Display) writes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (number, check) = text.get(1..)?.split_once('-')?;
        let check = check.to_owned();
        let position = match text.as_bytes().first()? {
            b'c' => Self::Logged { number: number.parse().ok()?, check },
            b'w' => Self::Withdrawn { at: Timestamp::from_microsecond(number.parse().ok()?).ok()?, check },
            _ => return None,
        };
        (position.to_string() == text).then_some(position)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Logged { number, check } => write!(f, "c{number}-{check}"),
            Self::Withdrawn { at, check } => write!(f, "w{}-{check}", at.as_microsecond()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_position_is_read_as_it_is_written() {
        let uri: ResourceUri = "http://e.org/oai?verb=GetRecord".parse().unwrap();
        let at = "2026-01-05T08:00:00.000001Z".parse().unwrap();
        let logged = Position::Logged { number: 7, check: mark(&uri, at) };
        for position in [logged, Position::withdrawn(&uri, at)] {
            assert_eq!(Position::parse(&position.to_string()), Some(position));
        }
    }

    proptest! {
        #[test]
        fn other_texts_are_refused(text in "\\PC{0,40}|[cw]-?[0-9]{0,30}-?[0-9a-f]{0,20}") {
            if let Some(position) = Position::parse(&text) {
                prop_assert_eq!(position.to_string(), text);
            }
        }
    }
}
