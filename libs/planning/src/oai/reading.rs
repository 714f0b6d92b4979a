//! One list that is being read: what is asked for next, and what follows from each page and each failure.

use jiff::{SignedDuration, Timestamp};
use model::{OaiGap, OaiPage, OaiProgress, OaiReading, OaiReadingKind, OaiWindow, SelectionId};

use super::lateness::next_from;
use super::window::{Span, floor, halves};

/// How often a window is begun anew before it is halved.
pub const RESTARTS: u32 = 3;
/// Empty pages in a row before a window counts as unreadable.
pub const EMPTY_PAGES: u32 = 100;
/// Windows of a list that wait at the same time.
pub const OPEN_WINDOWS: usize = 64;
/// Unread windows of a list that are kept apart. More become one.
pub const UNREAD_WINDOWS: usize = 64;

/// How long after its interruption a list of all records may go on. Later, its first pages say too little of the present.
const GOES_ON_WITHIN: SignedDuration = SignedDuration::from_hours(7 * 24);

/// A list, and how far it is read.
#[derive(Debug)]
pub struct List<'a> {
    pub(super) progress: &'a mut OaiProgress,
    pub(super) span: Span,
    /// The present, by our clock.
    pub(super) clock: Timestamp,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Ask for a page of this window: its first one, or the one that a token leads to.
    Page {
        /// The window.
        window: OaiWindow,
        /// The token.
        token: Option<String>,
    },
    /// Ask for the identifiers of this window, then for its records one by one.
    OneByOne(OaiWindow),
    /// Nothing, until a page of those that are open came.
    Wait,
    /// All windows are read, or became gaps.
    End,
}

/// What a page said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageRead {
    /// Its records, deleted ones too. Those of the page before do not count again.
    pub records: u64,
    /// Records that stand in it twice, or on the page before.
    pub repeated: u64,
    /// Whether it has an element for a token, which is empty on the last page of several.
    pub has_token_element: bool,
    /// The token that it ends with.
    pub token: Option<String>,
    /// Whether the token has the number of records delivered so far.
    pub is_offset: bool,
    /// `completeListSize`.
    pub complete: Option<u64>,
    /// `responseDate`.
    pub response_date: Option<Timestamp>,
    /// The newest datestamp of a record.
    pub newest: Option<Timestamp>,
}

/// Why a page is no basis to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageFailure {
    /// Its token expired, or leads in a circle.
    Token,
    /// The server failed, or broke off within it.
    Server,
}

/// What followed from a page or from a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageEnd {
    /// Another page of the window follows.
    GoesOn,
    /// The window is read.
    Window {
        /// Delivered and promised records, if the promise is not believed.
        miscounted: Option<(u64, u64)>,
    },
    /// The window is begun anew.
    Anew {
        /// Delivered and promised records, if that is why.
        short: Option<(u64, u64)>,
    },
    /// The window was halved.
    Halved,
    /// The records of the window are asked for one by one.
    OneByOne,
    /// The window is unreadable for now.
    Gap(OaiGap),
}

impl<'a> List<'a> {
    /// The list with this progress.
    pub fn of(progress: &'a mut OaiProgress, span: Span) -> Self {
        let mut now = span.now;
        if let Some(reading) = &mut progress.reading {
            now = reading.started.unwrap_or(now);
            if let (Some(page), Some(first)) = (reading.page.take(), reading.waiting.first_mut()) {
                first.page = Some(page);
            }
        }
        Self { progress, span: Span { now, ..span }, clock: span.now }
    }

    /// Begins to read, unless the same list is being read: then it goes on. Returns whether it begins.
    ///
    /// A list of all records also goes on after changes were read. Where each of its runs ended early, it would never end
    /// else.
    pub fn begin(&mut self, kind: OaiReadingKind, selection: SelectionId) -> bool {
        let is_same = |reading: &OaiReading| reading.kind == kind && reading.selection == selection;
        if self.progress.reading.as_ref().is_some_and(is_same) {
            return false;
        }
        if kind == OaiReadingKind::Changes {
            self.set_aside();
        } else if let Some(aside) = self.progress.aside.take_if(|aside| is_same(aside)) {
            let is_recent = |at: Timestamp| self.clock.duration_since(at) <= GOES_ON_WITHIN;
            if aside.interrupted.is_some_and(is_recent) {
                self.progress.reading = Some(aside);
                return false;
            }
        }
        let unread = self.progress.unread.iter().map(|gap| OaiWindow {
            from: gap.from,
            until: gap.until,
            short_before: gap.short,
            ..OaiWindow::default()
        });
        let waiting = match (kind, next_from(self.progress)) {
            (OaiReadingKind::Changes, Some(from)) => {
                let from = Some(floor(from, self.span.by_seconds));
                unread.chain([OaiWindow { from, ..OaiWindow::default() }]).collect()
            }
            // Everything is asked for, what is unread too. Neither `from` nor `until`: a record may be older than the
            // repository says that its oldest one is.
            _ => vec![OaiWindow::default()],
        };
        self.progress.reading = Some(OaiReading {
            kind,
            selection,
            started: None,
            waiting,
            parallel: 0,
            page: None,
            records: 0,
            bad: 0,
            offsets: false,
            changed: false,
            doubtful: false,
            old: false,
            late: 0,
            interrupted: None,
        });
        true
    }

    /// Keeps a list of all records for later.
    fn set_aside(&mut self) {
        if let Some(mut all) =
            self.progress.reading.take_if(|reading| reading.kind == OaiReadingKind::Records)
        {
            all.interrupted.get_or_insert(self.clock);
            self.progress.aside = Some(all);
        }
    }

    /// What to ask for, while pages of the windows `open` are being read. A window that was begun goes on before another
    /// one begins, since its token may expire.
    pub fn next(&self, open: &[OaiWindow]) -> Next {
        let Some(reading) = &self.progress.reading else { return Next::End };
        if reading.waiting.is_empty() {
            return Next::End;
        }
        if open.len() >= self.most_open() {
            return Next::Wait;
        }
        let is_alone = reading.waiting.len() == 1;
        let mut free: Vec<&OaiWindow> = reading
            .waiting
            .iter()
            .filter(|window| !open.iter().any(|other| other.is(window)))
            .filter(|window| is_alone || !window.last)
            .collect();
        free.sort_by_key(|window| window.page.is_none());
        for window in free {
            if !window.one_by_one {
                let token = window.page.as_ref().map(|page| page.token.clone());
                return Next::Page { window: OaiWindow { page: None, ..window.clone() }, token };
            }
            if open.is_empty() {
                return Next::OneByOne(window.clone());
            }
        }
        Next::Wait
    }

    /// Takes a page that was read to its end.
    pub fn page(&mut self, window: &OaiWindow, read: PageRead, now: Timestamp) -> PageEnd {
        let by_seconds = self.span.by_seconds;
        let Some((reading, at)) = self.being_read(window) else { return PageEnd::GoesOn };
        reading.started = reading.started.or(read.response_date);
        reading.records += read.records;
        let before = reading.waiting[at].page.take();
        let (number, delivered, complete, empty) =
            before.map_or((0, 0, None, 0), |page| (page.number, page.delivered, page.complete, page.empty));
        let delivered = delivered + read.records;
        let complete = complete.max(read.complete);
        let empty = if read.records == 0 { empty + 1 } else { 0 };
        // What is of the very unit that the list began in may have changed before.
        let began = reading.started.map(|started| floor(started, by_seconds));
        reading.changed |= read.newest.zip(began).is_some_and(|(newest, began)| newest >= began);
        if read.repeated > 0 {
            // The list moved while it was read, so that as many may have been skipped.
            (reading.offsets, reading.changed) = (true, true);
        }
        if let Some(token) = read.token {
            reading.offsets |= read.is_offset;
            if empty >= EMPTY_PAGES {
                return self.give_up(window, now, format!("{EMPTY_PAGES} pages in a row had no record"));
            }
            let page = OaiPage { token, number: number + 1, delivered, complete, empty };
            reading.waiting[at].page = Some(page);
            return PageEnd::GoesOn;
        }
        self.window_ended(window, delivered, complete, now)
    }

    /// Takes a window whose records were asked for one by one. `listed` is the time of the first list of its
    /// identifiers, as the repository says. A list may have no other window, and its end needs a time.
    pub fn one_by_one(&mut self, window: &OaiWindow, delivered: u64, listed: Option<Timestamp>) -> PageEnd {
        if let Some(reading) = &mut self.progress.reading {
            reading.records += delivered;
            reading.started = reading.started.or(listed);
        }
        self.close(window, None)
    }

    /// Whether a window that fails is about to be halved for the first time, and it would help to know how the
    /// repository reads `from` and `until`.
    pub fn asks_for_bounds(&self, of: &OaiWindow) -> bool {
        let reading = self.progress.reading.as_ref();
        let mut waiting = reading.into_iter().flat_map(|reading| &reading.waiting);
        !self.progress.inclusive_bounds
            && waiting.any(|window| window.is(of) && (window.restarts > 0 || window.halvings > 0))
    }

    /// Takes a failure: the window is begun anew, halved, read one by one, or given up for now.
    pub fn failed(&mut self, of: &OaiWindow, failure: PageFailure, why: &str, now: Timestamp) -> PageEnd {
        let (span, are_inclusive) = (self.span, self.progress.inclusive_bounds);
        let Some((reading, at)) = self.being_read(of) else { return PageEnd::GoesOn };
        let window = &mut reading.waiting[at];
        let page = window.page.take();
        if failure == PageFailure::Token && page.is_some_and(|page| page.complete == Some(page.delivered)) {
            // A token behind the end: all that was promised came, and no more.
            return self.close(of, None);
        }
        let often = match failure {
            PageFailure::Token if window.halvings == 0 => RESTARTS,
            PageFailure::Token => 1,
            // Its first window may only have met a bad moment. A half follows such a failure, and is halved again.
            PageFailure::Server => u32::from(window.halvings == 0),
        };
        if window.one_by_one {
            return self.give_up(of, now, why.to_owned());
        }
        if window.restarts < often {
            window.restarts += 1;
            return PageEnd::Anew { short: None };
        }
        let window = window.clone();
        match halves(&window, span, are_inclusive) {
            None if reading.kind == OaiReadingKind::Identifiers => self.give_up(of, now, why.to_owned()),
            Some(_) if reading.waiting.len() >= OPEN_WINDOWS => {
                let why = format!("{why}; and {OPEN_WINDOWS} windows wait already");
                self.give_up(of, now, why)
            }
            Some(halves) => {
                replace(reading, at, halves.clone());
                self.cut_gap(&window, halves);
                PageEnd::Halved
            }
            None => {
                reading.waiting[at].one_by_one = true;
                PageEnd::OneByOne
            }
        }
    }

    /// Gives a window up for now.
    pub fn give_up(&mut self, window: &OaiWindow, now: Timestamp, why: String) -> PageEnd {
        let Some((reading, at)) = self.being_read(window) else { return PageEnd::GoesOn };
        reading.doubtful = true;
        let window = reading.waiting.remove(at);
        let is_sweep = reading.kind == OaiReadingKind::Identifiers;
        let until = window.until.or(reading.started).or(Some(now));
        let mut gap = OaiGap { from: window.from, until, since: now, why, short: window.short };
        if is_sweep {
            // No record was to be learned from it.
            return PageEnd::Gap(gap);
        }
        let unread = &mut self.progress.unread;
        if let Some(known) =
            unread.iter_mut().find(|known| (known.from, known.until) == (gap.from, gap.until))
        {
            gap.since = known.since;
            *known = gap.clone();
            return PageEnd::Gap(gap);
        }
        if unread.len() >= UNREAD_WINDOWS {
            // One gap over all of them: too much is read again, and nothing is forgotten.
            for known in unread.drain(..) {
                gap.from = gap.from.and_then(|from| Some(from.min(known.from?)));
                gap.until = gap.until.max(known.until);
                gap.since = gap.since.min(known.since);
            }
        }
        unread.push(gap.clone());
        PageEnd::Gap(gap)
    }

    /// Ends the reading. A list that was read moves the cursor to its first `responseDate`.
    pub fn end(&mut self) -> Option<OaiReading> {
        let reading = self.progress.reading.take()?;
        if let Some(started) = reading.started {
            let is_first = self.progress.cursor.is_none();
            if reading.kind == OaiReadingKind::Changes {
                Self::keep_lateness(self.progress, reading.late);
            }
            if reading.kind != OaiReadingKind::Identifiers && !reading.old {
                // A clock that is ahead of ours may be set right before the next list.
                self.progress.cursor = self.progress.cursor.max(Some(started.min(self.clock)));
            }
            // Offsets into a list that changed meanwhile skipped records that did not change. The next run compares all
            // identifiers.
            let may_lack = reading.kind == OaiReadingKind::Records && reading.offsets && reading.changed;
            if reading.kind != OaiReadingKind::Changes && !reading.doubtful {
                self.progress.swept_at = Some(self.clock);
                self.progress.compare_soon = may_lack;
                self.progress.records_soon &= reading.kind != OaiReadingKind::Records;
            }
            // Without a cursor, changes are all records.
            let is_all = reading.kind == OaiReadingKind::Records
                || is_first && reading.kind == OaiReadingKind::Changes;
            // Lists of changes that were read meanwhile may have left gaps behind the pages that were read before.
            if is_all && !reading.doubtful && reading.interrupted.is_none() {
                self.progress.unread.clear();
            }
        }
        Some(reading)
    }

    /// The last page of a window was read: are all records here that were promised?
    fn window_ended(
        &mut self,
        window: &OaiWindow,
        delivered: u64,
        complete: Option<u64>,
        now: Timestamp,
    ) -> PageEnd {
        let miscounts = self.progress.miscounts;
        let Some((complete, (reading, at))) =
            complete.filter(|complete| delivered < *complete).zip(self.being_read(window))
        else {
            return self.close(window, None);
        };
        let ended = &mut reading.waiting[at];
        if miscounts || ended.short_before == Some(delivered) {
            self.progress.miscounts = true;
            return self.close(window, Some((delivered, complete)));
        }
        let is_again = ended.short.replace(delivered) == Some(delivered);
        if is_again || ended.restarts >= RESTARTS {
            let why = format!("{delivered} records came of {complete} that were promised");
            return self.give_up(window, now, why);
        }
        ended.restarts += 1;
        PageEnd::Anew { short: Some((delivered, complete)) }
    }

    /// A window is read.
    fn close(&mut self, window: &OaiWindow, miscounted: Option<(u64, u64)>) -> PageEnd {
        let Some((reading, at)) = self.being_read(window) else { return PageEnd::GoesOn };
        let window = reading.waiting.remove(at);
        if reading.kind != OaiReadingKind::Identifiers {
            self.progress.unread.retain(|gap| !is_of(gap, &window));
        }
        PageEnd::Window { miscounted }
    }

    /// A gap whose window is halved is two gaps, which close one by one.
    fn cut_gap(&mut self, whole: &OaiWindow, halves: [OaiWindow; 2]) {
        let unread = &mut self.progress.unread;
        let Some(at) = unread.iter().position(|gap| is_of(gap, whole)) else { return };
        let gap = unread.remove(at);
        unread.extend(halves.map(|half| OaiGap { from: half.from, until: half.until, ..gap.clone() }));
    }

    /// The list that is being read, and the place of a window in it.
    pub(super) fn being_read(&mut self, window: &OaiWindow) -> Option<(&mut OaiReading, usize)> {
        let reading = self.progress.reading.as_mut()?;
        let at = reading.waiting.iter().position(|other| other.is(window))?;
        Some((reading, at))
    }
}

/// Replaces a window by others, except those that wait already.
pub(super) fn replace(reading: &mut OaiReading, at: usize, by: impl IntoIterator<Item = OaiWindow>) {
    let behind = reading.waiting.split_off(at + 1);
    reading.waiting.truncate(at);
    for window in by {
        if !reading.waiting.iter().chain(&behind).any(|other| other.is(&window)) {
            reading.waiting.push(window);
        }
    }
    reading.waiting.extend(behind);
}

/// Whether a gap is this window.
fn is_of(gap: &OaiGap, window: &OaiWindow) -> bool {
    (gap.from, gap.until) == (window.from, window.until)
}
