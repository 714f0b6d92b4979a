//! Faults of repositories in the wild, as switches.

use std::mem::discriminant;
use std::time::Duration;

/// A way in which the repository deviates from the protocol, until it is cleared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepositoryFault {
    // Identify and times
    /// Announces seconds and refuses them in `from` and `until`.
    GranularityLie,
    /// Announces this text as its granularity; none when empty.
    OddGranularity(String),
    /// Datestamps have fractions of a second.
    FractionalDatestamps,
    /// `earliestDatestamp` is the present.
    LateEarliestDatestamp,
    /// Records with the very datestamp of `until` are left out.
    ExclusiveBounds,
    /// Writes local time, so many hours ahead of UTC, with a Z.
    LocalTime(u32),
    /// `responseDate` has an offset and a fraction.
    OddResponseDate,
    /// Every record has the time of the request as its datestamp.
    DatestampIsNow,
    /// A change shows in lists this many seconds after its datestamp.
    LateIndex(u32),
    /// Lists with a `from` before the first moment do not have what changed after the second one, in seconds of the
    /// simulation.
    StaleAnswers(i64, i64),
    /// `from` and `until` are ignored.
    IgnoresDates,
    /// Identify names this base URL.
    OtherBaseUrl(String),
    /// robots.txt disallows the base URL.
    Disallowed,

    // Tokens
    /// Tokens are an offset into the list by datestamp, so that records that leave the list make it skip others.
    OffsetTokens,
    /// The token of this page (the first is 0) leads back to the first page for ever.
    TokenLoop(u64),
    /// The token is the same on all pages; the server keeps the cursor.
    UnchangedToken,
    /// A token that is sent again gives the next page.
    TokenAdvances,
    /// The last page has a token too. It leads to `badResumptionToken`, or to an empty page.
    TokenAfterEnd {
        /// Whether it leads to an error.
        error: bool,
    },
    /// The list ends in silence behind this page (the first is 0).
    TokenMissing(u64),
    /// A token wants `metadataPrefix` beside it.
    TokenNotExclusive,
    /// Tokens are compared with the query as it was sent, without decoding.
    TokenVerbatim,
    /// Tokens are printed percent-encoded, and must come back decoded.
    EncodedToken,
    /// Tokens live this long.
    ShortTokenLife(Duration),
    /// Later pages have records of all sets.
    TokenLosesSet,

    // Lists
    /// Pages behind this many records fail with this status.
    DeepPageFails(u64, u16),
    /// `completeListSize` is this much off.
    WrongCompleteListSize(i64),
    /// Each page but the first begins with the last record of the page before.
    RepeatedRecord,
    /// So many empty pages stand behind each page.
    EmptyPages(u64),
    /// Lists of more records are refused with 413 and a page of HTML.
    WindowTooLarge(u64),
    /// Errors of the protocol come with this status.
    ErrorStatus(u16),
    /// An empty list is `cannotDisseminateFormat`.
    WrongErrorCode,
    /// `set` is ignored.
    SetIgnored,
    /// ListSets is cut off.
    SetsUnreadable,
    /// This verb is `badVerb`.
    VerbMissing(&'static str),

    // Bytes and XML
    /// gzip is sent without `Content-Encoding`.
    UnlabelledGzip,
    /// gzip is cut off when it is accepted.
    BrokenGzip,
    /// Every so many records have a control character in their metadata.
    IllegalCharacters(u64),
    /// Every so many records are in ISO 8859-1, and so is the repository's name.
    Latin1(u64),
    /// Every so many records use a prefix that is nowhere declared.
    UndeclaredPrefix(u64),
    /// The prefixes of `oai_dc` are declared on the root element only.
    EnvelopeNamespaces,
    /// Every so many records have an XML declaration in their metadata.
    InnerXmlDeclaration(u64),
    /// Every so many records are cut in the middle.
    BrokenRecord(u64),
    /// A notice follows the end.
    TrailingBytes,
    /// All elements of the protocol have a prefix.
    Prefixed,

    // Records
    /// Every so many live records have empty metadata.
    EmptyMetadata(u64),
    /// Deletions are never shown, whatever is promised.
    PromisedDeletesMissing,
    /// GetRecord of a deleted record is `idDoesNotExist`.
    DeletedUnknown,
    /// Every deleted record is listed as live too.
    DeletedAndLive,
    /// A record that left a set is shown there as deleted.
    DeletedInOneSet,
    /// Records have a DOI without scheme.
    BareDoi,
    /// The landing page of this record, or all of them, are odd.
    Landing(LandingFault, Option<u64>),
    /// Lists are empty, without an error that says so.
    EmptyLists,
    /// Each page with this record fails with this status, and so does GetRecord.
    FailingRecord(u64, u16),
    /// So many of 1,000 pages fail: with 500, 422, a cut document and a page of HTML in turn.
    Flaky(u32),
}

/// How a landing page is odd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LandingFault {
    /// It answers with this status.
    Status(u16),
    /// It is a page without typed links, with the status 200.
    ErrorPage,
    /// It is a file.
    File,
    /// It leads back to itself.
    Loop,
    /// It names so many files, and itself.
    Items(u64),
    /// It leads to the page of the record at another site.
    Redirect(String),
}

/// How one response fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// This status, with a short text, and `Retry-After` in seconds if not 0.
    Status(u16, u64),
    /// A page of HTML with this status.
    Html(u16),
    /// This status without a body.
    Empty(u16),
    /// The document ends after this many bytes, with status 200 and a matching length.
    Cut(usize),
    /// The connection ends after this many bytes.
    Broken(usize),
    /// The answer is prepared, so that a cursor on the server moves on, and then this status is sent.
    Lost(u16),
}

/// The faults that are set.
#[derive(Debug, Default)]
pub(super) struct Faults {
    set: Vec<RepositoryFault>,
    /// What the next responses to lists and records are.
    next: Vec<Failure>,
}

impl Faults {
    /// Sets a fault; one of the same kind is replaced.
    pub(super) fn set(&mut self, fault: RepositoryFault) {
        self.set.retain(|known| discriminant(known) != discriminant(&fault));
        self.set.push(fault);
    }

    pub(super) fn clear(&mut self) {
        self.set.clear();
        self.next.clear();
    }

    pub(super) fn has(&self, fault: &RepositoryFault) -> bool {
        self.set.contains(fault)
    }

    /// The value of the first fault that `pick` knows.
    pub(super) fn find<T>(&self, pick: impl Fn(&RepositoryFault) -> Option<T>) -> Option<T> {
        self.set.iter().find_map(pick)
    }

    pub(super) fn fail_next(&mut self, failure: Failure, times: usize) {
        self.next.extend(std::iter::repeat_n(failure, times));
    }

    /// The failure of this response, if it fails.
    pub(super) fn take(&mut self) -> Option<Failure> {
        if self.next.is_empty() { None } else { Some(self.next.remove(0)) }
    }
}

/// `$faults` has the variant with one field; its value.
macro_rules! value {
    ($faults:expr, $variant:ident) => {
        $faults.find(|fault| match fault {
            crate::oai::fault::RepositoryFault::$variant(value) => Some(value.clone()),
            _ => None,
        })
    };
}
pub(super) use value;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_the_same_kind_replaces_the_former() {
        let mut faults = Faults::default();
        faults.set(RepositoryFault::Flaky(10));
        faults.set(RepositoryFault::Flaky(20));
        assert_eq!(value!(faults, Flaky), Some(20));
        faults.clear();
        assert_eq!(value!(faults, Flaky), None);
    }

    #[test]
    fn failures_come_in_turn_and_end() {
        let mut faults = Faults::default();
        faults.fail_next(Failure::Html(403), 2);
        assert_eq!(
            (faults.take(), faults.take(), faults.take()),
            (Some(Failure::Html(403)), Some(Failure::Html(403)), None)
        );
    }
}
