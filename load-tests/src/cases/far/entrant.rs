//! The compared programs, and their commands.

use std::fs;
use std::path::Path;

use super::{Bench, Placed};
use crate::far_proxy::Link;
use crate::process::CommandLine;
use crate::thresher::View;
use crate::tls_source::Protocol;

/// A program that a user could run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// `thresher sync`.
    Thresher,
    /// `load-tests get-all`: it reads the list, and keeps packs and records, or files if they are large.
    Bare,
    /// `curl --parallel`: like `aria2c` it gets a list of URLs, and verifies nothing.
    Curl,
    /// `aria2c`, which has no HTTP/2.
    Aria2c,
}

/// A program at one distance by one protocol.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entrant {
    pub(super) program: Program,
    /// Which place, in their order.
    pub(super) place: usize,
    /// Its name in the report.
    pub(super) name: &'static str,
}

/// The file with the URLs, in each program's format.
const LIST: &str = "urls.txt";
/// Trusted certificates of a program that reads them as OpenSSL does.
const TRUST: &str = "SSL_CERT_FILE";

impl Entrant {
    /// All, in the order of the first round.
    pub(super) fn all(places: impl Iterator<Item = (Protocol, Option<Link>)>) -> Vec<Self> {
        let mut all = Vec::new();
        for (place, (protocol, link)) in places.enumerate() {
            for program in [Program::Thresher, Program::Bare, Program::Curl, Program::Aria2c] {
                if (program, protocol) == (Program::Aria2c, Protocol::Http2) {
                    continue;
                }
                let mut name = format!("{}, {}", program.name(), protocol.name());
                if let Some(link) = link {
                    name = format!("{name}, {} ms", link.round_trip.as_millis());
                }
                // A few names, for as long as the process lives.
                all.push(Self { program, place, name: String::leak(name) });
            }
        }
        all
    }

    /// The name of its folder.
    pub(super) fn folder(self) -> String {
        self.name.replace(", ", "-").replace([' ', '/'], "-")
    }

    /// The command to run inside `folder`; its input is written there beforehand.
    pub(super) fn command(self, bench: &Bench, place: &Placed, folder: &Path) -> anyhow::Result<CommandLine> {
        let site = &place.site;
        let lines: String =
            site.expected.iter().map(|each| self.program.line(&each.uri, &site.base)).collect();
        fs::write(folder.join(LIST), lines)?;
        let certificate = bench.source.certificate().display().to_string();
        let at_once = bench.task.at_once.to_string();
        Ok(match self.program {
            Program::Thresher => {
                let command = bench.thresher.sync(&site.list, View::None, Some(bench.task.at_once));
                command.envs(&[(TRUST, certificate)])
            }
            Program::Bare => {
                let command = CommandLine::new(std::env::current_exe()?);
                let command = command.args(["get-all", "--at-once", &at_once, "--cacert", &certificate]);
                let command = match place.protocol {
                    Protocol::Http1 => command,
                    Protocol::Http2 => command.arg("--http2"),
                };
                if bench.task.is_large {
                    command.args([LIST, "--into", "into"])
                } else {
                    command.args(["--list", &site.list, "--keep", "into"])
                }
            }
            Program::Curl => {
                let protocol = match place.protocol {
                    Protocol::Http1 => "--http1.1",
                    Protocol::Http2 => "--http2",
                };
                let command = bench.curl.command().args(["--parallel", "--parallel-max", &at_once, protocol]);
                let command = command.args(["--cacert", &certificate, "--silent", "--show-error", "--fail"]);
                command.args(["--create-dirs", "--config", LIST])
            }
            Program::Aria2c => {
                let command = bench.aria2c.command().args(["--no-conf", "--quiet", "--file-allocation=none"]);
                let command = command.args(["--auto-save-interval=0", "--dir=into", "-j", &at_once]);
                command.arg(format!("--ca-certificate={certificate}")).args(["-i", LIST])
            }
        })
    }
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Thresher => "thresher, view none",
            Self::Bare => "bare loop",
            Self::Curl => "curl",
            Self::Aria2c => "aria2c",
        }
    }

    /// The line of one URL in its list: the URL, and the target.
    fn line(self, uri: &str, base: &str) -> String {
        let path = uri.strip_prefix(base).unwrap_or(uri);
        match self {
            Self::Thresher => String::new(),
            Self::Bare => format!("{uri}\n"),
            Self::Curl => format!("url = \"{uri}\"\noutput = \"into{path}\"\n"),
            Self::Aria2c => format!("{uri}\n  out={}\n", path.trim_start_matches('/')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_speaks_each_protocol_that_it_has_and_names_differ() {
        let all = Entrant::all([(Protocol::Http1, None), (Protocol::Http2, None)].into_iter());
        assert_eq!(all.len(), 7);
        let mut folders: Vec<String> = all.iter().map(|entrant| entrant.folder()).collect();
        assert!(folders.iter().all(|folder| !folder.contains([' ', ',', '/'])), "{folders:?}");
        folders.sort_unstable();
        folders.dedup();
        assert_eq!(folders.len(), 7);
    }
}
