//! The tests of the fetcher.
#![allow(missing_docs)]

mod common;
mod jobs;
mod packages;
mod ranges;
