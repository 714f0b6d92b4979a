//! What the specifications say about each quirk: how strongly, in which section, and what a Source should
//! change.

use std::fmt;

use serde::Serialize;

use crate::quirk::Quirk;
use crate::section::Section;

/// How strongly a specification forbids something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
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

    const fn must(section: Section, advice: &'static str) -> Self {
        Self::new(Force::Must, section, advice)
    }

    const fn should(section: Section, advice: &'static str) -> Self {
        Self::new(Force::Should, section, advice)
    }

    const fn hint(section: Section, advice: &'static str) -> Self {
        Self::new(Force::Hint, section, advice)
    }

    const fn harmless(section: Section) -> Self {
        Self::new(Force::Allowed, section, "Nothing needs to change.")
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
        match self {
            Self::Gzip => Rule::harmless(Section::SITEMAP_LIMITS),
            Self::ByteOrderMark => Rule::harmless(Section::XML_ENCODING),
            Self::BlankBeforeProlog => Rule::must(
                Section::XML_PROLOG,
                "Begin the document with the XML declaration: let nothing precede it, not even an empty line.",
            ),
            Self::OtherEncoding => Rule::must(
                Section::SITEMAP_FORMAT,
                "Write the document in UTF-8, and say so in the XML declaration.",
            ),
            Self::InvalidUtf8 => Rule::must(
                Section::XML_ENCODING,
                "Write the whole document in UTF-8; convert values that come from elsewhere.",
            ),
            Self::BareAmpersand => {
                Rule::must(Section::SITEMAP_ENTITIES, "Write each ampersand as &amp;, also inside URIs.")
            }
            Self::TrailingBytes => Rule::must(
                Section::XML_WELL_FORMED,
                "End the document with its root element, and keep messages of the server out of it.",
            ),
            Self::DamagedGzipEnd => Rule::must(
                Section::GZIP_MEMBERS,
                "Send the gzip data whole, with their checksum, and nothing behind them.",
            ),
            Self::OddSitemapNamespace => Rule::must(
                Section::NAMESPACES,
                "Declare the sitemap namespace as http://www.sitemaps.org/schemas/sitemap/0.9, letter by letter.",
            ),
            Self::MissingSitemapNamespace => Rule::must(
                Section::NAMESPACES,
                "Declare xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" on the root element.",
            ),
            Self::PrefixedSitemapNamespace => Rule::harmless(Section::NAMESPACES),
            Self::OddResourceSyncNamespace => Rule::must(
                Section::NAMESPACES,
                "Declare the rs namespace as http://www.openarchives.org/rs/terms/, letter by letter.",
            ),
            Self::UndeclaredPrefix => Rule::must(
                Section::XML_PREFIXES,
                "Declare xmlns:rs=\"http://www.openarchives.org/rs/terms/\" on the root element.",
            ),
            Self::ForeignLoc => Rule::harmless(Section::FORMATS),
            Self::NoCapability => Rule::must(
                Section::FORMATS,
                "Give the root element an rs:md whose capability says what the document is.",
            ),
            Self::UnknownCapability => Rule::harmless(Section::FORMATS),
            Self::OddCapabilityName => Rule::must(
                Section::FORMATS,
                "Write the capability as the specification does, in lower case; an index has the capability of its lists.",
            ),
            Self::TooManyEntries => Rule::must(
                Section::SITEMAP_LIMITS,
                "Split the document into parts of at most 50,000 entries, and group them under an index.",
            ),
            Self::RepeatedCapability => Rule::must(
                Section::CAPABILITY_LIST,
                "Name each capability once in a Capability List; group several lists of one kind under an index.",
            ),
            Self::MissingEntryCapability => Rule::must(
                Section::CAPABILITY_LIST,
                "Give each entry an rs:md whose capability says what it leads to.",
            ),
            Self::UrlsetAsIndex => Rule::must(
                Section::FORMATS,
                "Use a sitemapindex as the root element of a document that lists other lists.",
            ),
            Self::IndexAsUrlset => Rule::must(
                Section::FORMATS,
                "Use a urlset as the root element of a document that lists resources.",
            ),
            Self::IndexNotAllowed => Rule::should(
                Section::CAPABILITY_LIST,
                "Use a urlset as the root element: the specification has no index of such documents.",
            ),
            Self::WrongEntryElement => Rule::must(
                Section::FORMATS,
                "Use url elements in a urlset, and sitemap elements in a sitemapindex.",
            ),
            Self::LateHeader => {
                Rule::must(Section::FORMATS, "Put the document's own rs:md and rs:ln before its first entry.")
            }
            Self::RepeatedMetadata => {
                Rule::must(Section::FORMATS, "Write one rs:md, with each attribute once.")
            }
            Self::MissingAt => Rule::must(
                Section::TIME_ATTRIBUTES,
                "Give the document's rs:md an at: the time when taking the snapshot began.",
            ),
            Self::MissingFrom => Rule::must(
                Section::TIME_ATTRIBUTES,
                "Give the document's rs:md a from: the time from which on it tells every change.",
            ),
            Self::MissingUntil => Rule::must(
                Section::CHANGE_NOTIFICATION,
                "Give the notification's rs:md an until: the time up to which it tells every change.",
            ),
            Self::EntryWithoutMetadata => Rule::hint(
                Section::RESOURCE_LIST,
                "Give each entry a lastmod, or an rs:md with hash and length, so that copies can be verified and need not be fetched again.",
            ),
            Self::MetadataBeforeLoc => Rule::hint(
                Section::SITEMAP_TAGS,
                "Put loc first in each entry, as the Sitemaps schema has it.",
            ),
            Self::WhitespaceInLoc => Rule::harmless(Section::SITEMAP_TAGS),
            Self::SpaceInUri => Rule::must(Section::URI_CHARACTERS, "Write each blank in a URI as %20."),
            Self::NonAsciiUri => Rule::must(
                Section::URI_CHARACTERS,
                "Write characters beyond ASCII percent-encoded, as the bytes of their UTF-8.",
            ),
            Self::RelativeUri => Rule::must(Section::SITEMAP_TAGS, "Write whole URIs, with scheme and host."),
            Self::RepeatedLoc => Rule::should(Section::RESOURCE_LIST, "Name each resource once."),
            Self::MissingChange => Rule::must(
                Section::CHANGE_LIST,
                "Give each entry's rs:md a change: created, updated or deleted.",
            ),
            Self::UnreadableChange => {
                Rule::must(Section::FORMATS, "Use created, updated or deleted as the value of change.")
            }
            Self::OddChangeCase => Rule::must(Section::FORMATS, "Write the value of change in lower case."),
            Self::ChangeInResourceList => Rule::must(
                Section::RESOURCE_LIST,
                "Tell changes in a Change List, and keep the Resource List for what there is now.",
            ),
            Self::PackageInChangeList => Rule::must(
                Section::CHANGE_DUMP,
                "Offer packages in a Change Dump (capability=\"changedump\"), and resources in a Change List.",
            ),
            Self::MissingPath => Rule::must(
                Section::RESOURCE_DUMP_MANIFEST,
                "Give each entry's rs:md a path, except where the change is deleted.",
            ),
            Self::ManifestElsewhere => Rule::must(
                Section::RESOURCE_DUMP_MANIFEST,
                "Name the manifest manifest.xml, and put it at the top of the package, in no folder.",
            ),
            Self::ContentsDiffers => Rule::should(
                Section::RESOURCE_DUMP_MANIFEST,
                "Replace the copy of a manifest whenever its package is made again.",
            ),
            Self::EmptyValue => {
                Rule::must(Section::FORMATS, "Leave an attribute or element out where it has no value.")
            }
            Self::UnreadableLength => {
                Rule::must(Section::FORMATS, "Write length as a plain number of bytes.")
            }
            Self::UnreadablePriority => {
                Rule::must(Section::FORMATS, "Write pri as a number from 1 to 999999.")
            }
            Self::LinkInLoc => Rule::must(Section::FORMATS, "Write rs:ln beside loc, as a child of url."),
            Self::LinkWithoutTarget => {
                Rule::must(Section::FORMATS, "Give each rs:ln both rel and href, or leave it out.")
            }
            Self::LinksTruncated => Rule::hint(
                Section::FORMATS,
                "Give an entry a few links only, at most 4 KiB of them with targets of at most 2 KiB.",
            ),
            Self::LinkContradicts => Rule::should(
                Section::LINKING,
                "Declare of a link's target what its own entry declares, or leave hash and length of the link out.",
            ),
            Self::RelationCase => Rule::should(
                Section::RELATIONS,
                "Write registered relations in lower case, as in describedby.",
            ),
            Self::UnreadableTime => {
                Rule::must(Section::DATETIME, "Write times as YYYY-MM-DDThh:mm:ssZ, in UTC.")
            }
            Self::ZoneLessTime => {
                Rule::must(Section::DATETIME, "End each time with its zone; a time in UTC ends with Z.")
            }
            Self::SpaceForT => Rule::must(Section::DATETIME, "Put a T between date and time of day."),
            Self::OddTimeFormat => Rule::must(
                Section::DATETIME,
                "Write times as YYYY-MM-DDThh:mm:ssZ: capital letters, and a colon in the zone.",
            ),
            Self::FutureTime => Rule::hint(
                Section::DATETIME,
                "Write UTC before a Z; local time ends with its offset from UTC.",
            ),
            Self::LeapSecond => Rule::hint(Section::DATETIME, "Write seconds from 00 to 59."),
            Self::NoChangeTime => Rule::hint(
                Section::CHANGE_LIST,
                "Give each entry's rs:md a datetime, so that it is plain which changes are new.",
            ),
            Self::OutOfOrder => {
                Rule::must(Section::CHANGE_LIST, "List changes in the order of time, the oldest first.")
            }
            Self::NewestFirst => Rule::must(
                Section::CHANGE_LIST,
                "Turn the order round: the oldest change comes first, the latest last.",
            ),
            Self::ChangeOutsideInterval => Rule::must(
                Section::FORMATS,
                "Keep each change's datetime within the document's from and until.",
            ),
            Self::OverlappingIntervals => Rule::should(
                Section::CHANGE_LIST_INDEX,
                "Let each interval begin where the one before it ends, and list them in the order of time.",
            ),
            Self::EmptyInterval => Rule::harmless(Section::FORMATS),
            Self::ReversedInterval => Rule::must(Section::FORMATS, "Let until be no earlier than from."),
        }
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
