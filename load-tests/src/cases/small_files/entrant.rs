//! Who takes part, and with which command.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::Bench;
use crate::process::CommandLine;
use crate::thresher::View;

/// What a user could run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entrant {
    /// `thresher sync`.
    Thresher {
        /// Whether resources are also laid out as files.
        has_view: bool,
        /// Requests open at once; as many as it takes by itself when absent.
        concurrency: Option<u16>,
    },
    /// `curl` with a list of URLs: neither reads a Resource List nor verifies.
    Curl,
    /// The reference implementation's baseline: one request after another, digests not verified.
    ResyncSync,
}

/// As many requests at once as curl is told to have.
const AT_ONCE: u16 = 16;

impl Entrant {
    /// All, in the order of the first round.
    pub(crate) const ALL: [Self; 6] = [
        Self::Thresher { has_view: false, concurrency: Some(AT_ONCE) },
        Self::Thresher { has_view: false, concurrency: None },
        Self::Curl,
        Self::Thresher { has_view: true, concurrency: Some(AT_ONCE) },
        Self::Thresher { has_view: true, concurrency: None },
        Self::ResyncSync,
    ];

    /// What it is called in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Thresher { has_view: false, concurrency: Some(_) } => "thresher, view none, 16 at once",
            Self::Thresher { has_view: false, concurrency: None } => "thresher, view none, default",
            Self::Thresher { has_view: true, concurrency: Some(_) } => "thresher, view files, 16 at once",
            Self::Thresher { has_view: true, concurrency: None } => "thresher, view files, default",
            Self::Curl => "curl",
            Self::ResyncSync => "resync-sync",
        }
    }

    /// A name for its folder.
    pub(crate) fn folder(self) -> String {
        self.name().replace(", ", "-").replace(' ', "-")
    }

    /// What to run inside `folder`; what it needs is written there beforehand.
    pub(crate) fn command(self, bench: &Bench, folder: &Path) -> anyhow::Result<CommandLine> {
        let (list, base) = (bench.source.list(), bench.source.base());
        Ok(match self {
            Self::Thresher { has_view, concurrency } => {
                let view = if has_view { View::Files } else { View::None };
                bench.thresher.sync(&list, view, concurrency)
            }
            Self::Curl => {
                fs::write(folder.join("urls.txt"), self::urls(bench, &base))?;
                CommandLine::new(&bench.curl.program)
                    .args(["--parallel", "--parallel-max", &AT_ONCE.to_string()])
                    .args(["--silent", "--show-error", "--fail", "--create-dirs", "--config", "urls.txt"])
            }
            Self::ResyncSync => CommandLine::new(&bench.resync.program)
                .args(["-b", "--sitemap", &list])
                .arg(format!("{base}=into")),
        })
    }
}

/// curl's list of what to get, and where to put it.
fn urls(bench: &Bench, base: &str) -> String {
    let mut urls = String::new();
    for resource in &bench.expected {
        let path = resource.uri.strip_prefix(base).unwrap_or(&resource.uri);
        // Writing into memory cannot fail.
        let _ = writeln!(urls, "url = \"{}\"\noutput = \"into{path}\"", resource.uri);
    }
    urls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_folders_differ() {
        let mut folders: Vec<String> = Entrant::ALL.iter().map(|entrant| entrant.folder()).collect();
        assert!(folders.iter().all(|folder| !folder.contains([' ', ','])), "{folders:?}");
        folders.sort_unstable();
        folders.dedup();
        assert_eq!(folders.len(), Entrant::ALL.len());
    }
}
