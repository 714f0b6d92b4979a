//! Labels of Sources: keys and values by the rules of Kubernetes, which operators know.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The most characters of a key's name, and of a value.
const LONGEST: usize = 63;
/// The most characters of a key's prefix.
const LONGEST_PREFIX: usize = 253;
/// The most characters of a refused text that the error repeats.
const QUOTED: usize = 80;

/// The key of a label: 1 to 63 of letters, digits, `-`, `_` and `.`, with a letter or digit at both ends. A domain
/// and `/` may stand before it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LabelKey(String);

/// The value of a label: empty, or 1 to 63 of letters, digits, `-`, `_` and `.`, with a letter or digit at both ends.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LabelValue(String);

/// Why a text is no key or no value of a label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no {what} of a label: {why}")]
pub struct LabelError {
    what: &'static str,
    text: String,
    why: &'static str,
}

impl LabelError {
    fn new(what: &'static str, text: &str, why: &'static str) -> Self {
        Self { what, text: text.chars().take(QUOTED).collect(), why }
    }
}

/// Why a text is no word of letters, digits, `-`, `_` and `.`; None if it is one.
fn why_no_word(text: &str) -> Option<&'static str> {
    let bytes = text.as_bytes();
    let is_plain = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    if !(1..=LONGEST).contains(&text.len()) {
        return Some("it has 1 to 63 characters");
    }
    if !bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')) {
        return Some("only letters, digits, -, _ and . may stand in it");
    }
    let is_framed = is_plain(bytes.first()) && is_plain(bytes.last());
    (!is_framed).then_some("it begins and ends with a letter or a digit")
}

/// Whether a text is a domain name in lower case.
fn is_domain(text: &str) -> bool {
    let is_plain =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let is_part = |part: &str| {
        let bytes = part.as_bytes();
        let is_in = |byte: &u8| is_plain(Some(byte)) || *byte == b'-';
        part.len() <= LONGEST && is_plain(bytes.first()) && is_plain(bytes.last()) && bytes.iter().all(is_in)
    };
    text.len() <= LONGEST_PREFIX && text.split('.').all(is_part)
}

impl TryFrom<String> for LabelKey {
    type Error = LabelError;

    fn try_from(text: String) -> Result<Self, LabelError> {
        let (prefix, name) = match text.split_once('/') {
            Some((prefix, name)) => (Some(prefix), name),
            None => (None, text.as_str()),
        };
        if prefix.is_some_and(|prefix| !is_domain(prefix)) {
            return Err(LabelError::new("key", &text, "a domain such as example.org stands before the /"));
        }
        match why_no_word(name) {
            Some(why) => Err(LabelError::new("key", &text, why)),
            None => Ok(Self(text)),
        }
    }
}

impl TryFrom<String> for LabelValue {
    type Error = LabelError;

    fn try_from(text: String) -> Result<Self, LabelError> {
        match why_no_word(&text) {
            Some(why) if !text.is_empty() => Err(LabelError::new("value", &text, why)),
            _ => Ok(Self(text)),
        }
    }
}

macro_rules! text {
    ($name:ident) => {
        impl $name {
            /// The text itself.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = LabelError;

            fn from_str(text: &str) -> Result<Self, LabelError> {
                text.to_owned().try_into()
            }
        }

        impl From<$name> for String {
            fn from(this: $name) -> Self {
                this.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text!(LabelKey);
text!(LabelValue);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_the_rules_of_kubernetes() {
        for good in ["country", "Tier_2.x", "a", "example.org/country", "a-b.c/d", &"k".repeat(63)] {
            assert_eq!(good.parse::<LabelKey>().unwrap().as_str(), good);
        }
        for (bad, why) in [
            ("", "1 to 63"),
            (&*"k".repeat(64), "1 to 63"),
            ("a b", "only letters"),
            ("-a", "begins and ends"),
            ("a.", "begins and ends"),
            ("/a", "domain"),
            ("Example.org/a", "domain"),
            ("a..b/c", "domain"),
            ("a/", "1 to 63"),
            ("a/b/c", "only letters"),
            (&*format!("{}/a", "a.".repeat(130)), "domain"),
        ] {
            let said = bad.parse::<LabelKey>().unwrap_err().to_string();
            assert!(said.contains(why) && said.contains("key"), "{bad}: {said}");
        }
    }

    #[test]
    fn values_are_short_words_or_empty() {
        for good in ["", "jp", "2026", "A_b.c-d", &"v".repeat(63)] {
            assert_eq!(good.parse::<LabelValue>().unwrap().as_str(), good);
        }
        for bad in [" ", "a b", "a=b", "a,b", "-", &"v".repeat(64), "日本", "a\n"] {
            assert!(bad.parse::<LabelValue>().unwrap_err().to_string().contains("value"), "{bad}");
        }
    }
}
