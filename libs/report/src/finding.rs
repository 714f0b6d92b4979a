//! Findings: what a Source should change, each counted over all occurrences.

use std::collections::BTreeMap;

use resourcesync::{Force, Section};
use serde::Serialize;

use crate::rules::Fact;

/// The most documents that a finding names. Further ones are only counted.
const NAMED: usize = 3;

/// A violation of a specification, or a possible improvement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    /// Its stable name. For a quirk, the same name as in `docs/QUIRKS.md`.
    pub finding: String,
    /// Whether it breaks a MUST, goes against a SHOULD, or is a hint.
    pub severity: Force,
    /// The section of the specification.
    pub section: Section,
    /// What was found.
    pub what: String,
    /// What to change.
    pub advice: &'static str,
    /// How often it was found.
    pub count: u64,
    /// In how many documents. Zero when it is not about documents.
    pub document_count: u64,
    /// The first three of them.
    pub documents: Vec<String>,
    /// The first place where it was found, if known: a resource, or line and column of a document.
    pub first_place: Option<String>,
}

/// The findings so far, by name.
#[derive(Debug, Default)]
pub(crate) struct Findings(BTreeMap<&'static str, Finding>);

impl Findings {
    /// Counts a finding `times` more. Returns it, so that the caller can record its place.
    pub(crate) fn add(&mut self, fact: Fact, times: u64) -> &mut Finding {
        let finding = self.0.entry(fact.name).or_insert_with(|| Finding {
            finding: fact.name.to_owned(),
            severity: fact.rule.force,
            section: fact.rule.section,
            what: fact.what.to_owned(),
            advice: fact.rule.advice,
            count: 0,
            document_count: 0,
            documents: Vec::new(),
            first_place: None,
        });
        finding.count += times;
        finding
    }

    /// All findings: the most severe first, and within a severity the most frequent.
    pub(crate) fn into_sorted(self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.0.into_values().collect();
        findings.sort_by(|a, b| (a.severity, b.count, &a.finding).cmp(&(b.severity, a.count, &b.finding)));
        findings
    }
}

impl Finding {
    /// Records a document in which it was found.
    pub(crate) fn in_document(&mut self, uri: &str) -> &mut Self {
        self.document_count += 1;
        if self.documents.len() < NAMED {
            self.documents.push(uri.to_owned());
        }
        self
    }

    /// Records where it was found. The first place stays.
    pub(crate) fn at_with(&mut self, place: impl FnOnce() -> String) -> &mut Self {
        self.first_place.get_or_insert_with(place);
        self
    }
}

#[cfg(test)]
mod tests {
    use resourcesync::Rule;

    use super::*;

    fn fact(name: &'static str, force: Force) -> Fact {
        Fact { name, what: "", rule: Rule::new(force, Section::FORMATS, "Change it.") }
    }

    #[test]
    fn what_breaks_a_must_comes_first_and_then_what_is_frequent() {
        let mut findings = Findings::default();
        findings.add(fact("hint", Force::Hint), 100);
        findings.add(fact("rare", Force::Must), 1);
        findings.add(fact("should", Force::Should), 7);
        findings.add(fact("often", Force::Must), 2);
        let names: Vec<_> = findings.into_sorted().into_iter().map(|finding| finding.finding).collect();
        assert_eq!(names, ["often", "rare", "should", "hint"]);
    }

    #[test]
    fn all_places_are_counted_and_the_first_are_named() {
        let mut findings = Findings::default();
        for n in 0..5 {
            findings
                .add(fact("one", Force::Must), 2)
                .in_document(&format!("d{n}"))
                .at_with(|| format!("p{n}"));
        }
        let one = &findings.into_sorted()[0];
        assert_eq!((one.count, one.document_count, one.documents.len()), (10, 5, 3));
        assert_eq!(one.first_place.as_deref(), Some("p0"));
    }
}
