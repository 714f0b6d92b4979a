//! Problems, by reason. One scan; it keeps a count and the first few of each reason.

use std::collections::BTreeMap;

use catalog::{CatalogError, Lookups};
use futures::TryStreamExt;
use model::{ProblemReason, ProblemRecord, Subject};
use url::Url;

use crate::card::{Coverage, Problem, ProblemGroup, ToLetIn};
use crate::finding::Findings;
use crate::{rules, shown};

/// Examples of each reason.
const EXAMPLES: usize = 3;

/// The most origins of bot defences to name.
const ORIGINS: usize = 10;

/// All problems that the Source can act on.
pub(crate) struct Grouped {
    pub(crate) open: Vec<ProblemGroup>,
    pub(crate) ignored: Vec<ProblemGroup>,
    pub(crate) to_let_in: Option<ToLetIn>,
}

type Groups = BTreeMap<ProblemReason, ProblemGroup>;

/// Groups the problems that the Source can act on, open and ignored ones. The others are only counted.
pub(crate) async fn group(
    catalog: &Lookups,
    coverage: &mut Coverage,
    findings: &mut Findings,
) -> Result<Grouped, CatalogError> {
    let mut to_let_in = None;
    let mut open = Groups::new();
    let mut ignored = Groups::new();
    let mut problems = catalog.scan_problems().await?;
    while let Some((subject, record)) = problems.try_next().await? {
        if rules::is_own(record.reason) {
            coverage.own_problems += 1;
            continue;
        }
        let resources = u64::from(matches!(subject, Subject::Resource(_)));
        let subject = shown_subject(&subject);
        if record.ignored.is_some() {
            coverage.ignored += resources;
            add(&mut ignored, subject, record);
            continue;
        }
        coverage.problems += resources;
        if let Some(fact) = rules::problem(record.reason, &subject) {
            let finding = findings.add(fact, 1);
            match &subject {
                Subject::Document(uri) => finding.in_document(uri),
                Subject::Resource(place) | Subject::Entry(place) | Subject::Message(place) => {
                    finding.at_with(|| place.clone())
                }
            };
        }
        if record.reason == ProblemReason::Challenged {
            note(to_let_in.get_or_insert_default(), &subject, &record);
        }
        add(&mut open, subject, record);
    }
    Ok(Grouped { open: open.into_values().collect(), ignored: ignored.into_values().collect(), to_let_in })
}

/// Records what is known of a request that a bot defence blocked.
fn note(to_let_in: &mut ToLetIn, subject: &Subject, record: &ProblemRecord) {
    let evidence = &record.evidence;
    if to_let_in.user_agent.is_none() {
        to_let_in.user_agent.clone_from(&evidence.user_agent);
    }
    let url = evidence.final_url.as_deref().unwrap_or(subject.uri());
    let origin = url.parse::<Url>().ok().map(|url| url.origin().ascii_serialization());
    to_let_in.origins.extend(
        origin.filter(|origin| to_let_in.origins.len() < ORIGINS && !to_let_in.origins.contains(origin)),
    );
}

fn add(groups: &mut Groups, subject: Subject, record: ProblemRecord) {
    let reason = record.reason;
    let group =
        groups.entry(reason).or_insert_with(|| ProblemGroup { reason, count: 0, examples: Vec::new() });
    group.count += 1;
    if group.examples.len() < EXAMPLES {
        group.examples.push(example(subject, record));
    }
}

fn example(subject: Subject, record: ProblemRecord) -> Problem {
    let ProblemRecord { message, first_seen, last_seen, .. } = record;
    Problem { subject, message, first_seen, last_seen }
}

fn shown_subject(subject: &Subject) -> Subject {
    match subject {
        Subject::Resource(uri) => Subject::Resource(shown::uri(uri)),
        Subject::Document(uri) => Subject::Document(shown::uri(uri)),
        Subject::Entry(at) => Subject::Entry(shown::uri(at)),
        Subject::Message(id) => Subject::Message(id.clone()),
    }
}
