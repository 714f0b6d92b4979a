//! Selectors: which Sources are meant, by their labels.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::label::{LabelKey, LabelValue};

/// The most terms of a selector: as many as a Source has labels.
const MOST_TERMS: usize = 16;
/// The most characters of a refused term that the error repeats.
const QUOTED: usize = 80;

/// A condition on labels: terms with commas between them, all of which must hold. A term is `key=value`, `key!=value`,
/// `key` (there is such a label) or `!key` (there is none). `key!=value` also holds where there is no such label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Selector(Vec<Term>);

/// A term of a selector.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Term {
    Equals(LabelKey, LabelValue),
    Differs(LabelKey, LabelValue),
    Has(LabelKey),
    Lacks(LabelKey),
}

/// Why a text is no selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The text is empty.
    #[error("the selector is empty; write one such as country=jp")]
    Empty,
    /// It has more terms than a Source has labels.
    #[error("the selector has {0} terms, and {MOST_TERMS} at most can be")]
    TooLong(usize),
    /// A part between commas is no term.
    #[error("{term:?} is no term of a selector: {why}; write country=jp, country!=jp, country or !country")]
    Term {
        /// The part.
        term: String,
        /// What is wrong with it.
        why: String,
    },
}

impl Selector {
    /// Whether the labels fulfil all terms.
    pub fn matches(&self, labels: &BTreeMap<LabelKey, LabelValue>) -> bool {
        self.0.iter().all(|term| match term {
            Term::Equals(key, value) => labels.get(key) == Some(value),
            Term::Differs(key, value) => labels.get(key) != Some(value),
            Term::Has(key) => labels.contains_key(key),
            Term::Lacks(key) => !labels.contains_key(key),
        })
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        if text.trim().is_empty() {
            return Err(SelectorError::Empty);
        }
        let terms = text.split(',').count();
        if terms > MOST_TERMS {
            return Err(SelectorError::TooLong(terms));
        }
        text.split(',').map(|term| Term::read(term.trim())).collect::<Result<_, _>>().map(Self)
    }
}

impl Term {
    fn read(text: &str) -> Result<Self, SelectorError> {
        let refuse = |why: String| SelectorError::Term { term: text.chars().take(QUOTED).collect(), why };
        let key = |key: &str| key.trim().parse::<LabelKey>().map_err(|error| refuse(error.to_string()));
        let value =
            |value: &str| value.trim().parse::<LabelValue>().map_err(|error| refuse(error.to_string()));
        if text.is_empty() {
            return Err(refuse("nothing stands between two commas, or at an end".to_owned()));
        }
        if let Some(rest) = text.strip_prefix('!') {
            if rest.contains('=') {
                return Err(refuse("with a value, the ! stands before the =".to_owned()));
            }
            return key(rest).map(Self::Lacks);
        }
        if text.contains("==") {
            return Err(refuse("write one =".to_owned()));
        }
        match (text.split_once("!="), text.split_once('=')) {
            (Some((name, rest)), _) => Ok(Self::Differs(key(name)?, value(rest)?)),
            (None, Some((name, rest))) => Ok(Self::Equals(key(name)?, value(rest)?)),
            (None, None) => key(text).map(Self::Has),
        }
    }
}

impl TryFrom<String> for Selector {
    type Error = SelectorError;

    fn try_from(text: String) -> Result<Self, SelectorError> {
        text.parse()
    }
}

impl From<Selector> for String {
    fn from(selector: Selector) -> Self {
        selector.to_string()
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, term) in self.0.iter().enumerate() {
            f.write_str(if place == 0 { "" } else { "," })?;
            match term {
                Term::Equals(key, value) => write!(f, "{key}={value}"),
                Term::Differs(key, value) => write!(f, "{key}!={value}"),
                Term::Has(key) => write!(f, "{key}"),
                Term::Lacks(key) => write!(f, "!{key}"),
            }?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &[(&str, &str)]) -> BTreeMap<LabelKey, LabelValue> {
        text.iter().map(|(key, value)| (key.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn every_term_must_hold() {
        let japan = labels(&[("country", "jp"), ("tier", "1"), ("example.org/kind", "")]);
        for holds in [
            "country=jp",
            "country!=de",
            "continent!=asia",
            "country",
            "!continent",
            "country=jp,tier=1,!continent",
            " country = jp , tier != 2 ",
            "example.org/kind=",
            "example.org/kind",
        ] {
            assert!(holds.parse::<Selector>().unwrap().matches(&japan), "{holds}");
        }
        for fails in
            ["country=de", "country!=jp", "continent", "!tier", "country=jp,tier=2", "country=", "Country=jp"]
        {
            assert!(!fails.parse::<Selector>().unwrap().matches(&japan), "{fails}");
        }
        assert!("!country,tier!=1".parse::<Selector>().unwrap().matches(&labels(&[])));
    }

    #[test]
    fn a_selector_is_written_as_it_is_read() {
        for text in ["country=jp", "a!=b,c,!d,e=", "example.org/a=b"] {
            let selector: Selector = text.parse().unwrap();
            assert_eq!(selector.to_string(), text);
            assert_eq!(serde_json::to_value(&selector).unwrap(), text);
            assert_eq!(serde_json::from_value::<Selector>(text.into()).unwrap(), selector);
        }
        assert_eq!(" a = b , !c ".parse::<Selector>().unwrap().to_string(), "a=b,!c");
    }

    #[test]
    fn a_slip_is_refused_with_its_term_the_reason_and_what_to_write() {
        for (text, why) in [
            ("", "empty"),
            ("  ", "empty"),
            ("a=b,", "two commas"),
            (",a", "two commas"),
            ("a==b", "one ="),
            ("!a=b", "before the ="),
            ("!", "1 to 63"),
            ("=b", "1 to 63"),
            ("a=b c", "only letters"),
            ("a in (b)", "only letters"),
            ("https://*.example.org/", "key of a label"),
            (&*vec!["a"; 17].join(","), "17 terms"),
        ] {
            let said = text.parse::<Selector>().unwrap_err().to_string();
            assert!(said.contains(why), "{text}: {said}");
        }
        let said = "country=jp,a=b=c".parse::<Selector>().unwrap_err().to_string();
        assert!(said.contains("\"a=b=c\"") && said.contains("country!=jp"), "{said}");
        assert!("x".repeat(10_000).parse::<Selector>().unwrap_err().to_string().len() < 400);
    }
}
