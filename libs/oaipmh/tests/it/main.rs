//! Tests of the public API.

mod common;
mod faults;
mod hostile;
mod properties;
mod quirks_page;
mod requests;
mod writer;
