//! A running command. It is killed when it goes out of scope.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use testkit::waiting::found;

/// A child process. `kill -9` ends it, even if the test fails.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts a process and discards its output.
    #[track_caller]
    pub(crate) fn start(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
        Self { child, input: None, output: None }
    }

    /// Starts a process for a dialogue, line by line.
    #[track_caller]
    pub(crate) fn talk(command: &mut Command) -> Self {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
        let input = child.stdin.take();
        let output = child.stdout.take().map(BufReader::new);
        Self { child, input, output }
    }

    /// Writes a line.
    #[track_caller]
    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().expect("a process to talk with"), "{line}").expect("it listens");
    }

    /// Reads a line.
    #[track_caller]
    pub(crate) fn hear(&mut self) -> String {
        let mut line = String::new();
        self.output.as_mut().expect("a process to talk with").read_line(&mut line).expect("it speaks UTF-8");
        assert!(!line.is_empty(), "the process ended without a word");
        line.trim_end().to_owned()
    }

    /// Waits until a condition is true while the process runs. Returns whether it still runs then.
    #[track_caller]
    pub(crate) fn until(&mut self, come_about: impl Fn() -> bool) -> impl Future<Output = bool> {
        found("what the process brings about, or its end", async move || {
            let is_running = self.child.try_wait().expect("our own child").is_none();
            (!is_running || come_about()).then_some(is_running)
        })
    }

    /// Kills the process with SIGKILL as soon as a condition is true.
    pub(crate) async fn kill_when(mut self, come_about: impl Fn() -> bool) {
        let is_running = self.until(come_about).await;
        self.child.kill().expect("our own child");
        self.child.wait().expect("our own child");
        assert!(is_running, "the process had ended by itself, so there was nothing to kill");
    }

    /// Waits for its end and returns its exit status.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.child.wait().expect("our own child").code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
