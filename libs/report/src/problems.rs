//! Problems, by reason. One scan; of each reason a count and the first few are kept.

use std::collections::BTreeMap;

use catalog::{CatalogError, Lookups};
use futures::TryStreamExt;
use model::{ProblemReason, ProblemRecord, Subject};

use crate::card::{Coverage, Problem, ProblemGroup};
use crate::finding::Findings;
use crate::{rules, shown};

/// Examples of each reason.
const EXAMPLES: usize = 3;

type Groups = BTreeMap<ProblemReason, ProblemGroup>;

/// Groups all problems that the Source can do something about, those that are open and those that are ignored; the others are only counted.
pub(crate) async fn group(
    catalog: &Lookups,
    coverage: &mut Coverage,
    findings: &mut Findings,
) -> Result<(Vec<ProblemGroup>, Vec<ProblemGroup>), CatalogError> {
    let (mut open, mut ignored) = (Groups::new(), Groups::new());
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
            let finding = findings.add(fact.name, fact.what, fact.rule, 1);
            match &subject {
                Subject::Document(uri) => finding.in_document(uri),
                Subject::Resource(place) | Subject::Entry(place) | Subject::Message(place) => {
                    finding.at_with(|| place.clone())
                }
            };
        }
        add(&mut open, subject, record);
    }
    Ok((open.into_values().collect(), ignored.into_values().collect()))
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
