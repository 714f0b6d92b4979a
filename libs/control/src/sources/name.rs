//! Names of Sources: what people call them. The Source ID stays when a name changes.

use std::fmt;
use std::str::FromStr;

use model::SourceId;
use serde::{Deserialize, Serialize};

/// The most characters of a name.
const LONGEST: usize = 64;
/// Texts that are no names, because the API has a route of this name beside those of the Sources.
const RESERVED: [&str; 1] = ["plan"];
/// The characters of the digest that ends a Source ID.
const DIGEST: usize = 12;
/// The most characters of a refused text that the error repeats.
const QUOTED: usize = 80;

/// The name of a Source: 1 to 64 of `a-z`, `0-9`, `-`, `_` and `.`, with a letter or digit at both ends. No name looks
/// like a Source ID, so that a text is one or the other.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SourceName(String);

/// Why a text is no name of a Source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no name of a Source: {why}")]
pub struct SourceNameError {
    text: String,
    why: &'static str,
}

/// A Source as people refer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NameOrId {
    /// By its name.
    Name(SourceName),
    /// By its ID.
    Id(SourceId),
}

impl SourceName {
    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for SourceName {
    type Error = SourceNameError;

    fn try_from(text: String) -> Result<Self, SourceNameError> {
        match why_not(&text) {
            None => Ok(Self(text)),
            Some(why) => Err(SourceNameError { text: text.chars().take(QUOTED).collect(), why }),
        }
    }
}

/// Why a text is no name; None if it is one.
fn why_not(text: &str) -> Option<&'static str> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    if !(1..=LONGEST).contains(&text.len()) {
        return Some("it has 1 to 64 characters");
    }
    if !bytes.iter().all(|byte| is_plain(*byte) || matches!(byte, b'-' | b'_' | b'.')) {
        return Some("only a-z, 0-9, -, _ and . may stand in it");
    }
    if !bytes.first().is_some_and(|byte| is_plain(*byte)) || !bytes.last().is_some_and(|byte| is_plain(*byte))
    {
        return Some("it begins and ends with a letter or a digit");
    }
    if looks_like_an_id(text) {
        return Some("it looks like a Source ID, which ends with - and 12 hexadecimal digits");
    }
    RESERVED.contains(&text).then_some("the API uses this word; choose another one")
}

/// Whether a text ends as [`SourceId::of_entry`] ends an ID.
fn looks_like_an_id(text: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let digest = text.rsplit_once('-').map(|(_, digest)| digest);
    digest.is_some_and(|digest| digest.len() == DIGEST && digest.bytes().all(is_hex))
}

impl FromStr for SourceName {
    type Err = SourceNameError;

    fn from_str(text: &str) -> Result<Self, SourceNameError> {
        text.to_owned().try_into()
    }
}

impl From<SourceName> for String {
    fn from(name: SourceName) -> Self {
        name.0
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for NameOrId {
    type Err = SourceNameError;

    fn from_str(text: &str) -> Result<Self, SourceNameError> {
        match text.parse::<SourceId>() {
            Ok(id) if looks_like_an_id(text) => Ok(Self::Id(id)),
            _ => text.parse().map(Self::Name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_plain_words_and_each_other_text_is_refused_with_the_reason() {
        for good in ["zenodo", "a", "7", "repo.example-org_2", "a..b", "plans", &"a".repeat(64)] {
            assert_eq!(good.parse::<SourceName>().unwrap().as_str(), good);
        }
        for (bad, why) in [
            ("", "1 to 64"),
            (&*"a".repeat(65), "1 to 64"),
            ("Zenodo", "a-z"),
            ("a b", "a-z"),
            ("a/b", "a-z"),
            ("é", "a-z"),
            ("-a", "begins and ends"),
            ("..", "begins and ends"),
            ("a.", "begins and ends"),
            ("example-org-8198d1bac40a", "Source ID"),
            ("a-8198d1bac40a", "Source ID"),
            ("plan", "API"),
        ] {
            let said = bad.parse::<SourceName>().unwrap_err().to_string();
            assert!(said.contains(why), "{bad}: {said}");
        }
        let long = "x".repeat(10_000).parse::<SourceName>().unwrap_err().to_string();
        assert!(long.len() < 200, "{long}");
    }

    #[test]
    fn a_text_is_a_name_or_an_id_and_never_both() {
        for entry in ["https://example.org/", "https://[::1]/", "http://x/"] {
            let id = SourceId::of_entry(&entry.parse().unwrap());
            assert_eq!(id.as_str().parse(), Ok(NameOrId::Id(id.clone())));
            assert!(id.as_str().parse::<SourceName>().is_err());
        }
        for name in ["zenodo", "example-org", "example-org-8198d1bac40", "example-org-8198d1bac40g"] {
            assert_eq!(name.parse(), Ok(NameOrId::Name(name.parse().unwrap())));
        }
        assert!("https://example.org/".parse::<NameOrId>().is_err());
    }
}
