//! Which records a list has, and its pages.

use super::fault::{Faults, RepositoryFault as Fault, value};
use super::inner::Inner;
use super::spec::{Deletions, Unit};
use super::world::{State, World};
use crate::clock::SimTime;

const DAY: i64 = 86_400;

/// A set that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SetOf {
    /// No set.
    All,
    /// `group`, in which every record is that is in a set.
    Group,
    /// `group:N`
    Member(u64),
}

/// What a list is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) verb: String,
    pub(super) prefix: String,
    pub(super) set: SetOf,
    /// Both bounds are inclusive.
    pub(super) from: Option<SimTime>,
    pub(super) until: Option<SimTime>,
}

/// How far a list was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cursor {
    /// The first record that may come next.
    pub(super) next: u64,
    pub(super) delivered: u64,
    pub(super) size: u64,
    pub(super) page: u64,
    /// Empty pages that come first.
    pub(super) empty: u64,
}

/// A line of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) index: u64,
    pub(super) state: State,
    pub(super) deleted: bool,
}

/// One page of a list.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) rows: Vec<Row>,
    /// Records delivered before.
    pub(super) before: u64,
    pub(super) size: u64,
    pub(super) number: u64,
    pub(super) next: Option<Cursor>,
}

/// The first page.
pub(super) fn first(inner: &Inner, world: &World, faults: &Faults, query: &Query) -> Page {
    let size = rows(inner, world, faults, query, 0).count() as u64;
    page(inner, world, faults, query, Cursor { size, ..Cursor::default() })
}

/// The page at a cursor.
pub(super) fn page(inner: &Inner, world: &World, faults: &Faults, query: &Query, at: Cursor) -> Page {
    let Cursor { size, delivered: before, page: number, .. } = at;
    if at.empty > 0 {
        let next = Cursor { empty: at.empty - 1, page: number + 1, ..at };
        return Page { rows: Vec::new(), before, size, number, next: Some(next) };
    }
    let page_size = inner.spec.page_size.max(1) as usize;
    let mut found: Vec<Row> = if faults.has(&Fault::OffsetTokens) {
        let mut all: Vec<Row> = rows(inner, world, faults, query, 0).collect();
        all.sort_by_key(|row| (row.state.modified, row.index));
        all.into_iter().skip(before as usize).take(page_size + 2).collect()
    } else {
        rows(inner, world, faults, query, at.next).take(page_size + 2).collect()
    };
    // A record that is shown twice is not parted.
    let is_twin = found.get(page_size).is_some_and(|row| row.index == found[page_size - 1].index);
    let length = page_size + usize::from(is_twin);
    let more = found.len() > length;
    found.truncate(length);
    let delivered = before + found.len() as u64;
    let next = found.last().filter(|_| more).map(|last| Cursor {
        next: last.index + 1,
        delivered,
        size,
        page: number + 1,
        empty: value!(faults, EmptyPages).unwrap_or(0),
    });
    if number > 0 && faults.has(&Fault::RepeatedRecord) && at.next > 0 {
        let repeated = world.get(at.next - 1).map(|state| Row {
            index: at.next - 1,
            state: *state,
            deleted: state.deleted,
        });
        found.splice(0..0, repeated);
    }
    Page { rows: found, before, size, number, next }
}

/// The records of a list from this one on.
fn rows<'w>(
    inner: &'w Inner,
    world: &'w World,
    faults: &'w Faults,
    query: &'w Query,
    start: u64,
) -> impl Iterator<Item = Row> + 'w {
    let hides_deleted = faults.has(&Fault::PromisedDeletesMissing);
    let doubles = faults.has(&Fault::DeletedAndLive);
    let shows_leavers = faults.has(&Fault::DeletedInOneSet);
    let late = value!(faults, LateIndex).map_or(0, i64::from);
    let set = if faults.has(&Fault::SetIgnored) { SetOf::All } else { query.set };
    let stale = faults.find(|fault| match fault {
        Fault::StaleAnswers(before, hidden) => Some((*before, *hidden)),
        _ => None,
    });
    let hidden_after = stale
        .filter(|(before, _)| query.from.is_some_and(|from| from.seconds() < *before))
        .map(|(_, hidden)| hidden);
    (start..world.len())
        .filter_map(move |index| {
            let state = *world.get(index)?;
            let is_shown = world.shows(&state, inner.spec.deletions) && !(state.deleted && hides_deleted);
            let is_visible = state.modified.seconds() + late <= world.now().seconds()
                && hidden_after.is_none_or(|hidden| state.modified.seconds() <= hidden);
            if !is_shown || !is_visible || !in_dates(inner, world, faults, query, &state) {
                return None;
            }
            let own = inner.set_of(index);
            let is_member = match set {
                SetOf::All => true,
                SetOf::Group => own.is_some() && !state.left_set,
                SetOf::Member(number) => own == Some(number) && !state.left_set,
            };
            let left = state.left_set && matches!(set, SetOf::Member(number) if own == Some(number));
            match (is_member, left && shows_leavers) {
                (true, _) => Some(Row { index, state, deleted: state.deleted }),
                (false, true) => Some(Row { index, state, deleted: true }),
                (false, false) => None,
            }
        })
        .flat_map(move |row| {
            let live = (row.deleted && doubles).then_some(Row { deleted: false, ..row });
            std::iter::once(row).chain(live)
        })
}

/// Whether a record's datestamp is within the dates of a list.
fn in_dates(inner: &Inner, world: &World, faults: &Faults, query: &Query, state: &State) -> bool {
    if faults.has(&Fault::IgnoresDates) {
        return true;
    }
    let unit = match inner.spec.unit {
        Unit::Day => DAY,
        Unit::Second => 1,
    };
    let floor = |time: SimTime| time.seconds().div_euclid(unit);
    let datestamp = floor(datestamp(world, faults, state));
    let exclusive = i64::from(faults.has(&Fault::ExclusiveBounds));
    query.from.is_none_or(|from| floor(from) <= datestamp)
        && query.until.is_none_or(|until| datestamp <= floor(until) - exclusive)
}

/// The datestamp that the repository gives a record.
pub(super) fn datestamp(world: &World, faults: &Faults, state: &State) -> SimTime {
    if faults.has(&Fault::DatestampIsNow) {
        return world.now();
    }
    let ahead = value!(faults, LocalTime).map_or(0, |hours| i64::from(hours) * 3_600);
    state.modified.plus(ahead)
}

/// Whether deleted records are shown at all.
pub(super) fn shows_deleted(inner: &Inner) -> bool {
    inner.spec.deletions != Deletions::No
}
