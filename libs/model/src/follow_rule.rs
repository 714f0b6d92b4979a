//! A rule of links to follow, with conditions and a limit of its own.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{FollowedRelation, FollowedRelationError, MediaRange, MediaRangeError};

/// Characters of a rule.
const LONGEST: usize = 1_000;
/// The most links of an entry that a rule follows, if it states no number.
const USUAL_MOST: NonZeroU16 = NonZeroU16::new(20).expect("20 is not 0");

/// Which links to follow, as a text of conditions with commas: `rel=alternate,type=application/pdf,instead`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FollowRule {
    /// The relation of the links.
    pub relation: FollowedRelation,
    /// The media type that the link must declare.
    pub media_type: Option<MediaRange>,
    /// The host that the link must lead to.
    pub host: Option<String>,
    /// The profile that the link must declare (RFC 6906).
    pub profile: Option<String>,
    /// The most links of an entry that this rule follows.
    pub most: Option<NonZeroU16>,
    /// Whether what the link leads to is fetched in place of the resource that has the link.
    pub instead: bool,
}

/// A text that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FollowRuleError {
    /// It is too long.
    #[error("a rule has at most {LONGEST} characters")]
    TooLong,
    /// It has no relation.
    #[error("a rule needs a relation, as in rel=item,type=application/pdf")]
    NoRelation,
    /// It asks for landing pages of records, which is for all or none.
    #[error("landing-page has no rules of its own; write --follow-links landing-page")]
    LandingPage,
    /// A part is no condition.
    #[error(
        "{0:?} is no condition of a rule; write rel=RELATION, type=TYPE, host=HOST, profile=URI, max=N or instead, with \
         commas between them"
    )]
    NoCondition(String),
    /// A condition is stated twice.
    #[error("{0:?} is stated twice; write one rule for each")]
    Twice(String),
    /// A number is none.
    #[error("max={0} is no number from 1 to 65535")]
    NoNumber(String),
    /// A host is none.
    #[error("{0:?} is no host; write its name alone, as in host=files.example.org")]
    NoHost(String),
    /// The relation is none.
    #[error(transparent)]
    Relation(#[from] FollowedRelationError),
    /// The media type is none.
    #[error(transparent)]
    Type(#[from] MediaRangeError),
}

impl FollowRule {
    /// A rule for all links of a relation.
    pub fn new(relation: FollowedRelation) -> Self {
        Self { relation, media_type: None, host: None, profile: None, most: None, instead: false }
    }

    /// The most links of an entry that this rule follows: 20, if it states no number.
    pub fn most(&self) -> NonZeroU16 {
        self.most.unwrap_or(USUAL_MOST)
    }
}

impl FromStr for FollowRule {
    type Err = FollowRuleError;

    fn from_str(text: &str) -> Result<Self, FollowRuleError> {
        if text.len() > LONGEST {
            return Err(FollowRuleError::TooLong);
        }
        let mut relation: Option<FollowedRelation> = None;
        let (mut media_type, mut host, mut profile, mut most, mut instead) = (None, None, None, None, false);
        for part in text.split(',') {
            let no_condition = || FollowRuleError::NoCondition(part.to_owned());
            let twice = |is_there: bool| {
                if is_there { Err(FollowRuleError::Twice(part.to_owned())) } else { Ok(()) }
            };
            let Some((name, value)) = part.split_once('=') else {
                if part != "instead" {
                    return Err(no_condition());
                }
                twice(instead)?;
                instead = true;
                continue;
            };
            match name {
                "rel" => {
                    twice(relation.is_some())?;
                    relation = Some(value.parse()?);
                }
                "type" => {
                    twice(media_type.is_some())?;
                    media_type = Some(value.parse()?);
                }
                "host" => {
                    twice(host.is_some())?;
                    host = Some(host_name(value)?);
                }
                "profile" => {
                    twice(profile.is_some())?;
                    let is_odd =
                        value.is_empty() || value.chars().any(|c| c.is_control() || c.is_whitespace());
                    profile = Some(if is_odd { return Err(no_condition()) } else { value.to_owned() });
                }
                "max" => {
                    twice(most.is_some())?;
                    most = Some(value.parse().map_err(|_| FollowRuleError::NoNumber(value.to_owned()))?);
                }
                _ => return Err(no_condition()),
            }
        }
        let relation = relation.ok_or(FollowRuleError::NoRelation)?;
        if relation.asks_landing_pages() {
            return Err(FollowRuleError::LandingPage);
        }
        Ok(Self { relation, media_type, host, profile, most, instead })
    }
}

/// A host as URLs have it: in lower case, IPv6 addresses in brackets.
fn host_name(text: &str) -> Result<String, FollowRuleError> {
    let host = url::Host::parse(text).map_err(|_| FollowRuleError::NoHost(text.to_owned()))?;
    Ok(host.to_string())
}

impl fmt::Display for FollowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rel={}", self.relation)?;
        if let Some(media_type) = &self.media_type {
            write!(f, ",type={media_type}")?;
        }
        if let Some(host) = &self.host {
            write!(f, ",host={host}")?;
        }
        if let Some(profile) = &self.profile {
            write!(f, ",profile={profile}")?;
        }
        if let Some(most) = self.most {
            write!(f, ",max={most}")?;
        }
        if self.instead { f.write_str(",instead") } else { Ok(()) }
    }
}

impl TryFrom<String> for FollowRule {
    type Error = FollowRuleError;

    fn try_from(text: String) -> Result<Self, FollowRuleError> {
        text.parse()
    }
}

impl From<FollowRule> for String {
    fn from(rule: FollowRule) -> Self {
        rule.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rule(text: &str) -> Result<FollowRule, FollowRuleError> {
        text.parse()
    }

    #[test]
    fn a_rule_is_written_as_it_is_read() {
        for text in [
            "rel=item",
            "rel=alternate,type=application/pdf,instead",
            "rel=describedby,type=text/*,host=files.example.org,profile=http://ns.example.org/dc,max=3",
            "rel=http://t/r,host=[::1]",
        ] {
            assert_eq!(rule(text).unwrap().to_string(), text);
        }
        let read = rule("instead,max=5,host=Files.Example.ORG,rel=Content").unwrap();
        assert_eq!(read.to_string(), "rel=item,host=files.example.org,max=5,instead");
        assert_eq!((read.most().get(), rule("rel=item").unwrap().most().get()), (5, 20));
    }

    #[test]
    fn what_is_no_rule_is_refused_with_what_to_write() {
        for (text, told) in [
            ("", "is no condition"),
            ("type=application/pdf", "needs a relation"),
            ("rel=item,rel=item", "twice"),
            ("rel=item,instead,instead", "twice"),
            ("rel=landing-page", "--follow-links"),
            ("rel=item,max=0", "no number"),
            ("rel=item,type=pdf", "no media type"),
            ("rel=duplicate", "--mirrors"),
            ("rel=item,host=http://h/", "no host"),
            ("rel=item,profile=", "is no condition"),
            ("rel=item,size=3", "is no condition"),
            ("rel=item, type=text/*", "is no condition"),
        ] {
            let error = rule(text).unwrap_err().to_string();
            assert!(error.contains(told), "{text:?}: {error}");
        }
        assert_eq!(rule(&format!("rel=item,profile={}", "x".repeat(1_000))), Err(FollowRuleError::TooLong));
    }

    proptest! {
        #[test]
        fn any_text_is_a_rule_or_refused(text in "(rel=|type=|host=|profile=|max=|instead|,|=|item|a/b|[ -~]){0,12}") {
            if let Ok(read) = rule(&text) {
                prop_assert_eq!(rule(&read.to_string()), Ok(read));
            }
        }
    }
}
