use std::fmt;

use percent_encoding::percent_decode_str;
use resourcesync::Datetime;
use serde::{Deserialize, Serialize};

/// A resumption token: opaque, compared exactly, and sent back percent-encoded (section 3.5).
///
/// `Debug` and `Display` show its first 16 characters only, since tokens can hold what a Source keeps private.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Token(String);

/// How a token is written into a request. Remember the form that a Source needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenForm {
    /// As printed, percent-encoded: what the protocol says.
    #[default]
    Encoded,
    /// As printed, without encoding, for [`Quirk::TokenVerbatim`](crate::Quirk::TokenVerbatim).
    Verbatim,
    /// Decoded once, then encoded, for [`Quirk::EncodedToken`](crate::Quirk::EncodedToken).
    Decoded,
}

/// What an answer's `resumptionToken` element says. The element may be empty and still have attributes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumption {
    /// The token of the next page; `None` on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    /// When the token ceases to work (`expirationDate`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Datetime>,
    /// How many elements the whole list has (`completeListSize`); an estimate that may be revised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_list_size: Option<u64>,
    /// How many elements came before this page (`cursor`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<u64>,
}

const SHOWN_CHARACTERS: usize = 16;

impl Token {
    /// A token as printed, blanks around it removed; `None` for one of blanks only, which ends a list.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The token as printed.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The token decoded once from percent-encoding, if that changes it and gives UTF-8.
    pub fn decoded(&self) -> Option<String> {
        let decoded = percent_decode_str(&self.0).decode_utf8().ok()?;
        (decoded != self.0).then(|| decoded.into_owned())
    }

    /// Its first 16 characters, for `explain` and logs.
    pub fn shown(&self) -> String {
        let mut shown: String = self.0.chars().take(SHOWN_CHARACTERS).collect();
        if shown.len() < self.0.len() {
            shown.push('…');
        }
        shown
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:?})", self.shown())
    }
}
