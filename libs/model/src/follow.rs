//! What an operator asks of links: relations to follow, and media types of their targets.

use std::fmt;
use std::str::FromStr;

use resourcesync::relation;
use serde::{Deserialize, Serialize};

/// Characters of a relation or a media type.
const LONGEST: usize = 200;
/// Another name of `item`, for those who want the files of records and landing pages.
const CONTENT: &str = "content";
/// The same, and the files of landing pages to which records lead that name no file themselves.
const LANDING_PAGE: &str = "landing-page";
/// Relations whose targets are other places, versions or differences of the same resource. They are never resources of
/// their own.
const OF_THE_SAME: [&str; 6] = [
    relation::DUPLICATE,
    relation::PATCH,
    relation::MEMENTO,
    relation::TIMEGATE,
    relation::TIMEMAP,
    relation::ORIGINAL,
];

/// The relation of links to follow: a registered name in lower case, or a URI. `content` is read as `item`.
/// `landing-page` is `item` too, and asks for the landing pages of records that name no file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FollowedRelation(String);

/// A text that is no relation to follow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FollowedRelationError {
    /// It is no relation.
    #[error("{0:?} is no relation; write a registered name (item, describedby, alternate) or a URI")]
    NoRelation(String),
    /// Its links do not lead to resources of their own.
    #[error(
        "links of the relation {0:?} lead to the same resource elsewhere or at another time; they are not followed as \
         resources of their own (for mirrors, see --mirrors)"
    )]
    OfTheSame(String),
}

/// A media type, or all of a kind (`text/*`), in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MediaRange(String);

/// A text that is no media type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no media type; write one without parameters (application/pdf), or all of a kind (text/*)"
)]
pub struct MediaRangeError {
    text: String,
}

impl FollowedRelation {
    /// The relation, as it is written and stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether links of the relation `rel` are followed.
    pub fn is_of(&self, rel: &str) -> bool {
        if self.asks_landing_pages() { rel == relation::ITEM } else { self.0 == rel }
    }

    /// Whether the landing pages of records that name no file are asked for.
    pub fn asks_landing_pages(&self) -> bool {
        self.0 == LANDING_PAGE
    }
}

impl MediaRange {
    /// Whether a media type is the wanted one. Its parameters and its case do not matter.
    pub fn includes(&self, media_type: &str) -> bool {
        let found = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match self.0.strip_suffix("/*") {
            Some(kind) => found.split('/').next() == Some(kind),
            None => found == self.0,
        }
    }
}

impl FromStr for FollowedRelation {
    type Err = FollowedRelationError;

    fn from_str(text: &str) -> Result<Self, FollowedRelationError> {
        let is_odd = text.is_empty()
            || text.len() > LONGEST
            || text.chars().any(|c| c.is_control() || c.is_whitespace() || matches!(c, ',' | '='));
        if is_odd {
            return Err(FollowedRelationError::NoRelation(beginning(text)));
        }
        // Registered relations are compared without case; documents have them in lower case.
        let name = if text.contains(':') { text.to_owned() } else { text.to_ascii_lowercase() };
        if OF_THE_SAME.contains(&name.as_str()) {
            return Err(FollowedRelationError::OfTheSame(name));
        }
        Ok(Self(if name == CONTENT { relation::ITEM.to_owned() } else { name }))
    }
}

impl FromStr for MediaRange {
    type Err = MediaRangeError;

    fn from_str(text: &str) -> Result<Self, MediaRangeError> {
        let is_type = text.split_once('/').is_some_and(|(kind, sub)| !kind.is_empty() && !sub.is_empty());
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b';' | b','));
        if !is_type || !is_plain || text.len() > LONGEST {
            return Err(MediaRangeError { text: beginning(text) });
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

fn beginning(text: &str) -> String {
    text.chars().take(80).collect()
}

impl fmt::Display for FollowedRelation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for MediaRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for FollowedRelation {
    type Error = FollowedRelationError;

    fn try_from(text: String) -> Result<Self, FollowedRelationError> {
        text.parse()
    }
}

impl From<FollowedRelation> for String {
    fn from(relation: FollowedRelation) -> Self {
        relation.0
    }
}

impl TryFrom<String> for MediaRange {
    type Error = MediaRangeError;

    fn try_from(text: String) -> Result<Self, MediaRangeError> {
        text.parse()
    }
}

impl From<MediaRange> for String {
    fn from(range: MediaRange) -> Self {
        range.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relation_is_a_name_without_case_or_a_uri_word_for_word() {
        assert_eq!("DescribedBy".parse::<FollowedRelation>().unwrap().as_str(), "describedby");
        assert_eq!("content".parse::<FollowedRelation>().unwrap().as_str(), "item");
        assert_eq!("http://t/Rel".parse::<FollowedRelation>().unwrap().as_str(), "http://t/Rel");
        for text in ["", "a b", "item,author", "item=x", "item\n"] {
            let error = text.parse::<FollowedRelation>().unwrap_err();
            assert!(error.to_string().contains("describedby"), "{text}: {error}");
        }
        for text in ["Duplicate", "memento", "http://www.openarchives.org/rs/terms/patch"] {
            let error = text.parse::<FollowedRelation>().unwrap_err();
            assert!(error.to_string().contains("--mirrors"), "{text}: {error}");
        }
    }

    #[test]
    fn landing_pages_are_followed_for_their_items() {
        let [page, item] = ["Landing-Page", "item"].map(|text| text.parse::<FollowedRelation>().unwrap());
        assert!(page.asks_landing_pages() && page.is_of("item") && !page.is_of("landing-page"));
        assert!(!item.asks_landing_pages() && item.is_of("item") && !item.is_of("describedby"));
        assert_eq!(serde_json::to_string(&page).unwrap(), "\"landing-page\"");
    }

    #[test]
    fn a_media_range_includes_types_without_regard_to_case_and_parameters() {
        let [pdf, text] = ["Application/PDF", "text/*"].map(|text| text.parse::<MediaRange>().unwrap());
        assert!(pdf.includes("application/pdf; version=1") && !pdf.includes("application/json"));
        assert!(text.includes("Text/HTML;charset=utf-8") && !text.includes("texture/x"));
        for odd in ["", "pdf", "/x", "a/", "a/b;q=1", "a/b, c/d"] {
            assert!(odd.parse::<MediaRange>().is_err(), "{odd}");
        }
        let json = serde_json::to_string(&pdf).unwrap();
        assert_eq!(json, "\"application/pdf\"");
        assert_eq!(serde_json::from_str::<MediaRange>(&json).unwrap(), pdf);
    }
}
