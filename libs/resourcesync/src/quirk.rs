use crate::quirk_counts::{QuirkCounts, QuirkSetOf};

/// One row per quirk: variant, name, whether it casts doubt, whether strict mode refuses it, meaning.
macro_rules! quirks {
    ($($variant:ident $name:literal $doubt:literal $refused:literal $meaning:literal;)+) => {
        /// A deviation in a document that the reader tolerates.
        ///
        /// Names are stable: catalogs and reports contain them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Quirk {
            $(#[doc = $meaning] $variant,)+
        }

        impl Quirk {
            /// Every quirk.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable name, in kebab-case.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// What it means, in one line.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)+ }
            }

            /// Whether conclusions from the document are doubtful: that a resource missing from it is gone,
            /// or when something happened.
            pub fn casts_doubt(self) -> bool {
                match self { $(Self::$variant => $doubt,)+ }
            }

            /// Whether [`Mode::Strict`](crate::Mode::Strict) refuses the document. Some quirks are counted
            /// though no specification forbids them.
            pub fn is_refused_when_strict(self) -> bool {
                match self { $(Self::$variant => $refused,)+ }
            }
        }
    };
}

quirks! {
    // Bytes and XML
    Gzip "gzip" false false "the document is gzip-compressed, told by its first bytes";
    ByteOrderMark "byte-order-mark" false false "a byte order mark precedes the document";
    BlankBeforeProlog "blank-before-prolog" false true "blank space precedes the XML declaration";
    OtherEncoding "other-encoding" false true "the XML declaration names an encoding other than UTF-8; it is read as UTF-8";
    InvalidUtf8 "invalid-utf8" true true "bytes are not UTF-8; an entry that has them in a value is bad";
    BareAmpersand "bare-ampersand" false true "an ampersand is not escaped; it is taken for itself";
    TrailingBytes "trailing-bytes" false true "something follows the end of the root element; it is ignored";
    DamagedGzipEnd "damaged-gzip-end" true true "the gzip data are damaged or followed by something behind the root element's end, so the content may be damaged";

    // Names
    OddSitemapNamespace "odd-sitemap-namespace" false true "the sitemap namespace is an old or misspelt one (https, another version, a trailing slash)";
    MissingSitemapNamespace "missing-sitemap-namespace" false true "the sitemap namespace is not declared";
    PrefixedSitemapNamespace "prefixed-sitemap-namespace" false false "sitemap elements have a prefix";
    OddResourceSyncNamespace "odd-resourcesync-namespace" false true "the ResourceSync namespace is misspelt (https, no trailing slash)";
    UndeclaredPrefix "undeclared-prefix" false true "the prefix rs is used without being declared";
    ForeignLoc "foreign-loc" false false "another vocabulary's loc (an image, a video) is ignored";

    // What the document is
    NoCapability "no-capability" true true "the document does not say what it is; it may be a plain sitemap";
    UnknownCapability "unknown-capability" false false "a capability is not in the specification, which allows further ones; it is ignored";
    OddCapabilityName "odd-capability-name" false true "a capability is misspelt (another case, index appended, no dash)";
    TooManyEntries "too-many-entries" false true "the document has more than the 50,000 entries that Sitemaps allow";
    RepeatedCapability "repeated-capability" false true "a Capability List has several entries of one capability; only together are they the set's";
    MissingEntryCapability "missing-entry-capability" false true "an entry does not say what the document it leads to is";
    UrlsetAsIndex "urlset-as-index" true true "a urlset lists lists, where an index would be a sitemapindex";
    IndexAsUrlset "index-as-urlset" true true "a sitemapindex lists changes of resources, where a list would be a urlset";
    IndexNotAllowed "index-not-allowed" false true "a sitemapindex is used where the specification has none";
    WrongEntryElement "wrong-entry-element" false true "a sitemap stands in a urlset, or a url in a sitemapindex";
    LateHeader "late-header" true true "the document's own metadata or links follow an entry";
    RepeatedMetadata "repeated-metadata" false true "the same is said twice, in two rs:md or two attributes";
    MissingAt "missing-at" true true "a list or dump does not say when its snapshot began";
    MissingFrom "missing-from" true true "a change document does not say where its interval begins";
    MissingUntil "missing-until" true true "a notification does not say where its interval ends";

    // Entries
    EntryWithoutMetadata "entry-without-metadata" false false "an entry of a Resource List or Dump says nothing but its URI";
    MetadataBeforeLoc "metadata-before-loc" false false "rs:md or rs:ln precedes loc";
    WhitespaceInLoc "whitespace-in-loc" false false "blank space surrounds a URI";
    SpaceInUri "space-in-uri" false true "a URI holds a blank; it is kept as written";
    NonAsciiUri "non-ascii-uri" false true "a URI holds characters beyond ASCII; it is kept as written";
    RelativeUri "relative-uri" false true "a URI is relative; it is resolved against the document's own where that is known";
    RepeatedLoc "repeated-loc" false false "two entries in a row have the same URI, outside change documents";
    MissingChange "missing-change" true true "an entry of a change document does not say what happened";
    UnreadableChange "unreadable-change" true true "a change has no known value, in a document that is not about changes; it is dropped";
    OddChangeCase "odd-change-case" false true "a change is written in another case";
    ChangeInResourceList "change-in-resource-list" true true "a Resource List tells changes, so it is not the whole set";
    PackageInChangeList "package-in-change-list" true true "a Change List leads to packages, where a Change Dump would";
    MissingPath "missing-path" false true "an entry of a manifest does not say where its bitstream lies";
    ManifestElsewhere "manifest-elsewhere" false true "the manifest of a package is not manifest.xml at its top; it is the only one that can be meant";
    ContentsDiffers "contents-differs" false true "the copy of a manifest that a dump links to (contents) is of another kind or time than the manifest in the package, which counts";
    EmptyValue "empty-value" false true "an attribute or element has no value; it is taken as absent";
    UnreadableLength "unreadable-length" false true "a length is no number; it is dropped";
    UnreadablePriority "unreadable-priority" false true "a link's pri is no number from 1 to 999999; it is dropped";

    // Links
    LinkInLoc "link-in-loc" false true "rs:ln stands inside of loc, as the text of Signmap has it; it is taken for one of the entry";
    LinkWithoutTarget "link-without-target" false true "a link has no href or no rel; it is dropped";
    LinksTruncated "links-truncated" false false "an entry has more links, or a longer target of one, than are kept; those beyond are dropped";
    LinkContradicts "link-contradicts" false true "a link declares another digest or length of a resource than the resource's own entry, which counts";
    RelationCase "relation-case" false true "a relation is written in another case, as in describedBy";

    // Times
    UnreadableTime "unreadable-time" true true "a time other than that of a change is no W3C Datetime; it is dropped";
    ZoneLessTime "zone-less-time" true true "a time of day has no zone; it is read as UTC";
    SpaceForT "space-for-t" false true "a blank stands between date and time of day";
    OddTimeFormat "odd-time-format" false true "a time is written in a way that only looks like W3C Datetime (lower case, zone without colon)";
    FutureTime "future-time" true false "a time is later than the reader's clock, as local time written as UTC is; it orders nothing";
    LeapSecond "leap-second" false false "a time has second 60; it is read as the next second";
    NoChangeTime "no-change-time" true false "an entry of a change document does not say when";
    OutOfOrder "out-of-order" true true "an entry of a change document is older than the one before it";
    NewestFirst "newest-first" true true "the whole change document runs from new to old";
    ChangeOutsideInterval "change-outside-interval" true true "a change lies outside the document's from and until";
    OverlappingIntervals "overlapping-intervals" true true "the interval of a document or package begins before the previous one ends";
    EmptyInterval "empty-interval" false false "an interval ends where it begins";
    ReversedInterval "reversed-interval" true true "an interval ends before it begins";
}

crate::quirk_kind!(Quirk);

/// The set of quirks of one value, without counts.
pub type QuirkSet = QuirkSetOf<Quirk>;
/// How often each quirk occurred.
pub type Quirks = QuirkCounts<Quirk>;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_distinct_kebab_case() {
        let names: BTreeSet<_> = Quirk::ALL.iter().map(|quirk| quirk.as_str()).collect();
        assert_eq!(names.len(), Quirk::ALL.len());
        for name in names {
            assert_eq!(Quirk::named(name).map(Quirk::as_str), Some(name));
            assert!(
                name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
                "{name}"
            );
        }
    }

    #[test]
    fn a_name_that_is_not_known_names_no_quirk() {
        assert_eq!(Quirk::named("no-such-quirk"), None);
    }

    #[test]
    fn counts_serialise_as_name_to_count() {
        let mut quirks = Quirks::default();
        quirks.add(Quirk::Gzip);
        quirks.add_many(Quirk::ZoneLessTime, 3);
        assert_eq!(serde_json::to_string(&quirks).unwrap(), r#"{"gzip":1,"zone-less-time":3}"#);
        assert!(quirks.casts_doubt());
    }

    #[test]
    fn set_keeps_each_quirk_once() {
        let mut set = QuirkSet::default();
        set.insert(Quirk::SpaceForT);
        set.insert(Quirk::SpaceForT);
        assert_eq!(set.iter().collect::<Vec<_>>(), [Quirk::SpaceForT]);
    }
}
