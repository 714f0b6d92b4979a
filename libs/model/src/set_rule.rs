//! A rule that makes a set of a part of what is published.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The most characters of a name.
const LONGEST_NAME: usize = 40;
/// The most bytes of a pattern.
const LONGEST_PATTERN: usize = 1_000;

/// A set by rule: its name, and a pattern that the URIs of its resources match. As text: `theses=/theses/`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SetRule {
    name: String,
    pattern: String,
}

/// A text that is no rule of a set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no set; write a name of 1 to 40 of a-z, 0-9 and -, then = and a regular expression without blanks, such \
     as theses=/theses/"
)]
pub struct SetRuleError {
    text: String,
}

impl SetRule {
    /// The most sets by rule of a publication: each costs a state, and a pass over the catalog for each of its Resource
    /// Lists.
    pub const MOST: usize = 32;

    /// The name: 1 to 40 of `a-z`, `0-9` and `-`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The regular expression, which is not compiled yet.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }
}

impl FromStr for SetRule {
    type Err = SetRuleError;

    fn from_str(text: &str) -> Result<Self, SetRuleError> {
        let is_name = |name: &str| {
            let named = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
            (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(named)
        };
        let is_pattern = |pattern: &str| {
            (1..=LONGEST_PATTERN).contains(&pattern.len())
                && !pattern.chars().any(|c| c.is_whitespace() || c.is_control())
        };
        match text.split_once('=') {
            Some((name, pattern)) if is_name(name) && is_pattern(pattern) => {
                Ok(Self { name: name.to_owned(), pattern: pattern.to_owned() })
            }
            _ => Err(SetRuleError { text: text.chars().take(80).collect() }),
        }
    }
}

impl fmt::Display for SetRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.pattern)
    }
}

impl TryFrom<String> for SetRule {
    type Error = SetRuleError;

    fn try_from(text: String) -> Result<Self, SetRuleError> {
        text.parse()
    }
}

impl From<SetRule> for String {
    fn from(rule: SetRule) -> Self {
        rule.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_has_a_name_and_a_pattern_and_is_written_as_it_is_read() {
        let rule: SetRule = "pdf-2026=[.]pdf$|a=b".parse().unwrap();
        assert_eq!((rule.name(), rule.pattern()), ("pdf-2026", "[.]pdf$|a=b"));
        let json = serde_json::to_string(&rule).unwrap();
        assert_eq!(json, r#""pdf-2026=[.]pdf$|a=b""#);
        assert_eq!(serde_json::from_str::<SetRule>(&json).unwrap(), rule);
        for wrong in
            ["", "pdf", "=x", "pdf=", "PDF=x", "a/b=x", "..=x", "a=b c", &format!("{}=x", "a".repeat(41))]
        {
            assert!(wrong.parse::<SetRule>().unwrap_err().to_string().contains("theses="), "{wrong}");
        }
    }
}
