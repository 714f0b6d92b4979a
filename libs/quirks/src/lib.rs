#![doc = include_str!("../README.md")]

use resourcesync::Rule;

/// A deviation of a Source that is tolerated and counted.
#[derive(Debug, Clone, Copy)]
pub struct KnownQuirk {
    /// Its stable name.
    pub name: &'static str,
    /// What it means, in one line.
    pub meaning: &'static str,
    /// Whether conclusions from what a document omits are doubtful.
    pub casts_doubt: bool,
    /// Whether strict reading refuses the document.
    pub refused_when_strict: bool,
    /// What it violates, and what to change; none for links outside of a specification's documents.
    pub rule: Option<Rule>,
}

/// The quirk of a name; none if this version does not know it.
pub fn named(name: &str) -> Option<KnownQuirk> {
    let of_document = resourcesync::Quirk::named(name).map(of_document);
    let of_answer = || oaipmh::Quirk::named(name).map(of_answer);
    let of_link =
        || links::Fault::ALL.iter().find(|fault| fault.as_str() == name).map(|fault| of_link(*fault));
    of_document.or_else(of_answer).or_else(of_link)
}

/// All quirks, each name once. A name that several readers count means the same in each.
pub fn all() -> impl Iterator<Item = KnownQuirk> {
    let is_of_documents = |name: &str| resourcesync::Quirk::named(name).is_some();
    let is_of_answers = |name: &str| oaipmh::Quirk::named(name).is_some();
    let of_answers = oaipmh::Quirk::ALL.iter().copied().map(of_answer);
    let of_links = links::Fault::ALL.iter().copied().map(of_link);
    resourcesync::Quirk::ALL
        .iter()
        .copied()
        .map(of_document)
        .chain(of_answers.filter(move |quirk| !is_of_documents(quirk.name)))
        .chain(of_links.filter(move |quirk| !is_of_documents(quirk.name) && !is_of_answers(quirk.name)))
}

fn of_document(quirk: resourcesync::Quirk) -> KnownQuirk {
    KnownQuirk {
        name: quirk.as_str(),
        meaning: quirk.meaning(),
        casts_doubt: quirk.casts_doubt(),
        refused_when_strict: quirk.is_refused_when_strict(),
        rule: Some(quirk.rule()),
    }
}

fn of_answer(quirk: oaipmh::Quirk) -> KnownQuirk {
    KnownQuirk {
        name: quirk.as_str(),
        meaning: quirk.meaning(),
        casts_doubt: quirk.casts_doubt(),
        refused_when_strict: quirk.is_refused_when_strict(),
        rule: Some(quirk.rule()),
    }
}

fn of_link(fault: links::Fault) -> KnownQuirk {
    KnownQuirk {
        name: fault.as_str(),
        meaning: fault.meaning(),
        casts_doubt: false,
        refused_when_strict: false,
        rule: None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_reader_s_quirks_are_known_by_name_once() {
        let names: BTreeSet<&str> = all().map(|quirk| quirk.name).collect();
        assert_eq!(names.len(), all().count(), "a name stands there twice");
        for name in ["trailing-bytes", "stale-answer", "gzip", "wrapped"] {
            assert_eq!(named(name).unwrap().name, name);
        }
        assert!(all().all(|quirk| !quirk.meaning.is_empty() && quirk.meaning.trim() == quirk.meaning));
    }
}
