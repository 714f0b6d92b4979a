//! Display of a run: a progress bar on a terminal, plain lines otherwise, and a summary at the end.

use std::io::IsTerminal;
use std::time::Duration;

use crate::terminal::note;
use harvest::{Progress, Report};
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressStyle};
use model::{Phase, count, counted, displayed, plural};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How often a bar is redrawn.
const FRAME: Duration = Duration::from_millis(100);
/// How often a line is printed where there is no terminal.
const LINE: Duration = Duration::from_secs(10);

/// The display of a run.
pub(crate) struct Shown(JoinHandle<()>);

/// Displays a run until its last progress was sent.
pub(crate) fn watch(progress: watch::Receiver<Progress>) -> Shown {
    if std::io::stderr().is_terminal() {
        Shown(tokio::spawn(draw(progress)))
    } else {
        Shown(tokio::spawn(print(progress)))
    }
}

impl Shown {
    /// Ends the display.
    pub(crate) async fn finish(self) {
        // It ends by itself when the run drops its side; a failing display does no harm.
        let _ = self.0.await;
    }
}

async fn draw(mut progress: watch::Receiver<Progress>) {
    let bar = ProgressBar::new_spinner();
    let spinner = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}");
    let bar_of_all = ProgressStyle::with_template("{bar:30} {pos}/{len} {per_sec} {eta} {msg}");
    // Both templates are constants that the tests below parse.
    let (Ok(spinner), Ok(bar_of_all)) = (spinner, bar_of_all) else { return };
    let mut working = false;
    bar.set_style(spinner);
    bar.enable_steady_tick(FRAME);
    while progress.changed().await.is_ok() {
        let now = progress.borrow_and_update().clone();
        if now.phase == Some(Phase::Dispatching) {
            if !working {
                working = true;
                bar.set_style(bar_of_all.clone());
                bar.reset();
            }
            bar.set_length(now.counters.planned);
            bar.set_position(done(&now).min(now.counters.planned));
        }
        bar.set_message(displayed(&words(&now)).into_owned());
        tokio::time::sleep(FRAME).await;
    }
    bar.finish_and_clear();
}

async fn print(mut progress: watch::Receiver<Progress>) {
    let mut said = None;
    while progress.changed().await.is_ok() {
        let now = progress.borrow_and_update().clone();
        if said != now.phase {
            said = now.phase;
            note!("{}", words(&now));
            continue;
        }
        // Wait for the next line, but not beyond the end of the run.
        let ended = async { while progress.changed().await.is_ok() {} };
        if tokio::time::timeout(LINE, ended).await.is_ok() {
            return;
        }
        note!("{}", words(&now));
    }
}

/// Settled resources of the plan.
fn done(progress: &Progress) -> u64 {
    let counters = &progress.counters;
    counters.stored + counters.deleted + counters.failed
}

fn words(progress: &Progress) -> String {
    let counters = &progress.counters;
    match progress.phase {
        None => "discovering what the Source offers".to_owned(),
        Some(Phase::Planning) => {
            let document = progress.document.as_deref().unwrap_or("the Source's documents");
            match counters.listed {
                0 => format!("reading {document}"),
                listed => {
                    let listed = counted(listed, "entry", "entries");
                    let planned = count(counters.planned);
                    format!("reading {document}: {listed}, {planned} to fetch")
                }
            }
        }
        Some(Phase::Dispatching) => format!(
            "{} stored ({}), {}",
            count(counters.stored),
            HumanBytes(counters.bytes),
            counted(counters.failed, "problem", "problems")
        ),
        Some(Phase::Finished) => "finishing".to_owned(),
    }
}

/// The closing summary, as text.
pub(crate) fn summary(report: &Report, root: &str, duration: Duration) {
    let counters = &report.run.counters;
    let mode =
        if report.resumed { format!("{}, resumed", report.run.mode) } else { report.run.mode.to_string() };
    note!("");
    for unlisted in &report.many_absent {
        note!("{unlisted}");
    }
    note!("{}", if report.in_sync() { "In sync." } else { "Finished, but not in sync." });
    let row = |n: u64, what: &str| note!("  {:>12}  {what}", count(n));
    row(counters.listed, &format!("{} read ({mode})", plural(counters.listed, "entry", "entries")));
    row(counters.stored, &format!("stored and verified, {}", HumanBytes(counters.bytes)));
    if counters.healed > 0 {
        row(counters.healed, "of them repaired");
    }
    if counters.mirrored > 0 {
        row(counters.mirrored, "of them from mirrors");
    }
    if counters.patched > 0 {
        row(counters.patched, "of them made by patches");
    }
    row(counters.unchanged, "unchanged");
    row(counters.deleted, "deleted by the Source");
    for (n, what) in [
        (counters.sampled, "records asked for as a sample"),
        (counters.foreign, "entries are of other sites"),
        (counters.foreign_left_out, "left out, of other sites (--origins same)"),
        (counters.out_of_scope, "left out, without the type or links of --only"),
        (counters.by_rule, "left to what they link to, by a --follow-rule"),
        (
            counters.loops,
            "left out, taken from a publication of this copy (via); sync the original Source instead",
        ),
        (counters.linked, "links followed"),
        (counters.absent, "absent, kept"),
        (report.open_problems, plural(report.open_problems, "problem open", "problems open")),
        (report.ignored_problems, plural(report.ignored_problems, "ignored problem", "ignored problems")),
    ] {
        if n > 0 {
            row(n, what);
        }
    }
    for (name, times) in &counters.quirks {
        row(*times, &format!("quirk {name}"));
    }
    note!(
        "  {} in {}; stored in {root}",
        counted(counters.requests, "request", "requests"),
        HumanDuration(duration)
    );
    for (subject, problem) in &report.first_problems {
        note!("  problem: {subject}: {} ({})", problem.message, problem.reason);
    }
    let more = report.open_problems.saturating_sub(report.first_problems.len() as u64);
    if more > 0 {
        note!("  … and {} more", count(more));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_becomes_words_in_every_phase() {
        let mut progress = Progress::default();
        assert!(words(&progress).contains("discovering"));
        progress.phase = Some(Phase::Planning);
        progress.counters.listed = 1_234;
        assert!(words(&progress).contains("1,234 entries"));
        progress.phase = Some(Phase::Dispatching);
        progress.counters.failed = 2;
        assert!(words(&progress).ends_with(", 2 problems"));
        progress.counters.failed = 1;
        assert!(words(&progress).ends_with(", 1 problem"));
    }
}
