//! A server process that does not outlive the test process.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tempfile::TempDir;

/// Waits until the test process ends. A line on its input tells it to do nothing. If its input just ends, the
/// test process was killed or dropped nothing; then it kills the server and deletes its folder.
const WATCH: &str = r#"if read -r line; then exit 0; fi; kill -9 "$1"; sleep 0.2; rm -rf -- "$2""#;

/// How long a signal may take; a loaded machine takes longer.
const SIGNALLED: Duration = Duration::from_secs(10);

/// A server with a folder of its own. It is killed and the folder deleted when this is dropped, and also when
/// this process dies without dropping anything.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    name: &'static str,
    child: Child,
    watch: Child,
    folder: TempDir,
}

impl ServerProcess {
    /// Starts `command`; its output goes to `log.txt` in `folder`.
    pub(crate) fn start(
        name: &'static str,
        mut command: Command,
        folder: TempDir,
    ) -> anyhow::Result<ServerProcess> {
        let (child, watch) = spawn(name, &mut command, folder.path())?;
        Ok(ServerProcess { name, child, watch, folder })
    }

    /// Kills the process; its folder stays.
    pub(crate) fn kill(&mut self) {
        // SIGKILL, since an orderly stop of SeaweedFS takes up to half a minute, and its data is thrown away.
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Reaped: its id may now belong to another process, so the watchdog must not use it any more.
        if let Some(mut input) = self.watch.stdin.take() {
            let _ = input.write_all(b"done\n");
        }
        let _ = self.watch.wait();
    }

    /// Kills the process, and starts `command` in its place and in its folder.
    pub(crate) fn start_again(&mut self, mut command: Command) -> anyhow::Result<()> {
        self.kill();
        (self.child, self.watch) = spawn(self.name, &mut command, self.folder.path())?;
        Ok(())
    }

    /// Pauses the process (SIGSTOP): it still accepts connections, and answers none. It is paused when this
    /// returns.
    pub(crate) fn pause(&mut self) -> anyhow::Result<()> {
        self.signal("STOP")?;
        self.wait_until_stopped(true)
    }

    /// Resumes a paused process.
    pub(crate) fn resume(&mut self) -> anyhow::Result<()> {
        self.signal("CONT")?;
        self.wait_until_stopped(false)
    }

    /// A signal is delivered only when the process is next scheduled.
    fn wait_until_stopped(&self, stopped: bool) -> anyhow::Result<()> {
        let deadline = Instant::now() + SIGNALLED;
        while state(self.child.id()).is_some_and(|state| (state == 'T') != stopped) {
            anyhow::ensure!(Instant::now() < deadline, "{} does not heed its signal", self.name);
            std::thread::yield_now();
        }
        Ok(())
    }

    fn signal(&mut self, signal: &str) -> anyhow::Result<()> {
        // Not yet reaped, so no other process has its id.
        self.check()?;
        let status =
            Command::new("kill").arg(format!("-{signal}")).arg(self.child.id().to_string()).status()?;
        anyhow::ensure!(status.success(), "{} could not be sent SIG{signal} ({status})", self.name);
        Ok(())
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Fails when the server has ended, with the end of its log.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(self.complaint(&describe(status))),
        }
    }

    /// Its output so far.
    pub(crate) fn log(&self) -> String {
        let log = std::fs::read(self.folder().join("log.txt")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// An error about the server, with the last lines of its log.
    pub(crate) fn complaint(&self, what: &str) -> anyhow::Error {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(15)..].join("\n");
        anyhow::anyhow!("{} {what}; the end of its log:\n{last}", self.name)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts the server, and the watchdog that ends it when this process cannot.
fn spawn(name: &str, command: &mut Command, folder: &Path) -> anyhow::Result<(Child, Child)> {
    let log = File::options().create(true).append(true).open(folder.join("log.txt"));
    let log = log.context("cannot create the server's log")?;
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    // A process group of its own: Ctrl-C at the terminal goes to the tests, which then end the server.
    let mut child = command.process_group(0).spawn().with_context(|| format!("cannot start {name}"))?;
    let watch = Command::new("sh")
        .args(["-c", WATCH, "watch", &child.id().to_string()])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn();
    match watch {
        Ok(watch) => Ok((child, watch)),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(error).context("cannot start sh to watch over the server")
        }
    }
}

fn describe(status: ExitStatus) -> String {
    format!("ended before it was ready ({status})")
}

/// The state of a process on Linux, such as `T` for stopped; none if there is no such process, or no Linux.
fn state(id: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> ServerProcess {
        let mut command = Command::new("sleep");
        command.arg("600");
        ServerProcess::start("sleep", command, TempDir::new().unwrap()).unwrap()
    }

    fn is_alive(id: u32) -> bool {
        Path::new(&format!("/proc/{id}")).exists()
    }

    #[test]
    fn dropping_it_kills_the_process_and_deletes_its_folder() {
        let server = sleeper();
        let id = server.child.id();
        let folder = server.folder().to_owned();
        assert!(is_alive(id) && folder.exists());
        drop(server);
        assert!(!is_alive(id) && !folder.exists());
    }

    #[test]
    fn a_holder_that_dies_takes_the_process_along() {
        let mut server = sleeper();
        // As at the end of this process: the pipe closes without a line.
        drop(server.watch.stdin.take());
        let status = server.child.wait().unwrap();
        assert!(status.to_string().contains("signal: 9"), "{status}");
        server.watch.wait().unwrap();
        assert!(!server.folder().exists());
    }

    #[test]
    fn one_that_was_killed_starts_again_in_its_folder_and_is_ended_as_the_first() {
        let mut server = sleeper();
        server.kill();
        assert!(server.check().is_err() && server.folder().exists());
        let mut command = Command::new("sleep");
        command.arg("600");
        server.start_again(command).unwrap();
        server.check().unwrap();
        let id = server.child.id();
        let folder = server.folder().to_owned();
        drop(server);
        assert!(!is_alive(id) && !folder.exists());
    }

    #[test]
    fn one_that_is_paused_stands_still_until_it_goes_on_and_can_be_killed_meanwhile() {
        let mut server = sleeper();
        let id = server.child.id();
        server.pause().unwrap();
        assert_eq!(state(id), Some('T'));
        server.resume().unwrap();
        assert_ne!(state(id), Some('T'));
        server.pause().unwrap();
        drop(server);
        assert!(!is_alive(id));
    }

    #[test]
    fn one_that_has_ended_cannot_be_paused() {
        let mut server = sleeper();
        server.kill();
        assert!(server.pause().is_err() && server.resume().is_err());
    }

    #[test]
    fn a_server_that_ends_too_early_is_quoted() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no room at the inn; exit 3"]);
        let mut server = ServerProcess::start("sh", command, TempDir::new().unwrap()).unwrap();
        server.child.wait().unwrap();
        let message = server.check().unwrap_err().to_string();
        assert!(message.contains("exit status: 3") && message.contains("no room at the inn"), "{message}");
    }
}
