//! `thresher audit`: compare the copy with the Source's lists (RS-32).

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use harvest::{Difference, Report};
use indicatif::HumanDuration;
use model::{AuditCounts, DifferenceKind, Mode, Terms, count, counted, plural};
use planning::HarvestOptions;
use serde::Serialize;
use url::Url;

use crate::cli::AuditArgs;
use crate::commands::sync::{self, Request};
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target;
use crate::terminal::Out;

/// Singular and plural of a noun.
type Words = (&'static str, &'static str);
const UNREAD: Words =
    ("document or entry that could not be read", "documents or entries that could not be read");
const GAPS: Words = (
    "gap between the Resource List and the Change Lists",
    "gaps between the Resource List and the Change Lists",
);
const FAILED: Words = ("problem: not repaired", "problems: not repaired");
const OPEN: Words =
    ("problem open; `thresher problems` lists it", "problems open; `thresher problems` lists them");

/// The result as `--json` prints it.
#[derive(Debug, Serialize)]
struct Outcome<'a> {
    run: String,
    source: &'a str,
    mode: Mode,
    in_sync: bool,
    listed: u64,
    differences: u64,
    #[serde(flatten)]
    counts: api::AuditCounts,
    /// Repaired resources.
    stored: u64,
    repaired: u64,
    deleted: u64,
    failed: u64,
    open_problems: u64,
    requests: u64,
    remarks: &'a [String],
    duration_ms: u64,
}

/// How the result of an audit is printed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OutputOptions {
    pub(crate) json: bool,
    pub(crate) list: bool,
    pub(crate) repair: bool,
}

/// Runs the command.
pub(crate) async fn run(args: AuditArgs) -> CommandResult {
    let start = Instant::now();
    let into = match (&args.into, &args.url) {
        (Some(into), _) => into.clone(),
        (None, Some(url)) => target::default_directory(url)?,
        (None, None) => ".".to_owned(),
    };
    target::must_hold_a_harvest(&target::parse(&into)?)?;
    let url = match args.url.clone() {
        Some(url) => url,
        None => only_source(&into).await?,
    };
    let web = args.requests.web(&args.http, &url)?;
    let options = HarvestOptions {
        mode: Some(Mode::Audit),
        repair: args.repair,
        sample: args.sample.map_or(0, NonZeroUsize::get),
        terms: Terms::default(),
        jobs_per_origin: args.requests.concurrency,
        limits: args.limits.into(),
        retries: args.http.retry_policy(),
        ..sync::within(args.scope, &url)
    };
    let request = Request { url: url.clone(), into, view: None, web, options, labels: BTreeMap::new() };
    let (report, _) = sync::harvest(request).await?;
    print(
        &url,
        &report,
        start.elapsed(),
        OutputOptions { json: args.json, list: args.list, repair: args.repair },
    )
}

/// The only Source of a harvest.
async fn only_source(into: &str) -> Result<Url, Failed> {
    let store = target::open_store_read_only(&target::parse(into)?).await?;
    match target::sources_in_use(&store).await?.as_slice() {
        [one] => Ok(one.url.parse()?),
        [] => Err(usage(format!("{into} has no Source; pass the directory of an earlier sync with --into"))),
        several => {
            let urls: Vec<_> = several.iter().map(|note| target::shown_url(&note.url)).collect();
            Err(usage(format!("{into} has several Sources; name one of them: {}", urls.join(", "))))
        }
    }
}

/// Prints the result, and returns the exit status.
pub(crate) fn print(url: &Url, report: &Report, duration: Duration, output: OutputOptions) -> CommandResult {
    let counts = report.run.counters.audit.unwrap_or_default();
    let mut out = Out::new();
    if output.list
        && let Some(audit) = &report.audit
    {
        for difference in audit.all.iter()? {
            let difference = difference?;
            out.json_or_lines(output.json, &difference, || lines(&difference).into())?;
        }
    }
    let outcome = Outcome::new(url, report, counts, duration);
    out.json_or_lines(output.json, &outcome, || summary(report, counts, duration, output))?;
    out.finish()?;
    Ok(if report.in_sync() { Exit::Good } else { Exit::Problems })
}

fn lines(Difference { difference, uri, why, document, ignored }: &Difference) -> [String; 2] {
    let by = document.as_ref().map_or(String::new(), |document| format!(" (by {document})"));
    match ignored {
        Some(note) => [
            format!("{:<10} {uri}", "ignored"),
            format!("           {}: {why}{by}; {note}", name(*difference)),
        ],
        None => [format!("{:<10} {uri}", name(*difference)), format!("           {why}{by}")],
    }
}

/// The name of a kind of difference, in text.
fn name(kind: DifferenceKind) -> &'static str {
    match kind {
        DifferenceKind::Missing => "missing",
        DifferenceKind::Stale => "outdated",
        DifferenceKind::Differing => "mismatch",
        DifferenceKind::Extra => "extra",
    }
}

fn summary(report: &Report, counts: AuditCounts, duration: Duration, output: OutputOptions) -> Vec<String> {
    let Report { run, audit, .. } = report;
    let differences = counts.differences();
    let mut lines = vec![match (report.in_sync(), differences) {
        (true, 0) => "In sync: all stored resources match the lists.".to_owned(),
        (true, _) => {
            format!("In sync again: {} repaired.", counted(differences, "difference", "differences"))
        }
        (false, 0) => "Nothing differs, but not everything could be compared.".to_owned(),
        (false, _) => {
            format!("Not in sync: {}.", counted(differences, "resource differs", "resources differ"))
        }
    }];
    let mut row = |n: u64, what: &str| lines.push(format!("  {:>12}  {what}", count(n)));
    row(counts.agreeing, "match: the declared digest, or the record itself, is that of the stored bytes");
    for (n, what) in [
        (
            counts.without_fixity,
            "unverifiable: no digest is declared that could be compared, and nothing contradicts them",
        ),
        (counts.newer, "newer here than in the documents"),
        (counts.missing, "missing: listed, but not stored"),
        (counts.stale, "outdated: the Source lists a later version"),
        (counts.differing, "mismatch: the stored bytes are not what is declared of this version"),
        (counts.extra, "extra: stored, but not listed any more"),
        (counts.ignored, "ignored: they differ, and you ignore that"),
        (counts.unjudged, "not compared: stored, but their list was not read completely"),
        (counts.unread, plural(counts.unread, UNREAD.0, UNREAD.1)),
        (counts.gaps, plural(counts.gaps, GAPS.0, GAPS.1)),
    ] {
        if n > 0 {
            row(n, what);
        }
    }
    if output.repair && differences > 0 {
        row(run.counters.stored, "fetched and verified");
        row(run.counters.deleted, "deleted");
        row(run.counters.failed, plural(run.counters.failed, FAILED.0, FAILED.1));
        if run.counters.absent > 0 {
            row(run.counters.absent, "absent, kept until a later list confirms it");
        }
    }
    if report.open_problems > 0 {
        row(report.open_problems, plural(report.open_problems, OPEN.0, OPEN.1));
    }
    lines.push(format!(
        "  {} compared with {} stored, {} in {}",
        counted(run.counters.listed, "entry", "entries"),
        counted(counts.held, "resource", "resources"),
        counted(run.counters.requests, "request", "requests"),
        HumanDuration(duration)
    ));
    let (first, remarks) =
        audit.as_ref().map_or((&[][..], &[][..]), |audit| (&audit.first[..], &audit.remarks[..]));
    if !output.list {
        for kind in DifferenceKind::ALL {
            let shown = first.iter().filter(|one| one.difference == kind && one.ignored.is_none());
            lines.extend(few(shown, counts.of(kind)));
        }
        lines.extend(few(first.iter().filter(|one| one.ignored.is_some()), counts.ignored));
    }
    lines.extend(remarks.iter().take(5).map(|remark| format!("  not compared: {remark}")));
    lines.extend(report.guard.iter().map(|guard| format!("  {guard}")));
    lines.extend(advice(counts, report, output));
    lines
}

/// The first few differences of a kind, and the number of further ones.
fn few<'a>(shown: impl Iterator<Item = &'a Difference>, all: u64) -> Vec<String> {
    let mut lines: Vec<String> = shown.flat_map(self::lines).collect();
    let more = all.saturating_sub(lines.len() as u64 / 2);
    if more > 0 {
        lines.push(format!("           … and {} more; --list shows all", count(more)));
    }
    lines
}

/// Advice on the next step.
fn advice(counts: AuditCounts, report: &Report, output: OutputOptions) -> Option<String> {
    let differences = counts.differences();
    if report.in_sync() {
        None
    } else if !output.repair && differences > 0 {
        Some("The same command with --repair fetches exactly what differs; nothing was changed.".to_owned())
    } else if report.run.counters.failed > 0 {
        Some("`thresher problems` says why; the next run retries them.".to_owned())
    } else if counts.extra > 0 {
        Some(
            "Extra resources are kept until a later list confirms it; --absent delete deletes them now."
                .to_owned(),
        )
    } else {
        Some("Audit again when the unread documents can be read.".to_owned())
    }
}

impl<'a> Outcome<'a> {
    fn new(url: &'a Url, report: &'a Report, counts: AuditCounts, duration: Duration) -> Self {
        let counters = &report.run.counters;
        Self {
            run: report.run.id.to_string(),
            source: url.as_str(),
            mode: report.run.mode,
            in_sync: report.in_sync(),
            listed: counters.listed,
            differences: counts.differences(),
            counts: counts.into(),
            stored: counters.stored,
            repaired: counters.healed,
            deleted: counters.deleted,
            failed: counters.failed,
            open_problems: report.open_problems,
            requests: counters.requests,
            remarks: report.audit.as_ref().map_or(&[], |audit| &audit.remarks),
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        }
    }
}
