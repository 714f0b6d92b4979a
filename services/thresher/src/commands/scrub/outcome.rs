//! Prints the result of a scrub.

use std::io;
use std::time::Duration;

use indicatif::{HumanBytes, HumanDuration};
use model::{Damage, ResourceUri, SourceId, bytes, count, counted, plural};
use serde::Serialize;
use verifier::scrub::{CONFIDENCE, Choice, Damaged, ScrubItem, ScrubReport, Share, upper_bound};

use super::live::Live;
use crate::exit::{CommandResult, Exit};
use crate::terminal::{self, note, say};

/// The result, as JSON and as text.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    into: String,
    chosen: &'static str,
    /// The seed that draws the same sample again.
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(flatten)]
    pub(super) report: ScrubReport,
    /// For a sample: at most this share of all is damaged or missing, with the confidence beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Option<f64>,
    confidence: f64,
    #[serde(flatten)]
    pub(super) handled: Handled,
    /// Sources whose findings were not recorded, since another process owns them.
    left: Vec<Left>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) live: Option<Live>,
    duration_ms: u64,
    #[serde(skip)]
    choice: Choice,
    #[serde(skip)]
    is_json: bool,
}

/// What was done about the findings.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Handled {
    /// Resources that are problems in the catalog now.
    pub(super) noted: u64,
    /// Damaged objects that were quarantined.
    pub(super) quarantined: u64,
    /// Resources that had another version when their findings were recorded, and versions that are not kept any more.
    pub(super) settled: u64,
    /// Repaired resources.
    pub(super) repaired: u64,
    /// Damaged kept versions, whose bytes were discarded.
    pub(super) discarded: u64,
}

/// A Source that another process owns.
#[derive(Debug, Serialize)]
struct Left {
    source: SourceId,
    resources: u64,
}

impl Outcome {
    pub(super) fn new(into: String, choice: Choice, seed: u64, is_json: bool) -> Self {
        Self {
            into,
            chosen: match choice {
                Choice::All => "all",
                Choice::Share(_) => "share",
                Choice::Sample { .. } => "sample",
            },
            seed: matches!(choice, Choice::Sample { .. }).then_some(seed),
            report: ScrubReport::default(),
            at_most: None,
            confidence: CONFIDENCE,
            handled: Handled::default(),
            left: Vec::new(),
            live: None,
            duration_ms: 0,
            choice,
            is_json,
        }
    }

    pub(super) fn left(&mut self, source: SourceId, resources: u64) {
        self.left.push(Left { source, resources });
    }

    /// Prints findings as they come: with `--json` on standard error, where the result is alone on standard
    /// output.
    pub(super) fn print_finding(&self, damaged: &Damaged) -> io::Result<()> {
        let ScrubItem { uri, version, .. } = &damaged.held;
        let version = version.map_or(String::new(), |from| format!("the version stored from {from} on: "));
        self.line(&format!("{uri}: {version}{}", text_of(&damaged.damage())))
    }

    pub(super) fn print_difference(
        &self,
        uri: &ResourceUri,
        held: &fixity::Computed,
        now: Option<&fixity::Computed>,
    ) -> io::Result<()> {
        let now = now.map_or("nothing".to_owned(), |now| amount(Some(now.length()), Some(now.sha256())));
        let held = amount(Some(held.length()), Some(held.sha256()));
        self.line(&format!("{uri}: stored {held}; its Source sends {now}. `thresher sync` finds changes"))
    }

    fn line(&self, line: &str) -> io::Result<()> {
        if self.is_json {
            note!("{line}");
            Ok(())
        } else {
            say!("{line}")
        }
    }

    /// Prints the result, and returns the exit status.
    pub(super) fn print(mut self, duration: Duration) -> CommandResult {
        let ScrubReport { held, resources, damaged, missing, versions_damaged, .. } = self.report;
        let found = damaged + missing;
        self.duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        if matches!(self.choice, Choice::Sample { .. }) && resources < held {
            self.at_most = Some(upper_bound(resources, found));
        }
        let is_different = self.live.is_some_and(|live| live.different + live.failed > 0);
        terminal::print(|out| out.json_or_lines(self.is_json, &self, || self.lines(duration)))?;
        let Handled { settled, repaired, discarded, .. } = self.handled;
        let is_settled = repaired + settled + discarded >= found + versions_damaged;
        Ok(if is_settled && !is_different { Exit::Good } else { Exit::Problems })
    }

    fn lines(&self, duration: Duration) -> Vec<String> {
        let ScrubReport {
            held,
            resources,
            objects,
            bytes: read,
            damaged,
            missing,
            versions,
            versions_damaged,
        } = self.report;
        let Handled { noted, quarantined, repaired, discarded, .. } = self.handled;
        let beside = match versions {
            0 => String::new(),
            _ => format!(" and {}", counted(versions, "kept earlier version", "kept earlier versions")),
        };
        let mut lines = vec![format!(
            "{} of {}{beside} {} read, {} in {} of {}, in {}",
            count(resources),
            counted(held, "resource", "resources"),
            plural(resources + versions, "was", "were"),
            HumanBytes(read),
            counted(objects, "object", "objects"),
            self.into,
            HumanDuration(duration)
        )];
        if let Choice::Share(Share { days, .. }) = self.choice {
            lines.push(format!(
                "this is today's share; everything is read once in {}",
                counted(days.get().into(), "day", "days")
            ));
        }
        match (damaged + missing, versions_damaged) {
            (0, 0) => lines.push("all OK".to_owned()),
            (0, _) => lines.push("all current versions OK".to_owned()),
            _ => lines.push(format!(
                "{} damaged, {} missing",
                counted(damaged, "is", "are"),
                counted(missing, "is", "are")
            )),
        }
        if versions_damaged > 0 {
            lines.push(format!(
                "{} damaged or missing: no Source can send them again{}",
                counted(versions_damaged, "kept earlier version is", "kept earlier versions are"),
                match discarded {
                    0 => ". Restore the objects from a backup, or discard them with --repair".to_owned(),
                    _ =>
                        format!("; {} discarded (see `thresher explain`)", counted(discarded, "was", "were")),
                }
            ));
        }
        if let (Some(at_most), Choice::Sample { seed, .. }) = (self.at_most, self.choice) {
            lines.push(format!(
                "so at most {} of all resources are damaged or missing, with {} % confidence \
                 (drawn with --seed {seed})",
                percent(at_most),
                (CONFIDENCE * 100.0).round()
            ));
        }
        if quarantined > 0 {
            let objects = counted(quarantined, "damaged object was", "damaged objects were");
            lines.push(format!("{objects} quarantined in damaged/"));
        }
        if repaired > 0 {
            lines.push(format!("{} repaired", counted(repaired, "resource was", "resources were")));
        }
        if noted > repaired {
            let noted = noted - repaired;
            lines.push(format!(
                "{} (`thresher problems`); the next `thresher sync` refetches {}",
                counted(noted, "resource is now a problem", "resources are now problems"),
                plural(noted, "it", "them")
            ));
        }
        for Left { source, resources } in &self.left {
            lines.push(format!(
                "{} not recorded: a sync of {source} is running, or a fleet owns it. Run it again later \
                 (in s3:// with --exclusive)",
                counted(*resources, "finding was", "findings were")
            ));
        }
        if let Some(Live { asked, same, different, failed, at_most }) = self.live {
            lines.push(format!(
                "compared with their Sources: {asked}; {} the same, {different} not, {failed} not comparable. At \
                 most {} of all differ from their Sources, with {} % confidence",
                counted(same, "is", "are"),
                percent(at_most),
                (CONFIDENCE * 100.0).round()
            ));
        }
        lines
    }
}

/// The damage of a bitstream, as text.
pub(super) fn text_of(damage: &Damage) -> String {
    let Damage { key, offset, expected_length, expected_sha256, found, set_aside } = damage;
    let expected = amount(Some(*expected_length), Some(*expected_sha256));
    let is_whole = (found.length, found.sha256) == (Some(*expected_length), Some(*expected_sha256));
    let what = if !found.is_there {
        format!("{key} is missing; it had {expected} at offset {offset}")
    } else if is_whole {
        format!("{key} has {expected} at offset {offset}, but their record names another place")
    } else {
        let found = amount(found.length, found.sha256);
        format!("{key} is damaged: at offset {offset}, expected {expected}, found {found}")
    };
    match set_aside {
        Some(aside) => format!("{what}. It was quarantined as {aside}"),
        None => what,
    }
}

fn amount(length: Option<u64>, sha256: Option<fixity::Sha256>) -> String {
    match (length, sha256) {
        (Some(length), Some(sha256)) => format!("{} with sha-256 {sha256}", bytes(length)),
        _ => "bytes that cannot be inflated".to_owned(),
    }
}

/// A share in percent, rounded up to two significant digits.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent <= 0.0 {
        return "0 %".to_owned();
    }
    let digits = (1.0 - percent.log10().floor()).clamp(0.0, 12.0);
    let scale = 10_f64.powf(digits);
    // Slightly less, so that a value that is exact in two digits stays so.
    let rounded = (percent * scale - 1e-6).ceil() / scale;
    format!("{rounded} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_never_rounded_down() {
        let said =
            [(0.0, "0 %"), (0.0002995, "0.03 %"), (0.000_301, "0.031 %"), (0.95, "95 %"), (1.0, "100 %")];
        for (share, words) in said {
            assert_eq!(percent(share), words);
        }
    }
}
