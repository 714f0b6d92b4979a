use resourcesync::{Force, QuirkCounts, QuirkSetOf, Rule, Section};

use crate::section;

/// One row per quirk: variant, name, whether it casts doubt, force, section, meaning, advice.
macro_rules! quirks {
    ($($variant:ident $name:literal $doubt:literal $force:ident $section:ident $meaning:literal $advice:literal;)+) => {
        /// A deviation of an OAI-PMH repository that is tolerated and counted.
        ///
        /// The reader counts what one answer shows. What takes several answers, such as `short-list`, is counted
        /// by the harvest. Names are stable: catalogs and reports contain them. Names that `resourcesync` has
        /// too mean the same there.
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

            /// Whether conclusions from the answer are doubtful: that a record missing from it is gone, or
            /// when something happened. The cursor stays where it is.
            pub fn casts_doubt(self) -> bool {
                match self { $(Self::$variant => $doubt,)+ }
            }

            /// Force, section, and advice for the Source.
            pub fn rule(self) -> Rule {
                match self { $(Self::$variant => Rule::new(Force::$force, section::$section, $advice),)+ }
            }
        }
    };
}

quirks! {
    // Bytes and XML
    Gzip "gzip" false Allowed COMPRESSION "the answer is gzip-compressed, told by its first bytes" "Nothing needs to change.";
    NoCompression "no-compression" false Must COMPRESSION "compression was asked for and came broken; the answer is asked for without it" "Send gzip whole, or leave it out of what Identify offers.";
    DamagedGzipEnd "damaged-gzip-end" true Must COMPRESSION "the gzip data are damaged or followed by something behind the root element's end" "Send the gzip data whole, with their checksum, and nothing behind them.";
    ByteOrderMark "byte-order-mark" false Allowed XML_FORMAT "a byte order mark precedes the answer" "Nothing needs to change.";
    BlankBeforeProlog "blank-before-prolog" false Must XML_PROLOG "blank space precedes the XML declaration" "Begin the answer with the XML declaration: let nothing precede it, not even an empty line.";
    OtherEncoding "other-encoding" false Must XML_FORMAT "the XML declaration names an encoding other than UTF-8; it is read as UTF-8" "Write answers in UTF-8, and say so in the XML declaration.";
    InvalidUtf8 "invalid-utf8" true Must XML_FORMAT "bytes are not UTF-8; the record that has them is bad, or is read in the encoding that the operator names" "Write answers in UTF-8; convert values that come from elsewhere.";
    IllegalCharacter "illegal-character" false Must XML_CHARACTERS "a record has characters that XML forbids; each is read as U+FFFD" "Remove control characters from values before they are written as XML.";
    BareAmpersand "bare-ampersand" false Must XML_FORMAT "an ampersand is not escaped; it is taken for itself" "Write each ampersand as &amp;, also inside URLs.";
    UndeclaredPrefix "undeclared-prefix" false Must XML_PREFIXES "a well-known prefix (xsi, dc, oai_dc, xlink) is used without being declared" "Declare each prefix where it is used, or on the root element of the metadata.";
    InnerXmlDeclaration "inner-xml-declaration" false Must XML_PROLOG "an XML declaration stands inside the metadata; it is skipped" "Remove the XML declaration from metadata before they are put into an answer.";
    StrayText "stray-text" false Must XML_FORMAT "text stands between the elements of the answer, as messages of a server do; it is ignored" "Keep messages of the server out of answers.";
    TrailingBytes "trailing-bytes" false Must XML_WELL_FORMED "something follows the end of the root element; it is ignored" "End the answer with its root element, and keep messages of the server out of it.";
    CutDocument "cut-document" true Must XML_WELL_FORMED "the answer ends before its root element does; whole records before that are taken" "Send answers whole, or with a status of 500 and above.";
    BrokenRecord "broken-record" false Must XML_WELL_FORMED "one record is cut or not well-formed; the answer goes on at the next one" "Check that each record is well-formed before it is written.";

    // Names
    PrefixedOaiNamespace "prefixed-oai-namespace" false Allowed XML_FORMAT "the protocol's elements have a prefix" "Nothing needs to change.";
    OddOaiNamespace "odd-oai-namespace" false Must XML_FORMAT "the namespace of OAI-PMH is misspelt (https, no trailing slash)" "Declare the namespace as http://www.openarchives.org/OAI/2.0/, letter by letter.";
    MissingOaiNamespace "missing-oai-namespace" false Must XML_FORMAT "the namespace of OAI-PMH is not declared" "Declare xmlns=\"http://www.openarchives.org/OAI/2.0/\" on the root element.";
    MissingVerbElement "missing-verb-element" true Must XML_FORMAT "the answer has neither an error nor an element named like the verb" "Answer with the verb's element, or with an error element that says why not.";
    ErrorBesideList "error-beside-list" true Must ERRORS "the answer has both an error and a list" "Answer with errors or with the verb's element, never with both.";

    // Times
    MissingResponseDate "missing-response-date" true Must XML_FORMAT "the answer does not say when it was made" "Begin each answer with a responseDate in UTC.";
    OddResponseDate "odd-response-date" false Must DATES "the responseDate has an offset, a fraction or no zone" "Write responseDate as YYYY-MM-DDThh:mm:ssZ.";
    OddGranularity "odd-granularity" false Must IDENTIFY "the granularity is written in another case, unknown or missing" "Write YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ as granularity, letter by letter.";
    GranularityLie "granularity-lie" false Must IDENTIFY "the granularity that is announced is refused in requests; the other form is used" "Take the granularity that Identify announces in from and until, and days always.";
    DatestampPrecision "datestamp-precision" false Must DATES "datestamps are finer than the granularity, or have fractions" "Write datestamps in the granularity that Identify announces.";
    OddDatestamp "odd-datestamp" false Must DATES "a datestamp is written in another form than the protocol's, such as with an offset" "Write datestamps as YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ, in UTC.";
    UnreadableDatestamp "unreadable-datestamp" true Must RECORD "a header has no datestamp, or one that is no time; the record is kept without" "Give each header a datestamp in UTC.";
    FutureTime "future-time" true Must DATES "a datestamp is later than the reader's clock, as local time written as UTC is" "Write UTC, not local time, before the Z.";
    LateEarliestDatestamp "late-earliest-datestamp" false Must IDENTIFY "records are older than earliestDatestamp; it is never used as a bound" "Let earliestDatestamp be no later than the oldest datestamp.";
    ExclusiveBounds "exclusive-bounds" false Must SELECTIVE_DATES "from or until excludes records with that very datestamp; windows are one unit wider" "Include both bounds: from and until may be the same day.";
    DatestampIsNow "datestamp-is-now" false Must RECORD "every record has the time of the request as its datestamp" "Give each record the time of its last change as datestamp.";
    DatestampNotMoved "datestamp-not-moved" true Must RECORD "a record changed without a new datestamp, so that no selective harvest shows it" "Set the datestamp on each change of the metadata, also at the end of an embargo.";
    LateDatestamp "late-datestamp" false Hint SELECTIVE_DATES "a record shows up later than its datestamp says; windows overlap for that" "Set the datestamp when the change becomes visible in lists.";
    StaleAnswer "stale-answer" true Should SELECTIVE_DATES "a list lacks the newest record of an earlier list, as where a cache answers; its changes are asked for again" "Drop cached answers when records change.";
    NoSelectiveHarvest "no-selective-harvest" false Must SELECTIVE_DATES "from is ignored: a list of changes has older records" "Support from and until in ListRecords and ListIdentifiers.";

    // Tokens
    TokenLoop "token-loop" true Must FLOW_CONTROL "a token leads back to records that were listed before; the list does not end" "Let each token lead to the next part, and the last part have an empty token.";
    UnchangedToken "unchanged-token" false Should FLOW_CONTROL "the same token stands on each page, and the server keeps the cursor" "Give each part of a list a token of its own, so that a part can be asked for again.";
    TokenAfterEnd "token-after-end" false Must FLOW_CONTROL "the last page has a token that leads to nothing or to an error" "Let the last part of a list have an empty resumptionToken.";
    TokenMissing "token-missing" true Must FLOW_CONTROL "a token is missing or empty although the list goes on" "Give each part but the last a resumptionToken.";
    TokenNotExclusive "token-not-exclusive" false Must FLOW_CONTROL "a token is refused without the metadataPrefix beside it" "Take resumptionToken as the only argument beside the verb.";
    TokenVerbatim "token-verbatim" false Must REQUEST_ENCODING "a percent-encoded token is refused; it is sent as printed" "Decode percent-encoded arguments, tokens too.";
    EncodedToken "encoded-token" false Must REQUEST_ENCODING "a token is printed percent-encoded; it is decoded before it is sent" "Print tokens as they are; harvesters encode them.";
    ShortTokenLife "short-token-life" false Hint TOKEN_IDEMPOTENCY "tokens expire within ten minutes" "Let tokens live for a day, so that a harvest can wait and go on.";
    TokenLosesSet "token-loses-set" true Must FLOW_CONTROL "later pages hold records of other sets; records are filtered by their setSpec" "Keep the set, the dates and the prefix of the first request for all parts of a list.";
    TokenTooLong "token-too-long" false Hint FLOW_CONTROL "a token is longer than many servers take in a URL" "Keep tokens below 2,000 bytes.";
    DeepPageFails "deep-page-fails" true Must FLOW_CONTROL "pages far into a list fail; the window is split" "Let every part of a list be read, whatever its length.";
    TokenAdvances "token-advances" true Must TOKEN_IDEMPOTENCY "the same token sent again gives the next page, so that one page is lost" "Answer a repeated token with the same part again.";
    UnreadableNumber "unreadable-number" false Must FLOW_CONTROL "a completeListSize or cursor is no number; it is dropped" "Write completeListSize and cursor as plain numbers.";

    // Lists
    WrongCompleteListSize "wrong-complete-list-size" false Must FLOW_CONTROL "completeListSize is not the number of records in the list" "Count the records of the selection for completeListSize, or leave it out.";
    ShortList "short-list" true Must FLOW_CONTROL "the list ends before completeListSize is reached" "Let every record of the selection stand in its list.";
    RepeatedRecord "repeated-record" false Must FLOW_CONTROL "a record stands in a list twice; as many may be missing" "Order lists by something that does not change while they are read.";
    EmptyPage "empty-page" false Must FLOW_CONTROL "a page of a list has no records" "Leave empty parts out; answer noRecordsMatch where the whole list is empty.";
    WindowTooLarge "window-too-large" false Must FLOW_CONTROL "a list is refused for its length; the window is split" "Cut long lists into parts with resumption tokens.";
    ErrorWithStatus "error-with-status" false Must STATUS_CODES "an error of the protocol comes with an HTTP status of 400 and above" "Send errors of the protocol with status 200.";
    WrongErrorCode "wrong-error-code" false Must ERRORS "an error has another code than its meaning, such as cannotDisseminateFormat where nothing matches" "Answer noRecordsMatch where nothing matches.";
    UnknownErrorCode "unknown-error-code" false Must ERRORS "an error has a code that is not in the protocol" "Use the codes of the protocol, and status 500 for the server's own faults.";
    Challenged "challenged" true Must STATUS_CODES "a bot wall, an error page or nothing is sent in place of an answer" "Exempt the base URL from bot defences, and send errors with their status.";
    BaseUrlMismatch "base-url-mismatch" false Must IDENTIFY "the baseURL in Identify is not the one that answers" "Let Identify name the base URL that harvesters use.";
    VerbMissing "verb-missing" false Must REQUESTS "a verb is not supported" "Support all six verbs.";
    SetIgnored "set-ignored" false Must SELECTIVE_SETS "records outside of the set are listed; they are filtered by their setSpec" "List only members of the set that is asked for.";
    SetVanished "set-vanished" true Hint SETS "ListSets does not name a set that is harvested" "Keep sets, or tell harvesters before they go.";
    SetsUnreadable "sets-unreadable" false Must LIST_SETS "ListSets fails; the names come from headers" "Let ListSets be read to its end.";

    // Records
    EmptyMetadata "empty-metadata" false Must RECORD "a record that is not deleted has no metadata" "Give each record its metadata, or the status deleted.";
    DeletedWithMetadata "deleted-with-metadata" false Must DELETED "a deleted record has metadata; they are ignored" "Leave metadata out of deleted records.";
    OddStatus "odd-status" true Must RECORD "a header has a status other than deleted; the record counts as live" "Use deleted as the only value of status.";
    PromisedDeletesMissing "promised-deletes-missing" true Must DELETED "deletions are promised and never shown" "Announce deletedRecord as no, or keep and show deletions.";
    DeletedUnknown "deleted-unknown" false Must DELETED "GetRecord says that a listed record does not exist" "Answer GetRecord of a deleted record with its deleted header.";
    DeletedAndLive "deleted-and-live" true Must DELETED "a record is listed as deleted and as live" "List each record once, as what it is now.";
    DeletedInOneSet "deleted-in-one-set" true Must SELECTIVE_SETS "a record that left a set is shown as deleted" "Show a record as deleted only if it is deleted everywhere.";
    DeletesInFirstList "deletes-in-first-list" false Allowed DELETED "the first list is full of deletions" "Nothing needs to change.";
    BareDoi "bare-doi" false Hint RECORD "an identifier is a DOI without scheme; doi.org is put before it" "Write DOIs as https://doi.org/ and the DOI.";
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

    /// Whether [`Strictness::Strict`](crate::Strictness::Strict) refuses the answer: the quirk breaks a MUST.
    pub fn is_refused_when_strict(self) -> bool {
        self.force() == Force::Must
    }
}

resourcesync::quirk_kind!(Quirk);

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
        assert_eq!(Quirk::named("no-such-quirk"), None);
    }

    #[test]
    fn a_name_that_resourcesync_has_too_casts_the_same_doubt() {
        let mut shared = 0;
        for &quirk in Quirk::ALL {
            if let Some(theirs) = resourcesync::Quirk::named(quirk.as_str()) {
                assert_eq!(quirk.casts_doubt(), theirs.casts_doubt(), "{quirk}");
                shared += 1;
            }
        }
        assert!(shared >= 8, "only {shared} names are shared");
    }

    #[test]
    fn advice_is_one_sentence() {
        for &quirk in Quirk::ALL {
            let advice = quirk.rule().advice;
            assert!(advice.starts_with(char::is_uppercase) && advice.ends_with('.'), "{quirk}: {advice}");
            assert!(!advice.contains(". "), "{quirk} is advised in more than one sentence: {advice}");
        }
    }

    #[test]
    fn a_set_keeps_each_quirk_once_also_beyond_64() {
        let last = *Quirk::ALL.last().unwrap();
        let mut set = QuirkSet::default();
        assert!(set.is_empty());
        for quirk in [last, Quirk::Gzip, last] {
            set.insert(quirk);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [Quirk::Gzip, last]);
    }

    #[test]
    fn counts_serialise_as_name_to_count() {
        let mut quirks = Quirks::default();
        quirks.add(Quirk::Gzip);
        quirks.add_many(Quirk::ShortList, 3);
        assert_eq!(serde_json::to_string(&quirks).unwrap(), r#"{"gzip":1,"short-list":3}"#);
        assert!(quirks.casts_doubt());
    }
}
