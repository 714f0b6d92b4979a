//! Runs a command beside a NATS and an S3 server, which it finds through its environment.

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
        Cli::Run { command } => run(&command).await,
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

async fn run(command: &[String]) -> anyhow::Result<ExitCode> {
    // Caught from the beginning: a signal must not end this process before its servers.
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terminations = signal(SignalKind::terminate())?;
    let (nats, seaweed) = tokio::try_join!(NatsServer::start(), SeaweedServer::start())?;
    let (access_key, secret_key) = seaweed.keys();
    let [program, arguments @ ..] = command else { unreachable!("clap requires a command") };
    let mut child = Command::new(program)
        .args(arguments)
        .env(env::NATS_URL, nats.url())
        .env(env::S3_ENDPOINT, seaweed.endpoint())
        .env(env::S3_ACCESS_KEY, access_key)
        .env(env::S3_SECRET_KEY, secret_key)
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            // The terminal sends Ctrl-C to the command as well: let it end by itself.
            _ = interrupts.recv() => {}
            _ = terminations.recv() => child.start_kill()?,
        }
    };
    Ok(ExitCode::from(code(status)))
}

/// The exit status as a shell would give it.
fn code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
