//! Tar packages, plain or in gzip, xz or zstd, read in one go (POSIX.1-2017 pax and ustar, GNU long names).
//!
//! A tar has no directory, so [`Entries`] gives its members as they come. Its headers are read here rather than by a crate for archives: those
//! take strangers' word for how long names may be, and have more than once disagreed with each other on which of two sizes counts.

mod entries;
mod extension;
mod header;
mod inflated;

pub use entries::{Entries, Item, Member};
