//! A rule that makes a set of a part of what is published.

use std::fmt;
use std::str::FromStr;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

/// The most characters of a name.
const LONGEST_NAME: usize = 40;
/// The most bytes of a pattern.
const LONGEST_PATTERN: usize = 1_000;
/// The most bytes of a compiled pattern. A short one may become large: `\w{1000}`.
const MOST_COMPILED: usize = 4 * 1024 * 1024;

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

/// A pattern that is no regular expression, or a too large one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetPatternError {
    /// It is no regular expression.
    #[error("the set {name} has no regular expression: {why}")]
    Syntax {
        /// The name of the set.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// It is too large when it is compiled.
    #[error(
        "the regular expression of the set {name} takes more than {} MiB compiled; write smaller counts in braces, and \
         [0-9] or [a-z] in place of \\d or \\w",
        MOST_COMPILED / 1024 / 1024
    )]
    TooLarge {
        /// The name of the set.
        name: String,
    },
}

impl SetRule {
    /// The most sets by rule of a publication: each costs a state, and a pass over the catalog for each of its Resource
    /// Lists.
    pub const MOST: usize = 32;

    /// The name: 1 to 40 of `a-z`, `0-9` and `-`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The regular expression, as text.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The regular expression.
    ///
    /// # Errors
    /// [`SetPatternError`] when it is none, or takes too much memory.
    pub fn compiled(&self) -> Result<Regex, SetPatternError> {
        let name = || self.name.clone();
        RegexBuilder::new(&self.pattern).size_limit(MOST_COMPILED).build().map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => SetPatternError::TooLarge { name: name() },
            other => SetPatternError::Syntax { name: name(), why: other.to_string() },
        })
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

    #[test]
    fn a_pattern_that_takes_much_memory_is_refused_and_says_what_to_do() {
        let rule = |count: usize| format!(r"a=^http://e[.]org/\w{{{count}}}$").parse::<SetRule>().unwrap();
        assert!(rule(10).compiled().unwrap().is_match("http://e.org/abcdefghij"));
        let refused = (20..).step_by(20).map(rule).find(|rule| rule.compiled().is_err()).unwrap();
        assert!(Regex::new(refused.pattern()).is_ok(), "{refused} is below the limit of the crate");
        let said = refused.compiled().unwrap_err().to_string();
        assert!(said.contains("the set a takes more than 4 MiB") && said.contains("[0-9]"), "{said}");
        let none = "a=(".parse::<SetRule>().unwrap().compiled().unwrap_err().to_string();
        assert!(none.starts_with("the set a has no regular expression"), "{none}");
    }
}
