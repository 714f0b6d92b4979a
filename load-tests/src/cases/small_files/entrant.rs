//! The compared programs, and their commands.

use std::fs;
use std::path::Path;

use super::Bench;
use crate::process::CommandLine;
use crate::thresher::View;

/// A program that a user could run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entrant {
    /// `thresher sync`.
    Thresher {
        /// Whether resources are also written as files.
        has_view: bool,
        /// Concurrent requests; the program's default if absent.
        concurrency: Option<u16>,
    },
    /// `load-tests get-all`: the limit. It gets a list of URLs, like all that follow but the last, unless it
    /// reads the Source's own.
    Bare(Kept),
    /// `curl`: like those that follow, it neither reads a Resource List nor verifies.
    Curl,
    /// `aria2c`.
    Aria2c,
    /// `wget`, which sends one request after another.
    Wget,
    /// As many `wget` as others have concurrent requests, each with a part of the list.
    Wgets,
    /// The reference implementation's baseline: one request after another, digests not verified.
    ResyncSync,
}

/// What a bare loop stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Nothing.
    Nothing,
    /// A file per body.
    Files,
    /// Packs, and a catalog, as a harvest does.
    Harvest,
    /// The same for the entries of the Resource List, compared with their declarations.
    Listed,
}

/// Concurrent requests of all programs that have such an option.
const AT_ONCE: u16 = 16;
/// The file with the URLs, in each program's format.
const LIST: &str = "urls.txt";
/// URLs per run of one of several `wget`.
const URLS_AT_A_TIME: &str = "250";

impl Entrant {
    /// All, in the order of the first round.
    pub(crate) const ALL: [Self; 13] = [
        Self::Thresher { has_view: false, concurrency: Some(AT_ONCE) },
        Self::Thresher { has_view: false, concurrency: None },
        Self::Curl,
        Self::Thresher { has_view: true, concurrency: Some(AT_ONCE) },
        Self::Thresher { has_view: true, concurrency: None },
        Self::Bare(Kept::Nothing),
        Self::Bare(Kept::Harvest),
        Self::Bare(Kept::Listed),
        Self::Bare(Kept::Files),
        Self::Aria2c,
        Self::Wget,
        Self::Wgets,
        Self::ResyncSync,
    ];

    /// Its name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Thresher { has_view: false, concurrency: Some(_) } => "thresher, view none, 16 at once",
            Self::Thresher { has_view: false, concurrency: None } => "thresher, view none, default",
            Self::Thresher { has_view: true, concurrency: Some(_) } => "thresher, view files, 16 at once",
            Self::Thresher { has_view: true, concurrency: None } => "thresher, view files, default",
            Self::Bare(Kept::Nothing) => "bare loop",
            Self::Bare(Kept::Harvest) => "bare loop, packs and records",
            Self::Bare(Kept::Listed) => "bare loop, list, packs and records",
            Self::Bare(Kept::Files) => "bare loop, files",
            Self::Curl => "curl",
            Self::Aria2c => "aria2c",
            Self::Wget => "wget",
            Self::Wgets => "wget, 16 at once",
            Self::ResyncSync => "resync-sync",
        }
    }

    /// The name of its folder.
    pub(crate) fn folder(self) -> String {
        self.name().replace(", ", "-").replace(' ', "-")
    }

    /// The command to run inside `folder`; its input is written there beforehand.
    pub(crate) fn command(self, bench: &Bench, folder: &Path) -> anyhow::Result<CommandLine> {
        let list = bench.source.list();
        let base = bench.source.base();
        let at_once = AT_ONCE.to_string();
        let lines: String = bench.expected.iter().map(|resource| self.line(&resource.uri, &base)).collect();
        if !lines.is_empty() {
            fs::write(folder.join(LIST), lines)?;
        }
        Ok(match self {
            Self::Thresher { has_view, concurrency } => {
                let view = if has_view { View::Files } else { View::None };
                bench.thresher.sync(&list, view, concurrency)
            }
            Self::Bare(kept) => {
                let command = CommandLine::new(std::env::current_exe()?);
                let command = command.args(["get-all", "--at-once", &at_once]);
                match kept {
                    Kept::Nothing => command.args([LIST]),
                    Kept::Files => command.args([LIST, "--into", "into"]),
                    Kept::Harvest => command.args([LIST, "--keep", "into"]),
                    Kept::Listed => command.args(["--list", &list, "--keep", "into"]),
                }
            }
            Self::Curl => bench.curl.command().args(["--parallel", "--parallel-max", &at_once]).args([
                "--silent",
                "--show-error",
                "--fail",
                "--create-dirs",
                "--config",
                LIST,
            ]),
            Self::Aria2c => bench
                .aria2c
                .command()
                .args([
                    "--no-conf",
                    "--quiet",
                    "--file-allocation=none",
                    "--auto-save-interval=0",
                    "--dir=into",
                ])
                .args(["-j", &at_once, "-i", LIST]),
            Self::Wget => wget(bench).args(["--input-file", LIST]),
            Self::Wgets => wget(bench).run_by("xargs", ["-a", LIST, "-P", &at_once, "-n", URLS_AT_A_TIME]),
            Self::ResyncSync => {
                bench.resync.command().args(["-b", "--sitemap", &list]).arg(format!("{base}=into"))
            }
        })
    }

    /// The line of one URL in its list: the URL, and the target. None if it reads the Source's own list.
    fn line(self, uri: &str, base: &str) -> String {
        let path = uri.strip_prefix(base).unwrap_or(uri);
        match self {
            Self::Thresher { .. } | Self::ResyncSync | Self::Bare(Kept::Listed) => String::new(),
            Self::Bare(_) | Self::Wget | Self::Wgets => format!("{uri}\n"),
            Self::Curl => format!("url = \"{uri}\"\noutput = \"into{path}\"\n"),
            Self::Aria2c => format!("{uri}\n  out={}\n", path.trim_start_matches('/')),
        }
    }
}

/// `wget` that stores files at the paths of their URLs.
fn wget(bench: &Bench) -> CommandLine {
    let files = ["--force-directories", "--no-host-directories", "--directory-prefix", "into"];
    bench.wget.command().args(["--no-config", "--quiet"]).args(files)
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

    #[test]
    fn each_program_gets_a_list_in_its_own_format() {
        let line = |entrant: Entrant| entrant.line("http://h:1/set/a.bin", "http://h:1");
        assert_eq!(line(Entrant::Curl), "url = \"http://h:1/set/a.bin\"\noutput = \"into/set/a.bin\"\n");
        assert_eq!(line(Entrant::Aria2c), "http://h:1/set/a.bin\n  out=set/a.bin\n");
        assert_eq!(line(Entrant::Wget), "http://h:1/set/a.bin\n");
        assert_eq!(line(Entrant::ResyncSync), "");
    }
}
