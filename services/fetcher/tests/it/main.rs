//! The tests of the fetcher.
#![allow(missing_docs)]

mod common;
mod jobs;
mod large;
mod packages;
mod ranges;
