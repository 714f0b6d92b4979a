//! The compared programs, and whether this machine has them.

use std::collections::BTreeMap;

use crate::peers::{self, Peer};
use crate::tls_source::Protocol;

/// A program that a user could run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Program {
    /// `thresher sync`.
    Thresher,
    /// `load-tests get-all`: it reads the list, and keeps packs and records, or files if they are large.
    Bare,
    /// `curl --parallel`: like those that follow it gets a list of URLs, and verifies nothing.
    Curl,
    /// `aria2c`, which has no HTTP/2.
    Aria2c,
    /// `wget2`, with as many threads as there are requests. By HTTP/2 it has more open, and loses what was to
    /// come over a connection that the server ends.
    Wget2,
    /// `rclone copy` from a remote that is a web server.
    Rclone,
}

/// The programs of a case that can be run here.
#[derive(Debug)]
pub(super) struct Installed {
    /// All of them, in the order of the first round.
    pub(super) programs: Vec<Program>,
    /// Those that are not of this project.
    pub(super) peers: BTreeMap<Program, Peer>,
    /// Those without a row, and why.
    pub(super) left_out: Vec<String>,
}

impl Program {
    /// All of them.
    pub(super) const ALL: [Self; 6] =
        [Self::Thresher, Self::Bare, Self::Curl, Self::Aria2c, Self::Wget2, Self::Rclone];

    /// Its name in the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Thresher => "thresher, view none",
            Self::Bare => "bare loop",
            Self::Curl => "curl",
            Self::Aria2c => "aria2c",
            Self::Wget2 => "wget2",
            Self::Rclone => "rclone",
        }
    }

    /// Whether it has rows by this protocol.
    pub(super) fn speaks(self, protocol: Protocol) -> bool {
        protocol == Protocol::Http1 || !matches!(self, Self::Aria2c | Self::Wget2)
    }

    /// The line of one resource in its list: mostly the URL, and the target.
    pub(super) fn line(self, uri: &str, base: &str) -> String {
        let path = uri.strip_prefix(base).unwrap_or(uri);
        match self {
            Self::Thresher => String::new(),
            Self::Bare | Self::Wget2 => format!("{uri}\n"),
            Self::Curl => format!("url = \"{uri}\"\noutput = \"into{path}\"\n"),
            Self::Aria2c => format!("{uri}\n  out={}\n", path.trim_start_matches('/')),
            Self::Rclone => format!("{}\n", path.trim_start_matches('/')),
        }
    }

    /// Whether a case does without it where it cannot be installed.
    fn is_optional(self) -> bool {
        matches!(self, Self::Wget2 | Self::Rclone)
    }

    /// Finds it, or installs it. None of this project's own.
    fn peer(self) -> Option<anyhow::Result<Peer>> {
        match self {
            Self::Thresher | Self::Bare => None,
            Self::Curl => Some(peers::curl()),
            Self::Aria2c => Some(peers::aria2c()),
            Self::Wget2 => Some(peers::wget2()),
            Self::Rclone => Some(peers::rclone()),
        }
    }
}

impl Installed {
    /// Finds or installs these programs. An optional one that is missing is left out, and said so.
    ///
    /// # Errors
    /// When another one cannot be installed.
    pub(super) fn of(programs: &[Program]) -> anyhow::Result<Self> {
        Self::found_by(programs, Program::peer)
    }

    fn found_by(
        programs: &[Program],
        peer: impl Fn(Program) -> Option<anyhow::Result<Peer>>,
    ) -> anyhow::Result<Self> {
        let mut here = Self { programs: Vec::new(), peers: BTreeMap::new(), left_out: Vec::new() };
        for program in programs {
            match peer(*program) {
                None => {}
                Some(Ok(peer)) => {
                    here.peers.insert(*program, peer);
                }
                Some(Err(error)) if program.is_optional() => {
                    let why = format!("{}: {error:#}", program.name());
                    eprintln!("a row is left out: {why}");
                    here.left_out.push(why);
                    continue;
                }
                Some(Err(error)) => return Err(error),
            }
            here.programs.push(*program);
        }
        Ok(here)
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    fn without(missing: Program) -> anyhow::Result<Installed> {
        Installed::found_by(&Program::ALL, |program| {
            (program == missing).then(|| bail!("there is no {}", program.name()))
        })
    }

    #[test]
    fn a_program_that_a_case_can_do_without_is_left_out_and_said_so() {
        let here = without(Program::Rclone).unwrap();
        assert_eq!(here.programs, Program::ALL[..5]);
        assert_eq!(here.left_out, ["rclone: there is no rclone"]);
    }

    #[test]
    fn a_program_that_a_case_needs_must_be_there() {
        assert_eq!(without(Program::Curl).unwrap_err().to_string(), "there is no curl");
    }

    #[test]
    fn each_program_gets_a_list_in_its_own_format() {
        let line = |program: Program| program.line("https://h:1/set/a.bin", "https://h:1");
        assert_eq!(line(Program::Thresher), "");
        assert_eq!(line(Program::Wget2), "https://h:1/set/a.bin\n");
        assert_eq!(line(Program::Rclone), "set/a.bin\n");
        assert_eq!(line(Program::Curl), "url = \"https://h:1/set/a.bin\"\noutput = \"into/set/a.bin\"\n");
        assert_eq!(line(Program::Aria2c), "https://h:1/set/a.bin\n  out=set/a.bin\n");
    }
}
