//! A program at one distance by one protocol, and its command.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::program::Program;
use super::{Bench, Placed};
use crate::far_proxy::Link;
use crate::process::CommandLine;
use crate::thresher::View;
use crate::tls_source::Protocol;

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
    /// All of these programs, in the order of the first round.
    pub(super) fn all(
        programs: &[Program],
        places: impl Iterator<Item = (Protocol, Option<Link>)>,
    ) -> Vec<Self> {
        let mut all = Vec::new();
        for (place, (protocol, link)) in places.enumerate() {
            for program in programs {
                if !program.speaks(protocol) {
                    continue;
                }
                let mut name = format!("{}, {}", program.name(), protocol.name());
                if let Some(link) = link {
                    name = format!("{name}, {} ms", link.round_trip.as_millis());
                }
                // A few names, for as long as the process lives.
                all.push(Self { program: *program, place, name: String::leak(name) });
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
        let is_http2 = place.protocol == Protocol::Http2;
        let peer = || {
            let peer = bench.installed.peers.get(&self.program);
            anyhow::Ok(peer.context("it was found or installed")?.command())
        };
        Ok(match self.program {
            Program::Thresher => {
                let command = bench.thresher.sync(&site.list, View::None, Some(bench.task.at_once));
                command.envs(&[(TRUST, certificate)])
            }
            Program::Bare => {
                let command = CommandLine::new(std::env::current_exe()?);
                let command = command.args(["get-all", "--at-once", &at_once, "--cacert", &certificate]);
                let command = if is_http2 { command.arg("--http2") } else { command };
                if bench.task.is_large {
                    command.args([LIST, "--into", "into"])
                } else {
                    command.args(["--list", &site.list, "--keep", "into"])
                }
            }
            Program::Curl => {
                let protocol = if is_http2 { "--http2" } else { "--http1.1" };
                let command = peer()?.args(["--parallel", "--parallel-max", &at_once, protocol]);
                let command = command.args(["--cacert", &certificate, "--silent", "--show-error", "--fail"]);
                command.args(["--create-dirs", "--config", LIST])
            }
            Program::Aria2c => {
                let command = peer()?.args(["--no-conf", "--quiet", "--file-allocation=none"]);
                let command = command.args(["--auto-save-interval=0", "--dir=into", "-j", &at_once]);
                command.arg(format!("--ca-certificate={certificate}")).args(["-i", LIST])
            }
            Program::Wget2 => {
                let command =
                    peer()?.args(["--no-config", "--quiet", "--no-http2", "--max-threads", &at_once]);
                // It writes to no file of the user's.
                let command = command.args(["--no-hsts", "--no-hpkp", "--no-ocsp"]);
                let command = command.args(["--ca-certificate", &certificate, "--force-directories"]);
                command.args(["--no-host-directories", "--directory-prefix", "into", "--input-file", LIST])
            }
            Program::Rclone => {
                let command = peer()?.args(["copy", ":http:", "into", "--http-url", &site.base]);
                let command = command.args(["--files-from", LIST, "--no-traverse", "--http-no-head"]);
                let command = command.args(["--transfers", &at_once, "--checkers", &at_once]);
                let command = command.args(["--config", "/dev/null", "--quiet", "--ca-cert", &certificate]);
                if is_http2 { command } else { command.arg("--disable-http2") }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_speaks_each_protocol_that_it_has_and_names_differ() {
        let places = [(Protocol::Http1, None), (Protocol::Http2, None)];
        let all = Entrant::all(&Program::ALL, places.into_iter());
        assert_eq!(all.len(), 10);
        let mut folders: Vec<String> = all.iter().map(|entrant| entrant.folder()).collect();
        assert!(folders.iter().all(|folder| !folder.contains([' ', ',', '/'])), "{folders:?}");
        folders.sort_unstable();
        folders.dedup();
        assert_eq!(folders.len(), 10);
    }
}
