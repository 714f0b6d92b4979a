//! Windows of datestamps: how they are written, and how they are halved.

use jiff::{SignedDuration, Timestamp};
use model::OaiWindow;

/// A day, in seconds.
const DAY: i64 = 86_400;
/// Where a repository without `earliestDatestamp` is taken to begin: before OAI-PMH there were no datestamps.
const EARLIEST: i64 = 946_684_800;

/// Units of a window that is worth a split: so much more than its halves share.
const SHORTEST_SPLIT: i64 = 8;
/// Units between the ends of a window whose halves share two, and are smaller all the same.
const SHORTEST_SHARED: i64 = 3;

/// The time that open windows are halved within.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// `earliestDatestamp`, if it is known.
    pub earliest: Option<Timestamp>,
    /// The `responseDate` of the first page, or the present.
    pub now: Timestamp,
    /// Whether the repository takes seconds.
    pub by_seconds: bool,
}

impl Span {
    /// The unit of the granularity, in seconds.
    fn unit(self) -> i64 {
        if self.by_seconds { 1 } else { DAY }
    }

    /// The beginning of a unit, which is counted since 1970.
    fn time(self, units: i64) -> Option<Timestamp> {
        Timestamp::from_second(units * self.unit()).ok()
    }

    /// The beginning of the unit before that of a time. A list from there has what is of the time, even if it leaves out
    /// `from` itself.
    pub(super) fn unit_before(self, time: Timestamp) -> Timestamp {
        floor(time - SignedDuration::from_secs(self.unit()), self.by_seconds)
    }

    /// The first and the last unit of a window, in units since 1970.
    fn units_of(self, window: &OaiWindow) -> (i64, i64) {
        let unit = self.unit();
        let earliest = self.earliest.map_or(EARLIEST, |earliest| earliest.as_second());
        let first = window.from.map_or(earliest, |from| from.as_second()).div_euclid(unit);
        let last = window.until.map_or(self.now.as_second(), |until| until.as_second()).div_euclid(unit);
        (first, last)
    }
}

/// The time at the beginning of its unit.
pub fn floor(time: Timestamp, by_seconds: bool) -> Timestamp {
    let unit = if by_seconds { 1 } else { DAY };
    Timestamp::from_second(time.as_second().div_euclid(unit) * unit).unwrap_or(time)
}

/// The halves of a window that failed, the older one first. An open end stays open: nothing says that no record is older
/// than `earliestDatestamp`.
///
/// Where bounds `are_inclusive`, the halves do not overlap, and a window of one unit has none. Elsewhere they share two
/// units, as those of a split do, and a window of three units has none: its halves would be no smaller.
pub fn halves(window: &OaiWindow, span: Span, are_inclusive: bool) -> Option<[OaiWindow; 2]> {
    let (first, last) = span.units_of(window);
    let shares = !are_inclusive;
    let is_short = last - first < if shares { SHORTEST_SHARED } else { 1 };
    (!is_short).then(|| cut(window, span, shares, window.halvings + 1)).flatten()
}

/// The halves of a window that is split because it is large, the older one first; none of a short window. They share two
/// units. So a repository that leaves out the datestamps of `from`, of `until`, or between two units, hides no record
/// at their boundary.
pub fn overlapping_halves(window: &OaiWindow, span: Span) -> Option<[OaiWindow; 2]> {
    let (first, last) = span.units_of(window);
    (last - first >= SHORTEST_SPLIT).then(|| cut(window, span, true, 0)).flatten()
}

/// Cuts a window in its middle. The parts share the two units there, or none.
fn cut(window: &OaiWindow, span: Span, shares: bool, halvings: u32) -> Option<[OaiWindow; 2]> {
    let (first, last) = span.units_of(window);
    let middle = first + (last - first) / 2;
    let (end, start) = if shares { (middle + 1, middle) } else { (middle, middle + 1) };
    let half = |from, until| OaiWindow { from, until, halvings, ..OaiWindow::default() };
    Some([half(window.from, Some(span.time(end)?)), half(Some(span.time(start)?), window.until)])
}
