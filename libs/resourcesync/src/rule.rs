//! What the specifications say about each quirk: how strongly, in which section, and what a Source should
//! change.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::quirk::Quirk;
use crate::section::Section;

/// How strongly a specification forbids something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Force {
    /// It breaks a MUST.
    Must,
    /// It goes against a SHOULD.
    Should,
    /// Not forbidden, but the Source would be harvested better without it.
    Hint,
    /// Not forbidden and harmless: it is only counted.
    Allowed,
}

impl Force {
    /// The stable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::Hint => "hint",
            Self::Allowed => "allowed",
        }
    }
}

impl fmt::Display for Force {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Force {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What to report of a deviation to the Source's operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// How strongly the specification forbids it.
    pub force: Force,
    /// The section.
    pub section: Section,
    /// What to change, in one sentence.
    pub advice: &'static str,
}

impl Rule {
    /// A rule.
    pub const fn new(force: Force, section: Section, advice: &'static str) -> Self {
        Self { force, section, advice }
    }
}

impl Quirk {
    /// The section of the specification that it violates, or that is about the subject.
    pub fn section(self) -> Section {
        self.rule().section
    }

    /// How strongly that section forbids it.
    pub fn force(self) -> Force {
        self.rule().force
    }

    /// Force, section, and advice for the Source.
    pub fn rule(self) -> Rule {
        use Force::{Allowed, Hint, Must, Should};
        let (force, section, advice) = match self {
            Self::Gzip => (Allowed, Section::SITEMAP_LIMITS, "Nothing needs to change."),
            Self::ByteOrderMark => (Allowed, Section::XML_ENCODING, "Nothing needs to change."),
            Self::BlankBeforeProlog => (
                Must,
                Section::XML_PROLOG,
                "Begin the document with the XML declaration: let nothing precede it, not even an empty line.",
            ),
            Self::OtherEncoding => (
                Must,
                Section::SITEMAP_FORMAT,
                "Write the document in UTF-8, and say so in the XML declaration.",
            ),
            Self::InvalidUtf8 => (
                Must,
                Section::XML_ENCODING,
                "Write the whole document in UTF-8; convert values that come from elsewhere.",
            ),
            Self::BareAmpersand => {
                (Must, Section::SITEMAP_ENTITIES, "Write each ampersand as &amp;, also inside URIs.")
            }
            Self::TrailingBytes => (
                Must,
                Section::XML_WELL_FORMED,
                "End the document with its root element, and keep messages of the server out of it.",
            ),
            Self::DamagedGzipEnd => (
                Must,
                Section::GZIP_MEMBERS,
                "Send the gzip data whole, with their checksum, and nothing behind them.",
            ),
            Self::OddSitemapNamespace => (
                Must,
                Section::NAMESPACES,
                "Declare the sitemap namespace as http://www.sitemaps.org/schemas/sitemap/0.9, letter by letter.",
            ),
            Self::MissingSitemapNamespace => (
                Must,
                Section::NAMESPACES,
                "Declare xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" on the root element.",
            ),
            Self::PrefixedSitemapNamespace => (Allowed, Section::NAMESPACES, "Nothing needs to change."),
            Self::OddResourceSyncNamespace => (
                Must,
                Section::NAMESPACES,
                "Declare the rs namespace as http://www.openarchives.org/rs/terms/, letter by letter.",
            ),
            Self::UndeclaredPrefix => (
                Must,
                Section::XML_PREFIXES,
                "Declare xmlns:rs=\"http://www.openarchives.org/rs/terms/\" on the root element.",
            ),
            Self::ForeignLoc => (Allowed, Section::FORMATS, "Nothing needs to change."),
            Self::NoCapability => (
                Must,
                Section::FORMATS,
                "Give the root element an rs:md whose capability says what the document is.",
            ),
            Self::UnknownCapability => (Allowed, Section::FORMATS, "Nothing needs to change."),
            Self::OddCapabilityName => (
                Must,
                Section::FORMATS,
                "Write the capability as the specification does, in lower case; an index has the capability of its lists.",
            ),
            Self::TooManyEntries => (
                Must,
                Section::SITEMAP_LIMITS,
                "Split the document into parts of at most 50,000 entries, and group them under an index.",
            ),
            Self::RepeatedCapability => (
                Must,
                Section::CAPABILITY_LIST,
                "Name each capability once in a Capability List; group several lists of one kind under an index.",
            ),
            Self::MissingEntryCapability => (
                Must,
                Section::CAPABILITY_LIST,
                "Give each entry an rs:md whose capability says what it leads to.",
            ),
            Self::UrlsetAsIndex => (
                Must,
                Section::FORMATS,
                "Use a sitemapindex as the root element of a document that lists other lists.",
            ),
            Self::IndexAsUrlset => (
                Must,
                Section::FORMATS,
                "Use a urlset as the root element of a document that lists resources.",
            ),
            Self::IndexNotAllowed => (
                Should,
                Section::CAPABILITY_LIST,
                "Use a urlset as the root element: the specification has no index of such documents.",
            ),
            Self::WrongEntryElement => (
                Must,
                Section::FORMATS,
                "Use url elements in a urlset, and sitemap elements in a sitemapindex.",
            ),
            Self::LateHeader => {
                (Must, Section::FORMATS, "Put the document's own rs:md and rs:ln before its first entry.")
            }
            Self::RepeatedMetadata => (Must, Section::FORMATS, "Write one rs:md, with each attribute once."),
            Self::MissingAt => (
                Must,
                Section::TIME_ATTRIBUTES,
                "Give the document's rs:md an at: the time when taking the snapshot began.",
            ),
            Self::MissingFrom => (
                Must,
                Section::TIME_ATTRIBUTES,
                "Give the document's rs:md a from: the time from which on it tells every change.",
            ),
            Self::MissingUntil => (
                Must,
                Section::CHANGE_NOTIFICATION,
                "Give the notification's rs:md an until: the time up to which it tells every change.",
            ),
            Self::EntryWithoutMetadata => (
                Hint,
                Section::RESOURCE_LIST,
                "Give each entry a lastmod, or an rs:md with hash and length, so that copies can be verified and need not be fetched again.",
            ),
            Self::MetadataBeforeLoc => {
                (Hint, Section::SITEMAP_TAGS, "Put loc first in each entry, as the Sitemaps schema has it.")
            }
            Self::WhitespaceInLoc => (Allowed, Section::SITEMAP_TAGS, "Nothing needs to change."),
            Self::SpaceInUri => (Must, Section::URI_CHARACTERS, "Write each blank in a URI as %20."),
            Self::NonAsciiUri => (
                Must,
                Section::URI_CHARACTERS,
                "Write characters beyond ASCII percent-encoded, as the bytes of their UTF-8.",
            ),
            Self::RelativeUri => (Must, Section::SITEMAP_TAGS, "Write whole URIs, with scheme and host."),
            Self::RepeatedLoc => (Should, Section::RESOURCE_LIST, "Name each resource once."),
            Self::MissingChange => {
                (Must, Section::CHANGE_LIST, "Give each entry's rs:md a change: created, updated or deleted.")
            }
            Self::UnreadableChange => {
                (Must, Section::FORMATS, "Use created, updated or deleted as the value of change.")
            }
            Self::OddChangeCase => (Must, Section::FORMATS, "Write the value of change in lower case."),
            Self::ChangeInResourceList => (
                Must,
                Section::RESOURCE_LIST,
                "Tell changes in a Change List, and keep the Resource List for what there is now.",
            ),
            Self::PackageInChangeList => (
                Must,
                Section::CHANGE_DUMP,
                "Offer packages in a Change Dump (capability=\"changedump\"), and resources in a Change List.",
            ),
            Self::MissingPath => (
                Must,
                Section::RESOURCE_DUMP_MANIFEST,
                "Give each entry's rs:md a path, except where the change is deleted.",
            ),
            Self::ManifestElsewhere => (
                Must,
                Section::RESOURCE_DUMP_MANIFEST,
                "Name the manifest manifest.xml, and put it at the top of the package, in no folder.",
            ),
            Self::EmptyValue => {
                (Must, Section::FORMATS, "Leave an attribute or element out where it has no value.")
            }
            Self::UnreadableLength => (Must, Section::FORMATS, "Write length as a plain number of bytes."),
            Self::UnreadablePriority => (Must, Section::FORMATS, "Write pri as a number from 1 to 999999."),
            Self::LinkWithoutTarget => {
                (Must, Section::FORMATS, "Give each rs:ln both rel and href, or leave it out.")
            }
            Self::RelationCase => {
                (Should, Section::RELATIONS, "Write registered relations in lower case, as in describedby.")
            }
            Self::UnreadableTime => (Must, Section::DATETIME, "Write times as YYYY-MM-DDThh:mm:ssZ, in UTC."),
            Self::ZoneLessTime => {
                (Must, Section::DATETIME, "End each time with its zone; a time in UTC ends with Z.")
            }
            Self::SpaceForT => (Must, Section::DATETIME, "Put a T between date and time of day."),
            Self::OddTimeFormat => (
                Must,
                Section::DATETIME,
                "Write times as YYYY-MM-DDThh:mm:ssZ: capital letters, and a colon in the zone.",
            ),
            Self::FutureTime => {
                (Hint, Section::DATETIME, "Write UTC before a Z; local time ends with its offset from UTC.")
            }
            Self::LeapSecond => (Hint, Section::DATETIME, "Write seconds from 00 to 59."),
            Self::NoChangeTime => (
                Hint,
                Section::CHANGE_LIST,
                "Give each entry's rs:md a datetime, so that it is plain which changes are new.",
            ),
            Self::OutOfOrder => {
                (Must, Section::CHANGE_LIST, "List changes in the order of time, the oldest first.")
            }
            Self::NewestFirst => (
                Must,
                Section::CHANGE_LIST,
                "Turn the order round: the oldest change comes first, the latest last.",
            ),
            Self::ChangeOutsideInterval => {
                (Must, Section::FORMATS, "Keep each change's datetime within the document's from and until.")
            }
            Self::OverlappingIntervals => (
                Should,
                Section::CHANGE_LIST_INDEX,
                "Let each interval begin where the one before it ends, and list them in the order of time.",
            ),
            Self::EmptyInterval => (Allowed, Section::FORMATS, "Nothing needs to change."),
            Self::ReversedInterval => (Must, Section::FORMATS, "Let until be no earlier than from."),
        };
        Rule { force, section, advice }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_mode_refuses_what_breaks_a_rule_and_nothing_that_is_only_a_hint() {
        for &quirk in Quirk::ALL {
            let is_refused = quirk.is_refused_when_strict();
            match quirk.force() {
                Force::Must => assert!(is_refused, "{quirk} breaks a MUST, so strict mode refuses it"),
                Force::Should => {}
                Force::Hint | Force::Allowed => assert!(!is_refused, "{quirk} is forbidden nowhere"),
            }
        }
    }

    #[test]
    fn advice_is_one_sentence() {
        for &quirk in Quirk::ALL {
            let advice = quirk.rule().advice;
            assert!(advice.starts_with(char::is_uppercase) && advice.ends_with('.'), "{quirk}: {advice}");
            assert!(!advice.contains(". "), "{quirk} is advised in more than one sentence: {advice}");
        }
    }
}
