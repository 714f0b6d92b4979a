//! A list with many pages, split by date into windows that are read at the same time. A token leads from one page to the
//! next, so the pages of one window come one after the other.

use model::{OaiReadingKind, OaiWindow};

use super::reading::{List, replace};
use super::window::{Span, overlapping_halves};

/// Windows of a list that are read at the same time.
pub const MOST_OPEN: u32 = 4;
/// Pages from which on a list is split.
pub const PAGES_THAT_PAY: u64 = 100;
/// Windows that are halved for one split. Each costs two requests for a page of identifiers.
const HALVINGS: u32 = 12;
/// How many windows a split makes for each that is read at the same time, so that no reader waits for the largest one.
const WINDOWS_EACH: u64 = 2;

/// How many windows may be read at the same time, where a Source may have so many requests open at its origin. One is
/// left to others, as the bus does with its permits.
pub fn most_open(requests: usize) -> u32 {
    u32::try_from(requests.saturating_sub(1)).unwrap_or(MOST_OPEN).clamp(1, MOST_OPEN)
}

/// A window that is being split, and what its repository said about the size of each part.
#[derive(Debug)]
pub struct Split {
    span: Span,
    size: u64,
    per_page: u64,
    most_open: u64,
    parts: Vec<Part>,
    halved: u32,
    is_believed: bool,
}

#[derive(Debug)]
struct Part {
    window: OaiWindow,
    size: u64,
    /// Whether it stays as it is.
    is_final: bool,
}

impl Split {
    /// The next window to halve, as its halves; none if all are small enough.
    pub fn halve(&mut self) -> Option<[OaiWindow; 2]> {
        if !self.is_believed || self.halved >= HALVINGS {
            return None;
        }
        let enough = self.size / (self.most_open * WINDOWS_EACH);
        loop {
            let part = self.largest().filter(|part| part.size > enough)?;
            let window = part.window.clone();
            match overlapping_halves(&window, self.span) {
                Some(halves) => return Some(halves),
                None => self.fix_largest(),
            }
        }
    }

    /// Takes the sizes of these halves. None: the repository does not tell them.
    pub fn measured(&mut self, halves: [OaiWindow; 2], sizes: Option<[u64; 2]>) {
        self.halved += 1;
        let Some(at) = self.parts.iter().position(|part| !part.is_final && is_made_of(&part.window, &halves))
        else {
            return;
        };
        let Some([older, newer]) = sizes else {
            self.is_believed = false;
            return;
        };
        let (both, size) = (older.saturating_add(newer), self.parts[at].size);
        if both < size {
            // Some records are in the list, and in no window.
            self.is_believed = false;
        } else if both > size.saturating_add(size / 2) {
            // It ignores dates, or counts all its records each time; or most are of the units that both halves have.
            self.parts[at].is_final = true;
        } else {
            let part = |(window, size)| Part { window, size, is_final: false };
            self.parts.splice(at..=at, halves.into_iter().zip([older, newer]).map(part));
        }
    }

    /// The windows to read instead, from old to new; none if one list is read as fast.
    pub fn windows(self) -> Option<Vec<OaiWindow>> {
        let all = self.parts.iter().fold(0, |all: u64, part| all.saturating_add(part.size));
        let largest = self.parts.iter().map(|part| part.size).max().unwrap_or(0);
        let measured = self.per_page.saturating_mul(2 * u64::from(self.halved));
        let pays = largest.max(all / self.most_open).saturating_add(measured) <= self.size / 4 * 3;
        (self.is_believed && pays).then(|| self.parts.into_iter().map(|part| part.window).collect())
    }

    fn largest(&self) -> Option<&Part> {
        self.parts.iter().filter(|part| !part.is_final).max_by_key(|part| part.size)
    }

    /// Leaves the largest window as it is.
    fn fix_largest(&mut self) {
        if let Some(part) = self.parts.iter_mut().filter(|part| !part.is_final).max_by_key(|part| part.size) {
            part.is_final = true;
        }
    }
}

/// Whether these are the halves of a window.
fn is_made_of(window: &OaiWindow, [older, newer]: &[OaiWindow; 2]) -> bool {
    (window.from, window.until) == (older.from, newer.until)
}

impl List<'_> {
    /// How many windows may be read at the same time now.
    pub fn most_open(&self) -> usize {
        self.progress.reading.as_ref().map_or(1, |reading| reading.parallel.max(1) as usize)
    }

    /// A split of a window of which the first page came, if it has so many more that it may pay. Identifiers are not
    /// split: their pages are small.
    pub fn split(&mut self, window: &OaiWindow, most_open: u32) -> Option<Split> {
        let (miscounts, span) = (self.progress.miscounts, self.span);
        let (reading, at) = self.being_read(window)?;
        let open = &reading.waiting[at];
        let page = open.page.as_ref()?;
        let is_open_ended = open.until.is_none() && !open.last;
        if reading.parallel > 0
            || reading.kind == OaiReadingKind::Identifiers
            || most_open < 2
            || !is_open_ended
            || miscounts
            || page.number != 1
            || page.delivered == 0
        {
            return None;
        }
        let size = page.complete?;
        if size / page.delivered < PAGES_THAT_PAY {
            return None;
        }
        let window = OaiWindow { from: open.from, until: open.until, ..OaiWindow::default() };
        Some(Split {
            span,
            size,
            per_page: page.delivered,
            most_open: u64::from(most_open),
            parts: vec![Part { window, size, is_final: false }],
            halved: 0,
            is_believed: true,
        })
    }

    /// Reads these windows instead of one, several at the same time. None: it stays one. A record that changes meanwhile
    /// may leave a window that is not read yet, for one that is. So what changed since the list began is read last.
    pub fn replace(&mut self, window: &OaiWindow, by: Option<Vec<OaiWindow>>, most_open: u32) {
        let span = self.span;
        let Some((reading, at)) = self.being_read(window) else { return };
        let Some((windows, started)) = by.zip(reading.started) else {
            reading.parallel = 1;
            return;
        };
        reading.parallel = most_open;
        let from = Some(span.unit_before(started));
        let changed = OaiWindow { from, last: true, ..OaiWindow::default() };
        replace(reading, at, windows.into_iter().chain([changed]));
    }

    /// Reads half as many windows at the same time, since the server bears no more. Returns their number, if it changed.
    pub fn ease(&mut self) -> Option<u32> {
        let reading = self.progress.reading.as_mut().filter(|reading| reading.parallel > 1)?;
        reading.parallel /= 2;
        Some(reading.parallel)
    }
}
