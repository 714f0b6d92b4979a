//! A browser for tests: Chromium without a window, driven through ChromeDriver.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::process::ServerProcess;
use super::target_directory;

/// It starts within a second; a loaded machine takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// The line that it prints when it is ready.
const STARTED: &str = "was started successfully on port ";
/// Debian's packages.
const PACKAGES: [&str; 2] = ["chromium", "chromium-driver"];
/// Arguments of each browser: no window, no requests except to the tested pages, and no sandbox, which root
/// cannot use.
const ARGUMENTS: [&str; 10] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
];

/// A ChromeDriver on loopback, which starts browsers. It ends when dropped, and so do browsers that are still
/// running.
#[derive(Debug)]
pub struct ChromeDriver {
    url: String,
    chromium: PathBuf,
    profiles: TempDir,
    /// Dropped before the folder is.
    _process: ServerProcess,
}

impl ChromeDriver {
    /// Starts one, and installs it if needed.
    ///
    /// # Errors
    /// When it cannot be installed or started, or is not ready in time; with the end of its log.
    pub async fn start() -> anyhow::Result<ChromeDriver> {
        let (chromium, driver) = tokio::task::spawn_blocking(Self::install).await??;
        let folder = TempDir::with_prefix("chromedriver-").context("cannot create a folder for its log")?;
        let log = folder.path().join("log.txt");
        let mut command = Command::new(driver);
        // It chooses the port itself.
        command.arg("--port=0");
        let mut process = ServerProcess::start("chromedriver", command, folder)?;
        let deadline = Instant::now() + PATIENCE;
        let port = loop {
            if let Some(port) = said_port(&std::fs::read_to_string(&log).unwrap_or_default()) {
                break port;
            }
            process.check()?;
            if Instant::now() > deadline {
                return Err(process.complaint("was not ready in time"));
            }
            sleep(Duration::from_millis(10)).await;
        };
        let profiles = TempDir::with_prefix("chromium-").context("cannot create a folder for profiles")?;
        Ok(Self { url: format!("http://127.0.0.1:{port}"), chromium, profiles, _process: process })
    }

    /// Installs Chromium and ChromeDriver, if they are missing; returns their paths.
    ///
    /// # Errors
    /// When they are missing, and cannot be installed.
    pub fn install() -> anyhow::Result<(PathBuf, PathBuf)> {
        if let Some(found) = found() {
            return Ok(found);
        }
        let target = target_directory();
        std::fs::create_dir_all(&target)?;
        let lock = File::create(target.join("chromium.lock"))?;
        lock.lock()?;
        // Another process may have been faster.
        if found().is_none() {
            apt().context("there is no Chromium with ChromeDriver: install them (Debian: apt-get install chromium chromium-driver), or name them in CHROMIUM and CHROMEDRIVER")?;
        }
        found().context("Chromium and ChromeDriver were installed, and are not on the PATH")
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The browser's program.
    pub fn chromium(&self) -> &Path {
        &self.chromium
    }

    /// The arguments of a browser, with a profile of its own under this name.
    pub fn arguments(&self, profile: &str) -> Vec<String> {
        let folder = self.profiles.path().join(profile);
        let own = format!("--user-data-dir={}", folder.display());
        ARGUMENTS.iter().map(|argument| (*argument).to_owned()).chain([own]).collect()
    }
}

fn said_port(log: &str) -> Option<u16> {
    let (_, rest) = log.split_once(STARTED)?;
    // The line is complete.
    rest.split_once('\n')?.0.trim_end_matches('.').parse().ok()
}

/// The programs from the environment, or else those on the PATH.
fn found() -> Option<(PathBuf, PathBuf)> {
    Some((program("CHROMIUM", "chromium")?, program("CHROMEDRIVER", "chromedriver")?))
}

fn program(variable: &str, name: &str) -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(variable) {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|place| place.is_file())
}

/// Installs Debian's packages and their dependencies: it needs root.
fn apt() -> anyhow::Result<()> {
    let run = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(["-o", "DPkg::Lock::Timeout=300", "-y", "-q"]).args(arguments);
        command.env("DEBIAN_FRONTEND", "noninteractive");
        let output = command.output().context("cannot run apt-get")?;
        if !output.status.success() {
            let said = [output.stdout, output.stderr].concat();
            bail!("{command:?} failed ({}):\n{}", output.status, String::from_utf8_lossy(&said).trim_end());
        }
        Ok(())
    };
    let install = [&["install", "--no-install-recommends"], PACKAGES.as_slice()].concat();
    if run(&install).is_err() {
        // The package lists may be missing, or older than the mirror.
        run(&["update"])?;
        run(&install)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_known_when_its_whole_line_is_there() {
        let log = "Starting ChromeDriver 1.2\nChromeDriver was started successfully on port 43567.\n";
        assert_eq!(said_port(log), Some(43_567));
        for early in [&log[..log.len() - 3], "Starting"] {
            assert_eq!(said_port(early), None, "{early}");
        }
    }
}
