use std::fmt;

use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD};
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

    /// Whether it has this number, as printed, percent-encoded or in base64. Where it is the number of records
    /// delivered, the token is an offset: of a list that changes meanwhile, records are skipped that did not change.
    pub fn has_number(&self, number: u64) -> bool {
        let number = number.to_string();
        let has =
            |text: &[u8]| text.split(|byte| !byte.is_ascii_digit()).any(|digits| digits == number.as_bytes());
        let decoded = self.decoded();
        let printed = decoded.as_deref().unwrap_or(&self.0);
        let bare = printed.trim_end_matches('=').as_bytes();
        let in_base64 = [BASE64_NOPAD, BASE64URL_NOPAD].iter().find_map(|base64| base64.decode(bare).ok());
        has(printed.as_bytes()) || in_base64.is_some_and(|text| has(&text))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_is_found_however_it_is_written() {
        // Dataverse, DOAJ, and others.
        for token in [
            "1:5500|2:|3:|4:|5:oai_dc",
            "MTo1NTAwfDI6fDM6fDQ6fDU6b2FpX2Rj",
            "eyJtIjoib2FpX2RjIiwibiI6NTUwMH0=",
            "oai_dc%2F5500",
            "5500",
        ] {
            let token = Token::new(token).unwrap();
            assert!(token.has_number(5_500), "{}", token.as_str());
            assert!(!token.has_number(550) && !token.has_number(500), "{}", token.as_str());
        }
        assert!(!Token::new("a5500b77").unwrap().has_number(550_077));
    }
}
