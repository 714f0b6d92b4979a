//! What is odd about a whole list: it is known at its end, and counted then.

use std::borrow::Borrow;

use model::{MemberOutcome, MemberResult, OaiReadingKind, OaiWindow};
use oaipmh::{Item, Quirk, Resumption};
use planning::oai::{List, PageEnd, floor};
use resourcesync::Datetime;

use crate::oai::bounds;
use crate::oai::reading::Reading;
use crate::run::RunContext;

/// Records that a list must have before all their datestamps are odd.
const MANY: u64 = 10;
/// The life of a token that hardly outlasts a pause, in seconds.
const SHORT_LIFE: i64 = 600;

/// Quirks of an answer that may hide records of it, or whose times are not to be compared with others: nothing follows
/// from what such a list omits.
pub(super) const CAST_DOUBT: [Quirk; 5] =
    [Quirk::DamagedGzipEnd, Quirk::InvalidUtf8, Quirk::ErrorBesideList, Quirk::OddStatus, Quirk::FutureTime];

/// What was seen of a list.
#[derive(Debug, Default)]
pub(super) struct Signs {
    /// Whether it was begun by this process. Of another list, the pages of before are not known.
    is_whole: bool,
    records: u64,
    deleted: u64,
    /// Records that are older than `from`.
    before_from: u64,
    /// Whether compressed answers came broken, and the next one is asked for without compression.
    pub(super) tries_uncompressed: bool,
}

impl Signs {
    /// Nothing yet, of a list that is read from its begin, or taken up.
    pub(super) fn of(is_whole: bool) -> Self {
        Self { is_whole, ..Self::default() }
    }

    /// Looks at records of a window.
    pub(super) fn see<T: Borrow<Item>>(&mut self, window: &OaiWindow, items: &[T], by_seconds: bool) {
        for header in items.iter().filter_map(|item| bounds::header(item.borrow())) {
            self.records += 1;
            self.deleted += u64::from(header.is_deleted());
            let datestamp = header.datestamp.as_ref().map(Datetime::instant);
            let is_before = datestamp.zip(window.from).is_some_and(|(at, from)| at < floor(from, by_seconds));
            self.before_from += u64::from(is_before);
        }
    }
}

impl Reading {
    /// Counts what the end of a window says of a list that lacks records.
    pub(super) fn count_short(&mut self, end: &PageEnd, has_token_element: bool, has_resent: bool) {
        let is_short = match end {
            PageEnd::Anew { short } => short.is_some(),
            PageEnd::Gap(gap) => gap.short.is_some(),
            _ => false,
        };
        if is_short && !has_token_element {
            self.quirk(Quirk::TokenMissing);
        }
        if is_short && has_resent {
            self.quirk(Quirk::TokenAdvances);
        }
    }

    /// Looks at records whose bytes are new: an index may show one late.
    pub(super) fn see_new(&mut self, ctx: &RunContext, outcomes: &[MemberOutcome]) {
        let span = self.span(ctx);
        let mut list = List::of(&mut self.list.progress, span);
        for outcome in
            outcomes.iter().filter(|outcome| matches!(outcome.result, MemberResult::Verified { .. }))
        {
            if let Some(datestamp) = &outcome.entry.metadata.datetime {
                list.see_new(datestamp.instant());
            }
        }
    }

    /// Counts what a list shows that was read to its end.
    pub(super) fn count_signs(&mut self, ctx: &RunContext) {
        let span = self.span(ctx);
        let (newest, oldest) = (self.bounds.newest, self.bounds.oldest);
        if !self.signs.is_whole {
            return;
        }
        let mut list = List::of(&mut self.list.progress, span);
        let is_old = list.is_old(newest);
        let Some(read) = &self.list.progress.reading else { return };
        let is_of_all = read.kind != OaiReadingKind::Changes;
        let is_first = read.kind == OaiReadingKind::Records && self.list.progress.cursor.is_none();
        let Signs { records, deleted, before_from, .. } = self.signs;
        let is_now = is_of_all
            && self.list.by_seconds
            && records >= MANY
            && oldest.zip(read.started).is_some_and(|(oldest, started)| oldest >= started);
        let found = [
            (is_old, Quirk::StaleAnswer),
            (read.late > 0, Quirk::LateDatestamp),
            (before_from > 0, Quirk::NoSelectiveHarvest),
            (is_now, Quirk::DatestampIsNow),
            (is_first && records >= MANY && deleted * 2 >= records, Quirk::DeletesInFirstList),
        ];
        for (_, quirk) in found.into_iter().filter(|(is_found, _)| *is_found) {
            self.quirk(quirk);
        }
    }
}

/// Whether a token lives for some minutes only.
pub(super) fn is_short_lived(resumption: &Resumption, response_date: &Datetime) -> bool {
    let expires = resumption.token.as_ref().and(resumption.expires.as_ref());
    expires.is_some_and(|expires| {
        expires.instant().duration_since(response_date.instant()).as_secs() < SHORT_LIFE
    })
}
