//! Prints the result of a backfill.

use indicatif::HumanBytes;
use model::{BackfillCounts, counted};

use crate::terminal::say;

/// Prints what was done at a Source.
pub(super) fn counts(source: &str, report: &BackfillCounts) -> std::io::Result<()> {
    let BackfillCounts { resources, known, held, newer, older, stored, bytes, left_out, requests, .. } =
        report;
    if *resources == 0 {
        return say!("{}: no earlier version of a stored resource is named", source);
    }
    say!(
        "{}: {} added ({}), with {}",
        source,
        counted(*stored, "earlier version", "earlier versions"),
        HumanBytes(*bytes),
        counted(*requests, "request", "requests")
    )?;
    say!(
        "{} with {}: {held} held before, {older} older than the newest N or than --since, {newer} newer than \
         the stored version",
        counted(*resources, "resource", "resources"),
        counted(*known, "known version", "known versions")
    )?;
    if report.archive_documents > 0 || report.not_held > 0 {
        say!(
            "{} of Archives read; {} without fetching, since the same bytes are held; {} known, but held nowhere",
            counted(report.archive_documents, "document", "documents"),
            counted(report.copied, "version added", "versions added"),
            counted(report.not_held, "version is", "versions are")
        )?;
    }
    if report.dump_archives > 0 {
        say!(
            "{} read by the manifests of their packages",
            counted(report.dump_archives, "Archive of dumps", "Archives of dumps")
        )?;
    }
    if *left_out > 0 {
        say!(
            "{} left out: on other hosts, and no digest is declared. --any-host takes them",
            counted(*left_out, "version", "versions")
        )?;
    }
    for (reason, count) in &report.failed {
        say!("not usable: {count} {reason}")?;
    }
    for (fault, count) in &report.faults {
        say!("tolerated in TimeMaps: {count} {fault}")?;
    }
    Ok(())
}
