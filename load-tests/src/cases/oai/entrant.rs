//! The compared programs, and their commands.

use std::path::Path;

use super::Bench;
use crate::process::CommandLine;
use crate::thresher::View;

/// A program that reads or harvests pages of a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entrant {
    pub(super) name: &'static str,
    pub(super) program: Program,
    /// Records of a page.
    pub(super) page_size: u64,
}

/// What runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// Thresher's reader, over answers in files: it keeps nothing.
    Reader,
    /// `thresher sync`.
    Thresher,
    /// `thresher sync` that also writes a file for each record.
    ThresherFiles,
    /// PyPI's `sickle`.
    Sickle,
    /// PyPI's `oaipmh-scythe`.
    Scythe,
}

pub(super) const SICKLE: [&str; 2] = ["sickle, pages of 100", "sickle, pages of 1,000"];
pub(super) const SCYTHE: [&str; 2] = ["oaipmh-scythe, pages of 100", "oaipmh-scythe, pages of 1,000"];
/// Records of a page.
pub(super) const PAGE_SIZES: [u64; 2] = [100, 1_000];

impl Entrant {
    /// All, in the order of the first round.
    pub(super) const ALL: [Self; 10] = [
        Self::new("reader, pages of 100", Program::Reader, 100),
        Self::new("thresher, pages of 100", Program::Thresher, 100),
        Self::new("thresher, view files, pages of 100", Program::ThresherFiles, 100),
        Self::new(SICKLE[0], Program::Sickle, 100),
        Self::new(SCYTHE[0], Program::Scythe, 100),
        Self::new("reader, pages of 1,000", Program::Reader, 1_000),
        Self::new("thresher, pages of 1,000", Program::Thresher, 1_000),
        Self::new("thresher, view files, pages of 1,000", Program::ThresherFiles, 1_000),
        Self::new(SICKLE[1], Program::Sickle, 1_000),
        Self::new(SCYTHE[1], Program::Scythe, 1_000),
    ];

    const fn new(name: &'static str, program: Program, page_size: u64) -> Self {
        Self { name, program, page_size }
    }

    /// Whether it harvests the large repository. All that write a file for each record get the small one.
    pub(super) fn takes_many(self) -> bool {
        self.program == Program::Thresher
    }

    /// The name of its folder.
    pub(super) fn folder(self) -> String {
        self.name.replace(", ", "-").replace([' ', ','], "-")
    }

    /// The command to run; `base` is the base URL of its repository, and `pages` the folder of its answers.
    pub(super) fn command(self, bench: &Bench, base: &str, pages: &Path) -> anyhow::Result<CommandLine> {
        let library = |name: &str| bench.libraries.command().arg(&bench.script).args([name, base, "into"]);
        Ok(match self.program {
            Program::Reader => CommandLine::new(std::env::current_exe()?).arg("read-pages").arg(pages),
            Program::Thresher => bench.thresher.sync(base, View::None, None),
            Program::ThresherFiles => bench.thresher.sync(base, View::Files, None),
            Program::Sickle => library("sickle"),
            Program::Scythe => library("oaipmh-scythe"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_folders_differ() {
        let folders: BTreeSet<String> = Entrant::ALL.iter().map(|entrant| entrant.folder()).collect();
        assert_eq!(folders.len(), Entrant::ALL.len());
        assert!(folders.iter().all(|folder| !folder.contains([' ', ','])), "{folders:?}");
        assert!(Entrant::ALL.iter().all(|entrant| PAGE_SIZES.contains(&entrant.page_size)));
    }
}
