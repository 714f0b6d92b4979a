//! What a scan of a directory found, and what is not published.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::unheard::Unheard;

/// The most examples that are kept of each problem.
const MOST_EXAMPLES: usize = 10;

/// Totals of a scan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Scanned {
    /// Files that are published.
    pub files: u64,
    /// Files that were read.
    pub read: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Files that are new.
    pub created: u64,
    /// Files with other bytes.
    pub updated: u64,
    /// Files that are gone.
    pub deleted: u64,
    /// What is left out, by problem.
    pub problems: Problems,
    /// How many files and folders were looked at, since something had changed there. None if everything was.
    #[serde(skip)]
    pub looks: Option<u64>,
    /// How many folders are watched.
    #[serde(skip)]
    pub watched: u64,
    /// Why changes are not heard of from the kernel, if that was not told before.
    #[serde(skip)]
    pub unheard: Option<Unheard>,
}

/// Why a file or folder is not published, or not as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Problem {
    /// Its name begins with a dot.
    Hidden,
    /// It is a symbolic link. None is followed.
    SymbolicLink,
    /// It is neither a file nor a folder.
    SpecialFile,
    /// Its name is not UTF-8.
    NameNotUtf8,
    /// Its name has a control character.
    ControlCharacter,
    /// Its path or URL is too long.
    TooLong,
    /// It is below too many folders.
    TooDeep,
    /// The folder has too many names.
    TooManyNames,
    /// It cannot be read.
    Unreadable,
    /// It changed while it was read.
    Changing,
}

impl Problem {
    /// Whether it is left out by a rule, and no failure.
    pub fn is_rule(self) -> bool {
        matches!(self, Self::Hidden | Self::SymbolicLink | Self::SpecialFile)
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hidden => "hidden",
            Self::SymbolicLink => "symbolic-link",
            Self::SpecialFile => "special-file",
            Self::NameNotUtf8 => "name-not-utf8",
            Self::ControlCharacter => "control-character",
            Self::TooLong => "too-long",
            Self::TooDeep => "too-deep",
            Self::TooManyNames => "too-many-names",
            Self::Unreadable => "unreadable",
            Self::Changing => "changing",
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hidden => "its name begins with a dot",
            Self::SymbolicLink => "it is a symbolic link, and none is followed",
            Self::SpecialFile => "it is neither a file nor a folder",
            Self::NameNotUtf8 => "its name is not UTF-8; rename it",
            Self::ControlCharacter => "its name has a control character; rename it",
            Self::TooLong => "its path has more than 900 bytes, or its URL more than 2,000; rename it",
            Self::TooDeep => "it is below more than 100 folders; move it",
            Self::TooManyNames => "the folder has more than 1,000,000 names; divide it",
            Self::Unreadable => "it cannot be read; check its permissions",
            Self::Changing => "it changed while it was read; the next run takes it",
        })
    }
}

/// The problems of a scan: how many, and some paths of each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Problems(BTreeMap<Problem, Met>);

/// How often a problem was met, and where first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
struct Met {
    count: u64,
    first: Vec<String>,
}

impl Problems {
    pub(crate) fn add(&mut self, problem: Problem, path: &str) {
        let met = self.0.entry(problem).or_default();
        met.count += 1;
        if met.first.len() < MOST_EXAMPLES {
            met.first.push(path.to_owned());
        }
    }

    /// Adds those of another part of the scan.
    pub(crate) fn join(&mut self, others: Self) {
        for (problem, others) in others.0 {
            let met = self.0.entry(problem).or_default();
            met.count += others.count;
            met.first.extend(others.first);
            met.first.truncate(MOST_EXAMPLES);
        }
    }

    /// Each problem with its number and the first paths.
    pub fn iter(&self) -> impl Iterator<Item = (Problem, u64, &[String])> {
        self.0.iter().map(|(problem, met)| (*problem, met.count, &met.first[..]))
    }

    /// How often this problem was met.
    pub fn count(&self, problem: Problem) -> u64 {
        self.0.get(&problem).map_or(0, |met| met.count)
    }

    /// How many there are that no rule explains.
    pub fn failures(&self) -> u64 {
        self.0.iter().filter(|(problem, _)| !problem.is_rule()).map(|(_, met)| met.count).sum()
    }
}
