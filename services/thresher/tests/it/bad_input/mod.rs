//! Errors of a Source or an operator: one clear line, the right exit status, and nothing stored is lost.

mod documents;
mod full_disk;
mod no_source;
mod resources;
mod usage;

use simulated_source::{Size, SourceSpec};

/// Words that tell an operator what to do.
const CHECK: &[&str] = &["check", "give", "is it", "try", "look", "ask"];
const AGAIN: &[&str] = &["again", "retry", "retries"];
const OVER_HTTP: &[&str] = &["pass", "give", "check"];

const LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";

fn small(resources: u64) -> SourceSpec {
    SourceSpec::default().resources(resources).size(Size::Range(1, 600))
}
