//! The encoding of text that its sender mislabels as UTF-8.

use std::fmt;
use std::str::FromStr;

use encoding_rs::Encoding;
use serde::{Deserialize, Serialize};

/// Characters of a name that an error repeats.
const SHOWN: usize = 40;

/// An encoding by its name in the [Encoding Standard](https://encoding.spec.whatwg.org/), such as `windows-1252`. Any
/// label of it is read, such as `latin1`. It is a superset of ASCII, and not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub struct TextEncoding(&'static Encoding);

/// A name that is no encoding to read records in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextEncodingError {
    /// No encoding has the name.
    #[error(
        "{0:?} is no encoding; write a name of the Encoding Standard: windows-1252 (includes ISO 8859-1), iso-8859-2, \
         windows-1251, koi8-r, gbk, big5, shift_jis, euc-kr"
    )]
    Unknown(String),
    /// All that can be read without it is UTF-8.
    #[error("answers are read as UTF-8 anyway; name the encoding of what is not UTF-8, such as windows-1252")]
    Utf8,
    /// The tags of a document cannot be found in it.
    #[error(
        "{0} is no superset of ASCII, so no answer in it can be taken for UTF-8; write another, such as windows-1252"
    )]
    NotAscii(&'static str),
}

impl TextEncoding {
    /// Its name in the standard.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// The encoding itself.
    pub fn get(self) -> &'static Encoding {
        self.0
    }
}

impl FromStr for TextEncoding {
    type Err = TextEncodingError;

    fn from_str(text: &str) -> Result<Self, TextEncodingError> {
        let Some(encoding) = Encoding::for_label_no_replacement(text.as_bytes()) else {
            return Err(TextEncodingError::Unknown(text.chars().take(SHOWN).collect()));
        };
        if encoding == encoding_rs::UTF_8 {
            return Err(TextEncodingError::Utf8);
        }
        if !encoding.is_ascii_compatible() {
            return Err(TextEncodingError::NotAscii(encoding.name()));
        }
        Ok(Self(encoding))
    }
}

impl fmt::Display for TextEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl TryFrom<String> for TextEncoding {
    type Error = TextEncodingError;

    fn try_from(text: String) -> Result<Self, TextEncodingError> {
        text.parse()
    }
}

impl From<TextEncoding> for &'static str {
    fn from(encoding: TextEncoding) -> Self {
        encoding.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_and_names_of_the_standard_are_kept() {
        for (text, name) in
            [("latin1", "windows-1252"), (" ISO-8859-2 ", "ISO-8859-2"), ("Windows-1251", "windows-1251")]
        {
            let encoding: TextEncoding = text.parse().unwrap();
            assert_eq!(encoding.to_string(), name);
            let json = serde_json::to_string(&encoding).unwrap();
            assert_eq!(json, format!("{name:?}"));
            assert_eq!(serde_json::from_str::<TextEncoding>(&json).unwrap(), encoding);
        }
    }

    #[test]
    fn what_is_no_such_encoding_is_refused_with_a_hint() {
        for text in ["", "ebcdic", "utf-8", "utf-16", "iso-2022-jp", "iso-2022-kr", &"x".repeat(1_000)] {
            let error = text.parse::<TextEncoding>().unwrap_err().to_string();
            assert!(error.contains("windows-1252") && error.len() < 300, "{text}: {error}");
        }
    }
}
