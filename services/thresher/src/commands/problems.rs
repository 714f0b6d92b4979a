//! `thresher problems`: list open problems.

use std::io;
use std::pin::pin;

use api::{Page, ProblemGroup, ProblemGroups, SourceProblem};
use comfy_table::Table;
use control::SourceName;
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{Evidence, Ignored, ProblemRecord, SourceId, Subject, counted, displayed};
use serde::Serialize;

use crate::cli::ProblemsArgs;
use crate::client::{self, OperatorClient, ReadFrom, SourceRef, called};
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target;
use crate::terminal::{self, Out};

/// One problem, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Line<'a> {
    source: &'a SourceId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a SourceName>,
    #[serde(flatten)]
    problem: &'a SourceProblem,
}

/// Runs the command.
pub(crate) async fn run(args: ProblemsArgs) -> CommandResult {
    let mut out = Out::new();
    let mut groups = ProblemGroups::default();
    match client::read_from(&args.location)? {
        ReadFrom::Store(_) if args.matching.is_some() => {
            return Err(usage(
                "--match needs a gateway, because a store has no labels; name one with --server",
            ));
        }
        ReadFrom::Store(into) => {
            let harvested = target::open_for_reading(&into, args.source.as_deref()).await?;
            let are_several = harvested.sources.len() > 1;
            for (note, catalog) in &harvested.sources {
                let mut shown = Shown::of(&note.source, None, are_several);
                let mut problems = catalog.scan_problems().await?;
                while let Some((subject, record)) = problems.try_next().await? {
                    if !is_wanted(&args, &subject, &record) {
                        continue;
                    }
                    if args.group {
                        groups.count(&subject, &record)
                    } else {
                        let problem = SourceProblem::new(&subject, record);
                        shown.show(&mut out, &problem, args.json)?;
                    }
                }
            }
        }
        ReadFrom::Gateway(client) => {
            let sources = match &args.matching {
                Some(selector) => client.matching(Some(selector)).await?,
                None => client.selected(args.source.as_deref()).await?,
            };
            let are_several = sources.len() > 1;
            for about in sources {
                if args.group {
                    count_from_gateway(&client, &about, &args, &mut groups).await?
                } else {
                    list_from_gateway(&client, &about, are_several, &args, &mut out).await?
                }
            }
        }
    }
    let groups = groups.into_vec();
    if args.json {
        for group in &groups {
            out.json(group)?;
        }
    } else if !groups.is_empty() {
        out.text(&format!("{}\n", table(&groups)))?;
    }
    out.finish()?;
    Ok(Exit::Good)
}

fn is_wanted(args: &ProblemsArgs, subject: &Subject, record: &ProblemRecord) -> bool {
    record.ignored.is_some() == args.ignored
        && args.filter.take(subject, record.reason)
        && args.prefix.as_ref().is_none_or(|prefix| subject.uri().starts_with(prefix.as_str()))
}

/// A Source whose problems are listed.
struct Shown<'a> {
    source: &'a SourceId,
    name: Option<&'a SourceName>,
    /// Whether text must say which Source it is before its next problem.
    is_named: bool,
}

impl<'a> Shown<'a> {
    /// The first problem comes after a line that names the Source, if there `are_several`.
    fn of(source: &'a SourceId, name: Option<&'a SourceName>, are_several: bool) -> Self {
        Self { source, name, is_named: are_several }
    }

    fn show(&mut self, out: &mut Out, problem: &SourceProblem, json: bool) -> io::Result<()> {
        let Self { source, name, .. } = *self;
        if std::mem::take(&mut self.is_named) && !json {
            out.line(&format!("Source {}:", called(name, source.as_str())))?;
        }
        out.json_or_lines(json, &Line { source, name, problem }, || lines(problem))
    }
}

/// The query parameters of a request to a gateway.
fn query(args: &ProblemsArgs) -> Vec<(&'static str, String)> {
    let mut query = vec![("ignored", args.ignored.to_string())];
    query.extend(args.prefix.iter().map(|prefix| ("prefix", prefix.clone())));
    query
}

/// Lists a Source's problems from a gateway, a page at a time.
async fn list_from_gateway(
    client: &OperatorClient,
    about: &SourceRef,
    are_several: bool,
    args: &ProblemsArgs,
    out: &mut Out,
) -> Result<(), Failed> {
    let joined = |names: Vec<String>| Some(names.join(",")).filter(|names| !names.is_empty());
    let path = ["sources", about.id.as_str(), "problems"];
    let mut query = query(args);
    query.extend(joined(args.filter.reasons()).map(|reasons| ("reason", reasons)));
    query.extend(joined(args.filter.kinds()).map(|kinds| ("kind", kinds)));
    let mut shown = Shown::of(&about.id, about.name.as_ref(), are_several);
    let mut problems = pin!(client.items::<SourceProblem>(&path, &query));
    while let Some(problem) = about.found(problems.try_next().await)?.flatten() {
        shown.show(out, &problem, args.json)?;
    }
    Ok(())
}

/// The counts of a Source from a gateway.
async fn count_from_gateway(
    client: &OperatorClient,
    about: &SourceRef,
    args: &ProblemsArgs,
    groups: &mut ProblemGroups,
) -> Result<(), Failed> {
    let path = ["sources", about.id.as_str(), "problems", "groups"];
    let page: Result<Page<ProblemGroup>, _> = client.get(&path, &query(args)).await;
    let reasons = &args.filter.reason;
    let kinds = args.filter.kinds();
    for group in about.found(page)?.map(|page| page.items).unwrap_or_default() {
        let is_meant = (reasons.is_empty() || reasons.contains(&group.reason))
            && (kinds.is_empty() || kinds.iter().any(|kind| *kind == *group.kind));
        if is_meant {
            groups.add(group);
        }
    }
    Ok(())
}

/// A problem as lines of text.
fn lines(problem: &SourceProblem) -> Vec<String> {
    let SourceProblem { kind, uri, reason, message, first_seen, last_seen, attempts, .. } = problem;
    let attempts = counted((*attempts).into(), "attempt", "attempts");
    let next = next(kind == "message", problem.ignored.as_ref(), problem.next_attempt_at);
    let mut lines = vec![
        format!("{kind} {uri}"),
        format!("    {reason}, {attempts}, {first_seen:.0} to {last_seen:.0}; {next}"),
        format!("    {message}"),
    ];
    lines.extend(evidence(&problem.evidence).iter().map(|line| format!("    {line}")));
    lines
}

/// The time of the next retry.
pub(super) fn next(
    is_message: bool,
    ignored: Option<&Ignored>,
    next_attempt_at: Option<Timestamp>,
) -> String {
    match (ignored, next_attempt_at) {
        (Some(Ignored { note, at }), _) => format!("ignored since {at:.0}: {note}"),
        _ if is_message => "manual retry only".to_owned(),
        (None, Some(next)) => format!("next retry after {next:.0} (Retry-After)"),
        (None, None) => "retried by the next run".to_owned(),
    }
}

/// The evidence, a line each.
pub(super) fn evidence(evidence: &Evidence) -> Vec<String> {
    let Evidence { final_url, redirects, status, headers, expected, computed, .. } = evidence;
    let mut lines = Vec::new();
    lines.extend(status.map(|status| format!("HTTP status {status}")));
    lines.extend(redirects.iter().map(|url| format!("redirected by {url}")));
    lines.extend(final_url.iter().map(|url| format!("final URL {url}")));
    lines.extend(expected.iter().map(|value| format!("declared {value}")));
    lines.extend(computed.iter().map(|value| format!("received {value}")));
    lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
    lines
}

fn table(groups: &[ProblemGroup]) -> Table {
    let header = ["problems", "reason", "kind", "first seen", "last seen", "one of them"];
    let mut table = terminal::table(header);
    for ProblemGroup { reason, kind, count, first_seen, last_seen, example } in groups {
        let first = format!("{first_seen:.0}");
        let last = format!("{last_seen:.0}");
        table.add_row([&count.to_string(), reason.as_str(), &**kind, &first, &last, &*displayed(example)]);
    }
    table
}
