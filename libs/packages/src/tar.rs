//! Tar packages, plain or in gzip, xz or zstd, read in one pass (POSIX.1-2017 pax and ustar, GNU long names).
//!
//! A tar has no directory, so [`Entries`] returns its members as they are read. Headers are parsed here and
//! not by a crate for archives. Such crates trust the archive on the length of names, and have more than once
//! disagreed with each other on which of two sizes counts.

mod entries;
mod extension;
mod header;
mod inflated;

pub use entries::{Entries, Item, Member};
