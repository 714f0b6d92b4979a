//! `thresher problems`: what could not be done, why, and since when.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};

use comfy_table::{Table, presets};
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{Evidence, Ignored, ProblemReason, ProblemRecord, SourceId, Subject};
use serde::Serialize;

use crate::cli::ProblemsArgs;
use crate::exit::{CommandResult, Exit};
use crate::target;

/// One problem, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Line<'a> {
    source: &'a SourceId,
    #[serde(flatten)]
    subject: &'a Subject,
    reason: ProblemReason,
    message: &'a str,
    first_seen: Timestamp,
    last_seen: Timestamp,
    attempts: u32,
    /// Whether another attempt may end otherwise.
    retry: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignored: Option<&'a Ignored>,
    evidence: &'a Evidence,
}

/// All problems of one reason about one kind of thing, as `--group --json` prints them.
#[derive(Debug, Serialize)]
struct Group {
    reason: ProblemReason,
    about: &'static str,
    count: u64,
    first_seen: Timestamp,
    last_seen: Timestamp,
    /// The URI of one of them.
    example: String,
}

/// Runs the command.
pub(crate) async fn run(args: ProblemsArgs) -> CommandResult {
    let harvested = target::open_for_reading(&args.harvest.into).await?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut groups = Groups::default();
    for (note, catalog) in &harvested.sources {
        let mut problems = catalog.scan_problems().await?;
        while let Some((subject, record)) = problems.try_next().await? {
            if !is_wanted(&args, &subject, &record) {
                continue;
            }
            if args.group {
                groups.add(&subject, &record);
            } else if args.json {
                serde_json::to_writer(&mut out, &Line::new(&note.source, &subject, &record))?;
                writeln!(out)?;
            } else {
                write!(out, "{}", text(&subject, &record))?;
            }
        }
    }
    if args.json {
        for group in groups.0.values() {
            serde_json::to_writer(&mut out, group)?;
            writeln!(out)?;
        }
    } else if !groups.0.is_empty() {
        writeln!(out, "{}", groups.table())?;
    }
    out.flush()?;
    Ok(Exit::Good)
}

fn is_wanted(args: &ProblemsArgs, subject: &Subject, record: &ProblemRecord) -> bool {
    record.ignored.is_some() == args.ignored
        && args.kind.take(subject, record.reason)
        && args.prefix.as_ref().is_none_or(|prefix| subject.uri().starts_with(prefix.as_str()))
}

/// A paragraph for a person.
fn text(subject: &Subject, record: &ProblemRecord) -> String {
    let ProblemRecord { reason, message, first_seen, last_seen, attempts, .. } = record;
    let counted = if *attempts == 1 { "attempt" } else { "attempts" };
    let mut text = format!(
        "{subject}\n    {reason}, {attempts} {counted}, {first_seen:.0} to {last_seen:.0}; {}\n    {message}\n",
        next(subject, record)
    );
    for line in evidence(&record.evidence) {
        text += &format!("    {line}\n");
    }
    text
}

/// When it is tried again.
pub(super) fn next(subject: &Subject, record: &ProblemRecord) -> String {
    match (record, subject) {
        (ProblemRecord { ignored: Some(Ignored { note, at }), .. }, _) => {
            format!("ignored since {at:.0}: {note}")
        }
        (_, Subject::Message(_)) => "not tried again by itself".to_owned(),
        (ProblemRecord { next_attempt_at: Some(next), .. }, _) => {
            format!("tried again by the first run after {next:.0}, as the server asked")
        }
        _ => "the next run tries again".to_owned(),
    }
}

/// What was seen, a line each.
pub(super) fn evidence(evidence: &Evidence) -> Vec<String> {
    let Evidence { final_url, redirects, status, headers, expected, computed, .. } = evidence;
    let mut lines = Vec::new();
    lines.extend(status.map(|status| format!("HTTP status {status}")));
    lines.extend(redirects.iter().map(|url| format!("sent on by {url}")));
    lines.extend(final_url.iter().map(|url| format!("answered by {url}")));
    lines.extend(expected.iter().map(|value| format!("declared {value}")));
    lines.extend(computed.iter().map(|value| format!("received {value}")));
    lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
    lines
}

/// Counts by reason and kind of subject: there are never many, however many problems there are.
#[derive(Debug, Default)]
struct Groups(BTreeMap<(ProblemReason, &'static str), Group>);

impl Groups {
    fn add(&mut self, subject: &Subject, record: &ProblemRecord) {
        let about = kind(subject);
        let group = self.0.entry((record.reason, about)).or_insert_with(|| Group {
            reason: record.reason,
            about,
            count: 0,
            first_seen: record.first_seen,
            last_seen: record.last_seen,
            example: subject.uri().to_owned(),
        });
        group.count += 1;
        group.first_seen = group.first_seen.min(record.first_seen);
        group.last_seen = group.last_seen.max(record.last_seen);
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["problems", "reason", "about", "first seen", "last seen", "one of them"]);
        for Group { reason, about, count, first_seen, last_seen, example } in self.0.values() {
            let (first, last) = (format!("{first_seen:.0}"), format!("{last_seen:.0}"));
            table.add_row([&count.to_string(), reason.as_str(), about, &first, &last, example]);
        }
        table
    }
}

fn kind(subject: &Subject) -> &'static str {
    match subject {
        Subject::Resource(_) => "resource",
        Subject::Document(_) => "document",
        Subject::Entry(_) => "entry",
        Subject::Message(_) => "message",
    }
}

impl<'a> Line<'a> {
    fn new(source: &'a SourceId, subject: &'a Subject, record: &'a ProblemRecord) -> Self {
        let ProblemRecord { message, evidence, .. } = record;
        Self {
            source,
            subject,
            reason: record.reason,
            message,
            first_seen: record.first_seen,
            last_seen: record.last_seen,
            attempts: record.attempts,
            retry: record.retry,
            next_attempt_at: record.next_attempt_at,
            ignored: record.ignored.as_ref(),
            evidence,
        }
    }
}
