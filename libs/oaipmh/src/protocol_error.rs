use std::fmt;

use serde::{Deserialize, Serialize};

/// A code of an `error` element (section 3.6).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ErrorCode {
    /// An argument is missing, repeated, not allowed or of the wrong form.
    BadArgument,
    /// The token is unknown or has expired: list the same window again.
    BadResumptionToken,
    /// The verb is missing, repeated or unknown.
    BadVerb,
    /// The item or the repository has no such format.
    CannotDisseminateFormat,
    /// The identifier is unknown. Confirms an absence, proves none alone.
    IdDoesNotExist,
    /// The selection is empty: success, nothing new.
    NoRecordsMatch,
    /// The item has no metadata formats.
    NoMetadataFormats,
    /// The repository has no sets.
    NoSetHierarchy,
    /// A code that is not in the protocol; treat it like status 500.
    Other(String),
}

/// An `error` element. An answer may have several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolError {
    /// The code.
    pub code: ErrorCode,
    /// The Source's own words, cut to 500 characters, controls replaced.
    pub message: String,
}

impl ErrorCode {
    /// The codes of the protocol.
    pub const ALL: [Self; 8] = [
        Self::BadArgument,
        Self::BadResumptionToken,
        Self::BadVerb,
        Self::CannotDisseminateFormat,
        Self::IdDoesNotExist,
        Self::NoRecordsMatch,
        Self::NoMetadataFormats,
        Self::NoSetHierarchy,
    ];

    /// The code as the protocol writes it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::BadArgument => "badArgument",
            Self::BadResumptionToken => "badResumptionToken",
            Self::BadVerb => "badVerb",
            Self::CannotDisseminateFormat => "cannotDisseminateFormat",
            Self::IdDoesNotExist => "idDoesNotExist",
            Self::NoRecordsMatch => "noRecordsMatch",
            Self::NoMetadataFormats => "noMetadataFormats",
            Self::NoSetHierarchy => "noSetHierarchy",
            Self::Other(code) => code,
        }
    }

    /// The code of this text; the case of letters does not matter.
    pub fn read(text: &str) -> Self {
        let text = text.trim();
        Self::ALL
            .into_iter()
            .find(|code| code.as_str().eq_ignore_ascii_case(text))
            .unwrap_or_else(|| Self::Other(text.to_owned()))
    }

    /// Whether the code says that there is nothing, rather than that something failed.
    pub fn is_empty_result(&self) -> bool {
        matches!(self, Self::NoRecordsMatch | Self::NoMetadataFormats | Self::NoSetHierarchy)
    }
}

impl From<String> for ErrorCode {
    fn from(text: String) -> Self {
        Self::read(&text)
    }
}

impl From<ErrorCode> for String {
    fn from(code: ErrorCode) -> Self {
        code.as_str().to_owned()
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            write!(f, "{}", self.code)
        } else {
            write!(f, "{}: {}", self.code, self.message)
        }
    }
}
