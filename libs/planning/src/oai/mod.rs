//! How a list of an OAI-PMH repository is read so that nothing is lost: windows of datestamps, tokens, counts. Pure.
//!
//! A list is read in windows, from old to new. A window is begun anew when its token died or went in a circle. It is
//! halved when the server fails within it, down to one unit of the granularity. Then its records are asked for one by
//! one. A window that is unreadable even so becomes a dated gap, and each run tries it again. A list with many pages is
//! split into windows that are read at the same time.
//!
//! A repository may leave out the records of `from` or `until`, or compare more exactly than it says. So windows share
//! two units, until it is proved to read bounds as the protocol says. Such windows are halved down to three units.

#[cfg(test)]
mod bounds_tests;
mod due;
mod lateness;
mod reading;
mod split;
#[cfg(test)]
mod split_tests;
#[cfg(test)]
mod tests;
mod window;

pub use due::{are_wanted, is_sweep_due, sample_one_in};
pub use lateness::{next_from, overlap};
pub use reading::{
    EMPTY_PAGES, List, Next, OPEN_WINDOWS, PageEnd, PageFailure, PageRead, RESTARTS, UNREAD_WINDOWS,
};
pub use split::{MOST_OPEN, PAGES_THAT_PAY, Split, most_open};
pub use window::{Span, floor, halves, overlapping_halves};
