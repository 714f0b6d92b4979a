//! Which resources are wanted by what their entries say of them: their media type, and their links.

use std::fmt;
use std::str::FromStr;

use resourcesync::Link;
use serde::{Deserialize, Serialize};

use crate::{Links, MediaRange};

/// The name that stands for the media type. All others are relations.
const TYPE: &str = "type";
/// Characters of a condition: as many as a target that is kept may have, and a relation.
const LONGEST: usize = 2_300;

/// A link that a resource must have: a relation, and perhaps a target. As text: `describedby`, or
/// `collection=https://example.org/c`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedLink {
    rel: String,
    href: Option<String>,
}

/// What an entry must say of its resource. As text: `type=application/pdf`, `type=text/*`, or a [`WantedLink`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Only {
    /// A media type, or all of a kind (`text/*`).
    Type(MediaRange),
    /// A link.
    Link(WantedLink),
}

/// A text that is no condition on an entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no condition; write type=application/pdf, type=text/*, a relation (describes), or a relation and its \
     target (collection=https://example.org/c)"
)]
pub struct OnlyError {
    text: String,
}

/// Whether an entry meets a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// It does.
    In,
    /// It says something else.
    Out,
    /// It says nothing about the subject of the condition.
    Unsaid,
}

impl WantedLink {
    /// The relation.
    pub fn rel(&self) -> &str {
        &self.rel
    }

    /// The target, if it must be a certain one.
    pub fn href(&self) -> Option<&str> {
        self.href.as_deref()
    }

    /// Whether a link is this one.
    pub fn is(&self, link: &Link) -> bool {
        link.rel == self.rel && self.href.as_ref().is_none_or(|href| *href == link.href)
    }

    /// Whether it is among the links of a resource.
    pub fn is_among(&self, links: Option<&Links>) -> bool {
        links.is_some_and(|links| links.to_vec().iter().any(|link| self.is(link)))
    }
}

impl FromStr for WantedLink {
    type Err = OnlyError;

    fn from_str(text: &str) -> Result<Self, OnlyError> {
        // A relation may be a URI with `=` in it, and only a target begins with a scheme again.
        let (rel, href) = match text.split_once('=') {
            Some((rel, href)) if !rel.contains("://") || href.contains("://") => (rel, Some(href)),
            _ => (text, None),
        };
        let is_odd = rel.is_empty()
            || href == Some("")
            || text.len() > LONGEST
            || text.chars().any(|c| c.is_control() || c.is_whitespace());
        if is_odd {
            return Err(OnlyError { text: text.chars().take(80).collect() });
        }
        // Registered relations are compared without case; documents have them in lower case.
        let rel = if rel.contains(':') { rel.to_owned() } else { rel.to_ascii_lowercase() };
        Ok(Self { rel, href: href.map(str::to_owned) })
    }
}

impl fmt::Display for WantedLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.href {
            Some(href) => write!(f, "{}={href}", self.rel),
            None => f.write_str(&self.rel),
        }
    }
}

impl Only {
    /// What it is about: conditions about the same subject are alternatives.
    pub fn subject(&self) -> &str {
        match self {
            Self::Type(_) => TYPE,
            Self::Link(wanted) => &wanted.rel,
        }
    }

    /// Whether an entry with this media type and these links meets it.
    pub fn scope(&self, media_type: Option<&str>, links: Option<&Links>) -> Scope {
        let said = match self {
            Self::Type(wanted) => media_type.map(|found| wanted.includes(found)),
            Self::Link(wanted) => links.map(|links| wanted.is_among(Some(links))),
        };
        match said {
            None => Scope::Unsaid,
            Some(true) => Scope::In,
            Some(false) => Scope::Out,
        }
    }
}

impl FromStr for Only {
    type Err = OnlyError;

    fn from_str(text: &str) -> Result<Self, OnlyError> {
        let Some(media_type) = text.strip_prefix(TYPE).and_then(|rest| rest.strip_prefix('=')) else {
            return match text.parse::<WantedLink>() {
                Ok(wanted) if wanted.rel != TYPE => Ok(Self::Link(wanted)),
                _ => Err(OnlyError { text: text.chars().take(80).collect() }),
            };
        };
        let media_type = media_type.parse();
        media_type.map(Self::Type).map_err(|_| OnlyError { text: text.chars().take(80).collect() })
    }
}

impl fmt::Display for Only {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(media_type) => write!(f, "{TYPE}={media_type}"),
            Self::Link(wanted) => wanted.fmt(f),
        }
    }
}

impl TryFrom<String> for Only {
    type Error = OnlyError;

    fn try_from(text: String) -> Result<Self, OnlyError> {
        text.parse()
    }
}

impl From<Only> for String {
    fn from(only: Only) -> Self {
        only.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relation_is_asked_for_with_or_without_a_target() {
        let links =
            Links::of(&[Link::new("collection", "http://h/c?a=b"), Link::new("http://t/R", "http://h/x")]);
        for (text, is_among) in [
            ("collection", true),
            ("Collection=http://h/c?a=b", true),
            ("collection=http://h/c", false),
            ("via", false),
            ("http://t/R", true),
            ("http://t/R=http://h/x", true),
            ("http://t/R=http://h/y", false),
        ] {
            let wanted: WantedLink = text.parse().unwrap();
            assert_eq!(wanted.is_among(links.as_ref()), is_among, "{text}");
            assert!(!wanted.is_among(None));
        }
    }

    #[test]
    fn what_is_no_condition_is_refused_by_its_text() {
        for text in
            ["", "=http://h/x", "via=", "type", "type=", "type=pdf", "type=a/b;q=1", "a b", "via=http://h/\n"]
        {
            let error = text.parse::<Only>().unwrap_err();
            assert!(error.to_string().contains("type=application/pdf"), "{text}: {error}");
        }
    }

    #[test]
    fn a_condition_is_written_as_it_is_read() {
        for text in
            ["type=text/*", "type=application/pdf", "describes", "profile=http://p/", "http://t/r=http://h/x"]
        {
            let only: Only = text.parse().unwrap();
            assert_eq!(only.to_string(), text);
            let json = serde_json::to_string(&only).unwrap();
            assert_eq!(serde_json::from_str::<Only>(&json).unwrap(), only);
        }
    }

    #[test]
    fn an_entry_that_says_nothing_of_a_subject_is_neither_in_nor_out() {
        let pdf: Only = "type=application/pdf".parse().unwrap();
        let text: Only = "type=text/*".parse().unwrap();
        assert_eq!(pdf.scope(Some("Application/PDF; version=1"), None), Scope::In);
        assert_eq!(text.scope(Some("text/html;charset=utf-8"), None), Scope::In);
        assert_eq!(pdf.scope(Some("text/html"), None), Scope::Out);
        assert_eq!(pdf.scope(None, None), Scope::Unsaid);
        let describes: Only = "describes".parse().unwrap();
        let links = Links::of(&[Link::new("via", "http://h/x")]);
        assert_eq!(describes.scope(None, links.as_ref()), Scope::Out);
        assert_eq!(describes.scope(None, None), Scope::Unsaid);
    }
}
