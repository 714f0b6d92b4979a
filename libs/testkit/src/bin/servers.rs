//! Runs a command with a NATS and an S3 server, whose addresses are in its environment.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

use anyhow::Context as _;
use clap::Parser;
use testkit::servers::{ChromeDriver, NatsServer, SeaweedServer, Venv, env};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// The servers that the tests of Thresher need.
#[derive(Debug, Parser)]
#[command(name = "servers")]
enum Cli {
    /// Installs the servers, the peers and what checks `deploy/` and the API under the target directory, unless they are there already.
    Install,
    /// Installs Debian's Chromium and ChromeDriver on this machine, which takes root, unless they are there already.
    InstallBrowser,
    /// Starts both servers, runs a command with their addresses in its environment, kills them, and
    /// ends with the command's exit status.
    Run {
        /// Lines that are added to the configuration of NATS: who may connect, and may do what.
        #[arg(long, value_name = "FILE")]
        nats_config: Option<PathBuf>,
        /// The command and its arguments.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let done = match Cli::parse() {
        Cli::Install => install().await,
        Cli::InstallBrowser => install_browser().await,
        Cli::Run { nats_config, command } => run(nats_config.as_deref(), &command).await,
    };
    done.unwrap_or_else(|error| {
        eprintln!("servers: {error:#}");
        ExitCode::from(2)
    })
}

async fn install() -> anyhow::Result<ExitCode> {
    let venvs = tokio::task::spawn_blocking(|| {
        anyhow::Ok([
            Venv::servers()?,
            Venv::peers()?,
            Venv::deploy()?,
            Venv::schemathesis()?,
            Venv::ldn()?,
            Venv::websub()?,
            Venv::oai()?,
        ])
    })
    .await??;
    for venv in venvs {
        println!("installed: {}", venv.folder().display());
    }
    Ok(ExitCode::SUCCESS)
}

async fn install_browser() -> anyhow::Result<ExitCode> {
    let (chromium, driver) = tokio::task::spawn_blocking(ChromeDriver::install).await??;
    println!("installed: {} and {}", chromium.display(), driver.display());
    Ok(ExitCode::SUCCESS)
}

async fn run(nats_config: Option<&Path>, command: &[String]) -> anyhow::Result<ExitCode> {
    // Installed first: a signal must not end this process before its servers.
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    let more = nats_config
        .map(|path| std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display())));
    let more = more.transpose()?.unwrap_or_default();
    let (nats, seaweed) = tokio::try_join!(NatsServer::start_with(&more), SeaweedServer::start())?;
    let ((access_key, secret_key), (reading_key, reading_secret)) = (seaweed.keys(), seaweed.reading_keys());
    let [program, arguments @ ..] = command else { unreachable!("clap requires a command") };
    let mut child = Command::new(program)
        .args(arguments)
        .env(env::NATS_URL, nats.url())
        .env(env::S3_ENDPOINT, seaweed.endpoint())
        .env(env::S3_ACCESS_KEY, access_key)
        .env(env::S3_SECRET_KEY, secret_key)
        .env(env::S3_READING_ACCESS_KEY, reading_key)
        .env(env::S3_READING_SECRET_KEY, reading_secret)
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            // The terminal sends Ctrl-C to the command as well: it ends by itself.
            _ = interrupts.recv() => {}
            _ = terminations.recv() => child.start_kill()?,
        }
    };
    Ok(ExitCode::from(code(status)))
}

/// The exit status in a shell's terms.
fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
