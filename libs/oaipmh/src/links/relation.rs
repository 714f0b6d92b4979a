//! Links of a record in the terms of ResourceSync and Signposting.

use resourcesync::{Link, relation};

use super::{ContentLink, LinkRole};

/// To a small picture of the content (RFC 6903).
const PREVIEW: &str = "preview";
/// To another thing (RFC 4287).
const RELATED: &str = "related";

impl LinkRole {
    /// The relation of such a link: those that Signposting uses, where it has one. Only what a record names as a file is
    /// an `item`. A page, and a URL of which the record does not say what is behind it, is what the record describes.
    pub fn relation(self) -> &'static str {
        match self {
            Self::File => relation::ITEM,
            Self::LandingPage | Self::Unknown => relation::DESCRIBES,
            Self::PersistentId => relation::CITE_AS,
            Self::Thumbnail => PREVIEW,
            Self::Related => RELATED,
        }
    }

    /// The name for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::LandingPage => "landing page",
            Self::PersistentId => "persistent identifier",
            Self::Thumbnail => "thumbnail",
            Self::Related => "related",
            Self::Unknown => "not said",
        }
    }
}

impl ContentLink {
    /// The same as a link of an entry, with what the record declares of its target.
    pub fn to_link(&self) -> Link {
        // White space separates digests.
        let written = self.digests.iter().filter(|(_, value)| !value.contains(char::is_whitespace));
        let digests: Vec<String> = written.map(|(algorithm, value)| format!("{algorithm}:{value}")).collect();
        Link {
            hash: (!digests.is_empty()).then(|| digests.join(" ")),
            length: self.length,
            media_type: self.media_type.clone(),
            ..Link::new(self.role.relation(), self.href.clone())
        }
    }
}
