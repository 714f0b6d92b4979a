use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One of the six requests of OAI-PMH 2.0 (section 4).
///
/// Names are written as the protocol does, which matters: verbs are case-sensitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Verb {
    /// Describes the repository.
    Identify,
    /// Lists the metadata formats of the repository, or of one item.
    ListMetadataFormats,
    /// Lists the sets.
    ListSets,
    /// Lists headers only.
    ListIdentifiers,
    /// Lists records.
    ListRecords,
    /// One record.
    GetRecord,
}

/// The text is no verb of OAI-PMH 2.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no verb of OAI-PMH 2.0")]
pub struct UnknownVerb;

impl Verb {
    /// All verbs.
    pub const ALL: [Self; 6] = [
        Self::Identify,
        Self::ListMetadataFormats,
        Self::ListSets,
        Self::ListIdentifiers,
        Self::ListRecords,
        Self::GetRecord,
    ];

    /// The verb as the protocol writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Identify => "Identify",
            Self::ListMetadataFormats => "ListMetadataFormats",
            Self::ListSets => "ListSets",
            Self::ListIdentifiers => "ListIdentifiers",
            Self::ListRecords => "ListRecords",
            Self::GetRecord => "GetRecord",
        }
    }

    /// Whether answers may be cut into pages, linked by resumption tokens (section 3.5).
    pub fn is_list(self) -> bool {
        matches!(self, Self::ListSets | Self::ListIdentifiers | Self::ListRecords)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Verb {
    type Err = UnknownVerb;

    fn from_str(text: &str) -> Result<Self, UnknownVerb> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == text).ok_or(UnknownVerb)
    }
}
