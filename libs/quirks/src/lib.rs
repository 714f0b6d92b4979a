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
    all().find(|quirk| quirk.name == name)
}

/// All quirks, each name once. A name that several readers count means the same in each.
pub fn all() -> impl Iterator<Item = KnownQuirk> {
    let of_documents = resourcesync::Quirk::ALL.iter().map(|quirk| KnownQuirk {
        name: quirk.as_str(),
        meaning: quirk.meaning(),
        casts_doubt: quirk.casts_doubt(),
        refused_when_strict: quirk.is_refused_when_strict(),
        rule: Some(quirk.rule()),
    });
    let of_answers = oaipmh::Quirk::ALL.iter().map(|quirk| KnownQuirk {
        name: quirk.as_str(),
        meaning: quirk.meaning(),
        casts_doubt: quirk.casts_doubt(),
        refused_when_strict: quirk.is_refused_when_strict(),
        rule: Some(quirk.rule()),
    });
    let of_links = links::Fault::ALL.iter().map(|fault| KnownQuirk {
        name: fault.as_str(),
        meaning: fault.meaning(),
        casts_doubt: false,
        refused_when_strict: false,
        rule: None,
    });
    let is_of_documents = |quirk: &KnownQuirk| resourcesync::Quirk::named(quirk.name).is_some();
    let is_of_answers = |quirk: &KnownQuirk| oaipmh::Quirk::named(quirk.name).is_some();
    of_documents
        .chain(of_answers.filter(move |quirk| !is_of_documents(quirk)))
        .chain(of_links.filter(move |quirk| !is_of_documents(quirk) && !is_of_answers(quirk)))
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
