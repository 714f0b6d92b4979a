//! The program under test.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::cli::Options;
use crate::place::Place;
use crate::process::{CommandLine, Ended, output_of};

/// The profile that `thresher` is built with: that of published binaries.
const PROFILE: &str = "dist";

/// The program and its version.
#[derive(Debug, Clone)]
pub(crate) struct Thresher {
    program: PathBuf,
    pub(crate) version: String,
}

/// Whether resources are written as files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Files,
    None,
}

/// The last line of `sync --json`, as far as it is checked here.
#[derive(Debug, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) in_sync: bool,
    pub(crate) listed: u64,
    pub(crate) stored: u64,
    pub(crate) unchanged: u64,
    pub(crate) requests: u64,
}

/// The last line of `audit --json`, as far as it is checked here.
#[derive(Debug, Deserialize)]
pub(crate) struct Audited {
    pub(crate) in_sync: bool,
    pub(crate) listed: u64,
    pub(crate) held: u64,
    pub(crate) matching: u64,
    pub(crate) requests: u64,
}

/// A line of `ls --json`.
#[derive(Debug, Deserialize)]
pub(crate) struct Held {
    pub(crate) uri: String,
    pub(crate) state: String,
    pub(crate) length: Option<u64>,
    pub(crate) sha256: Option<String>,
}

impl Thresher {
    /// The program from the options, or one built from this workspace.
    pub(crate) fn get(options: &Options) -> anyhow::Result<Self> {
        let (program, of) = match &options.thresher {
            Some(program) => {
                let program =
                    program.canonicalize().with_context(|| format!("there is no {}", program.display()))?;
                (program, None)
            }
            None => (build()?, commit()),
        };
        let mut version = output_of(Command::new(&program).arg("--version"))?;
        let profile = profile(&program).map(|profile| format!("profile {profile}"));
        let details = [of, profile].into_iter().flatten().collect::<Vec<_>>().join(", ");
        if !details.is_empty() {
            version = format!("{version} ({details})");
        }
        Ok(Self { program, version })
    }

    /// The program, without arguments.
    pub(crate) fn command(&self) -> Command {
        Command::new(&self.program)
    }

    /// The same, to be measured.
    pub(crate) fn measured(&self) -> CommandLine {
        CommandLine::new(&self.program)
    }

    /// `sync` of a list into `into`, a name in the folder that the command will run in.
    pub(crate) fn sync(&self, list: &str, view: View, concurrency: Option<u16>) -> CommandLine {
        self.sync_to(&Place::directory(Path::new("into")), list, view, concurrency)
    }

    /// `sync` of a list to another place.
    pub(crate) fn sync_to(
        &self,
        place: &Place,
        list: &str,
        view: View,
        concurrency: Option<u16>,
    ) -> CommandLine {
        let view = if view == View::Files { "files" } else { "none" };
        let command = self.measured().envs(&place.environment);
        let command = command.args(["sync", list, "--into", &place.into, "--view", view]);
        let command = match concurrency {
            Some(concurrency) => command.arg("--concurrency").arg(concurrency.to_string()),
            None => command,
        };
        command.arg("--json")
    }

    /// `audit` of the copy that a `sync` wrote into `into`.
    pub(crate) fn audit(&self, list: &str) -> CommandLine {
        self.measured().args(["audit", list, "--into", "into", "--json"])
    }

    /// Calls `each` for every resource of a harvest, one at a time.
    pub(crate) fn held(&self, place: &Place, each: impl FnMut(Held)) -> anyhow::Result<()> {
        self.listed(place, &["ls", "--json"], each)
    }

    /// The same, for the resources of one Source.
    pub(crate) fn held_of(&self, place: &Place, source: &str, each: impl FnMut(Held)) -> anyhow::Result<()> {
        self.listed(place, &["ls", "--json", "--source", source], each)
    }

    fn listed(&self, place: &Place, arguments: &[&str], mut each: impl FnMut(Held)) -> anyhow::Result<()> {
        let mut command = self.reading(place, arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start thresher ls")?;
        for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufReader::lines) {
            let line = line?;
            each(serde_json::from_str(&line).with_context(|| format!("thresher ls printed {line:?}"))?);
        }
        let status = child.wait()?;
        if !status.success() {
            bail!("thresher ls --into {} failed ({status})", place.into);
        }
        Ok(())
    }

    /// The verified bytes of one resource.
    pub(crate) fn cat(&self, uri: &str, place: &Place) -> anyhow::Result<Vec<u8>> {
        let output = self.reading(place, &["cat", uri]).output()?;
        if !output.status.success() {
            bail!("thresher cat {uri} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(output.stdout)
    }

    fn reading(&self, place: &Place, arguments: &[&str]) -> Command {
        let mut command = self.command();
        command.args(arguments).args(["--into", &place.into]).envs(place.environment.iter().cloned());
        command
    }
}

impl Outcome {
    /// The result of a successful `sync`.
    pub(crate) fn of(ended: &Ended) -> anyhow::Result<Self> {
        last_line(ended)
    }
}

impl Audited {
    /// The result of an `audit` without findings.
    pub(crate) fn of(ended: &Ended) -> anyhow::Result<Self> {
        last_line(ended)
    }
}

/// The last line of a successful command.
fn last_line<T: DeserializeOwned>(ended: &Ended) -> anyhow::Result<T> {
    ended.succeeded()?;
    let output = ended.output()?;
    let last = output.lines().last().unwrap_or_default();
    serde_json::from_str(last).with_context(|| format!("the last line of thresher is {last:?}"))
}

fn build() -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("Cargo.toml");
    let mut command = Command::new(cargo);
    command.args(["build", "--profile", PROFILE, "-p", "thresher", "--manifest-path"]).arg(manifest);
    // Cargo's output goes to standard error, so that standard output has only the report.
    let status =
        command.status().context("cannot run cargo to build thresher; give a program with --thresher")?;
    if !status.success() {
        bail!("thresher could not be built ({status}); give a program with --thresher");
    }
    Ok(testkit::servers::target_directory().join(PROFILE).join("thresher"))
}

/// The build profile of a program, by the folder that cargo built it into; None elsewhere.
pub(crate) fn profile(program: &Path) -> Option<&'static str> {
    let folder = program.parent()?.file_name()?;
    [PROFILE, "release", "debug"].into_iter().find(|profile| folder == *profile)
}

/// The commit of the workspace, and whether it has uncommitted changes; None if that is unknown.
pub(crate) fn commit() -> Option<String> {
    let mut command = Command::new("git");
    command.args(["describe", "--always", "--dirty"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    output_of(&mut command).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_is_the_folder_that_cargo_built_into() {
        assert_eq!(profile(Path::new("/target/dist/thresher")), Some("dist"));
        assert_eq!(profile(Path::new("/target/release/thresher")), Some("release"));
        assert_eq!(profile(Path::new("/usr/bin/thresher")), None);
    }

    #[test]
    fn an_outcome_may_say_more_than_is_judged() {
        let line = r#"{"run":"x","mode":"baseline","in_sync":true,"listed":3,"stored":2,"unchanged":1,"deleted":0,
            "failed":0,"bytes":9,"requests":4,"quirks":{},"gaps":0,"duration_ms":7}"#;
        let outcome: Outcome = serde_json::from_str(line).unwrap();
        assert!(outcome.in_sync && outcome.stored == 2 && outcome.requests == 4);
    }

    #[test]
    fn a_resource_that_is_not_held_has_no_digest() {
        let line = r#"{"uri":"http://a/b","state":"pending","length":null,"sha256":null,"location":null}"#;
        let held: Held = serde_json::from_str(line).unwrap();
        assert_eq!((held.state.as_str(), held.sha256), ("pending", None));
    }
}
