//! A command that has ended.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// What a command printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Run {
    line: String,
    /// The exit status; none if a signal ended it.
    pub(crate) exit: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    /// Runs a command to its end.
    #[track_caller]
    pub(crate) fn of(command: &mut Command) -> Self {
        let output = command.stdin(Stdio::null()).output().expect("the binary was built by cargo");
        Self::ended(command, &output)
    }

    pub(crate) fn ended(command: &Command, output: &Output) -> Self {
        Self {
            line: format!("{command:?}"),
            exit: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Checks the exit status, and that the output has nothing meant for developers.
    #[track_caller]
    pub(crate) fn exits(self, status: i32) -> Self {
        assert_eq!(self.exit, Some(status), "{self}");
        assert!(!self.stderr.contains("panicked at"), "{self}");
        let is_log = |line: &str| [" ERROR ", " WARN ", " INFO "].iter().any(|level| line.contains(level));
        assert!(!self.stderr.lines().any(is_log), "log lines without being asked for: {self}");
        self
    }

    /// The JSON object that `--json` prints last.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let last = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(last)
            .unwrap_or_else(|error| panic!("the last line is no JSON ({error}): {self}"))
    }

    /// A count of that object.
    #[track_caller]
    pub(crate) fn count(&self, name: &str) -> u64 {
        let json = self.json();
        json[name].as_u64().unwrap_or_else(|| panic!("{name} is no count in {json}"))
    }

    /// Every line of standard output as a JSON object.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let read =
            |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}: {self}"));
        self.stdout.lines().map(read).collect()
    }

    /// The line with the error that kept the command from running. It is the last one.
    #[track_caller]
    pub(crate) fn complaint(&self) -> String {
        let complaints: Vec<&str> =
            self.stderr.lines().filter_map(|line| line.strip_prefix("thresher: ")).collect();
        let [complaint] = complaints[..] else {
            panic!("not exactly one line begins with \"thresher: \": {self}")
        };
        assert!(self.stderr.trim_end().ends_with(complaint), "the complaint is not the last line: {self}");
        complaint.to_owned()
    }

    /// Checks that this line contains all of `what_and_where`, and says what to do.
    #[track_caller]
    pub(crate) fn complains(self, what_and_where: &[&str], what_to_do: &[&str]) -> Self {
        let complaint = self.complaint();
        for text in what_and_where {
            assert!(complaint.contains(text), "{text:?} is not named in: {complaint}");
        }
        let lower = complaint.to_lowercase();
        assert!(
            what_to_do.iter().any(|word| lower.contains(word)),
            "nothing says what to do in: {complaint}"
        );
        self
    }

    /// Checks that standard error contains all of these.
    #[track_caller]
    pub(crate) fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(self.stderr.contains(text), "{text:?} is not said: {self}");
        }
        self
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { line, exit, stdout, stderr } = self;
        let end = stdout.char_indices().nth(2000).map_or(stdout.len(), |(at, _)| at);
        write!(f, "{line}\nexit {exit:?}\n-- stdout\n{}\n-- stderr\n{stderr}", &stdout[..end])
    }
}
