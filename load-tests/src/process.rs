//! Measured commands, each in a folder of its own.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::measure::Usage;

/// A command that takes longer is killed, and the case ends.
const LIMIT_S: u64 = 7200;

/// A program and its arguments.
#[derive(Debug, Clone)]
pub(crate) struct CommandLine {
    /// A program that runs it, with arguments of its own; and others that run that one, in front.
    run_by: Vec<OsString>,
    program: PathBuf,
    arguments: Vec<OsString>,
    /// Not shown: it may hold secrets.
    environment: Vec<(&'static str, String)>,
}

/// The result of a command that ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) usage: Usage,
    folder: PathBuf,
}

impl CommandLine {
    /// A command without arguments.
    pub(crate) fn new(program: impl Into<PathBuf>) -> Self {
        Self { run_by: Vec::new(), program: program.into(), arguments: Vec::new(), environment: Vec::new() }
    }

    /// Adds an argument.
    pub(crate) fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub(crate) fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Adds variables to its environment.
    pub(crate) fn envs(mut self, variables: &[(&'static str, String)]) -> Self {
        self.environment.extend_from_slice(variables);
        self
    }

    /// Runs it through another program, as its last argument.
    pub(crate) fn run_by<A: AsRef<OsStr>>(
        mut self,
        program: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(|argument| argument.as_ref().to_owned());
        self.run_by.splice(..0, std::iter::once(program.into()).chain(arguments));
        self
    }

    /// As typed inside `folder`.
    pub(crate) fn shown(&self, folder: &Path) -> String {
        self.to_string().replace(&format!("{}/", folder.display()), "")
    }

    /// Runs it inside `folder`, which also gets its output, and waits for its end.
    pub(crate) fn measured(&self, folder: &Path) -> anyhow::Result<Ended> {
        let report = folder.join("usage.json");
        let output = File::create(folder.join("stdout.txt"))?;
        let errors = File::create(folder.join("stderr.txt"))?;
        let status = Command::new(std::env::current_exe()?)
            .args(["measure", "--limit-s", &LIMIT_S.to_string(), "--report"])
            .arg(&report)
            .arg("--")
            .args(&self.run_by)
            .arg(&self.program)
            .args(&self.arguments)
            .envs(self.environment.iter().cloned())
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .status()?;
        let ended = |usage| Ended { usage, folder: folder.to_owned() };
        if !status.success() {
            let errors = last_lines(&folder.join("stderr.txt"));
            bail!("{self} could not be measured:\n{errors}");
        }
        let usage = fs::read(&report).with_context(|| format!("{} is missing", report.display()))?;
        Ok(ended(serde_json::from_slice(&usage)?))
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.run_by.iter().try_for_each(|word| write!(f, "{} ", word.display()))?;
        // The path of a program does not matter for the figures.
        write!(f, "{}", self.program.file_name().unwrap_or_default().display())?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {}", argument.display()))
    }
}

impl Ended {
    /// Its output.
    pub(crate) fn output(&self) -> anyhow::Result<String> {
        Ok(fs::read_to_string(self.folder.join("stdout.txt"))?)
    }

    /// Fails when it did not succeed, with the end of its output.
    pub(crate) fn succeeded(&self) -> anyhow::Result<()> {
        match self.usage.exit_status {
            Some(0) => Ok(()),
            status => {
                let status =
                    status.map_or_else(|| "a signal".to_owned(), |status| format!("status {status}"));
                bail!(
                    "the command in {} ended with {status}:\n{}",
                    self.folder.display(),
                    last_lines(&self.folder.join("stderr.txt"))
                )
            }
        }
    }
}

/// The output of a command that is not measured, for example its version.
pub(crate) fn output_of(command: &mut Command) -> anyhow::Result<String> {
    let output =
        command.output().with_context(|| format!("cannot run {}", command.get_program().display()))?;
    // nginx prints its version on standard error.
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned();
    if !output.status.success() {
        bail!("{command:?} failed ({}):\n{said}", output.status);
    }
    Ok(said)
}

fn last_lines(file: &Path) -> String {
    let text = fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_without_the_places_of_this_machine() {
        let command = CommandLine::new("/opt/bin/thresher").args(["sync", "--into", "/tmp/round-1/into"]);
        assert_eq!(command.shown(Path::new("/tmp/round-1")), "thresher sync --into into");
    }

    #[test]
    fn what_runs_a_command_is_shown_before_it_and_the_outermost_first() {
        let command = CommandLine::new("/opt/bin/sha256sum").run_by("xargs", ["-P", "2"]);
        let command = command.run_by("taskset", ["-c", "0"]).arg("file");
        assert_eq!(command.to_string(), "taskset -c 0 xargs -P 2 sha256sum file");
    }
}
