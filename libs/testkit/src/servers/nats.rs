//! A NATS server with JetStream.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep, timeout};

use super::{Venv, env, ports::free_ports, process::ServerProcess};

/// It starts within a tenth of a second; a loaded machine takes longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The name of its configuration in its folder.
const CONFIG: &str = "nats.conf";
/// The folder of its data.
const STORE: &str = "store";

static OWN: OnceCell<NatsServer> = OnceCell::const_new();

/// A NATS server on loopback with an empty file store; it ends when dropped.
#[derive(Debug)]
pub struct NatsServer {
    url: String,
    monitor: u16,
    process: ServerProcess,
}

/// The address of the NATS server of this run. Tests share it: use names of your own for streams and buckets.
#[derive(Debug, Clone)]
pub struct NatsFixture {
    /// `nats://127.0.0.1:<port>`
    pub url: String,
}

impl NatsServer {
    /// Starts one and waits until it is healthy.
    ///
    /// # Errors
    /// When it cannot be installed or started, or is not ready in time; with the end of its log.
    pub async fn start() -> anyhow::Result<NatsServer> {
        Self::start_with("").await
    }

    /// The same, with more lines of configuration, such as users and permissions.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_with(more: &str) -> anyhow::Result<NatsServer> {
        // Installed here, where that may take long.
        tokio::task::spawn_blocking(Venv::servers).await??;
        let [port, monitor] = free_ports()?;
        let folder = TempDir::with_prefix("nats-").context("cannot create a folder for the server's data")?;
        // Without a listen address it would listen on all of them.
        let text = format!(
            "listen: 127.0.0.1:{port}\nhttp: 127.0.0.1:{monitor}\njetstream {{ store_dir: {:?} }}\n{more}\n",
            folder.path().join(STORE)
        );
        std::fs::write(folder.path().join(CONFIG), text)?;
        let command = command(folder.path())?;
        let process = ServerProcess::start("nats-server", command, folder)?;
        let mut server = NatsServer { url: format!("nats://127.0.0.1:{port}"), monitor, process };
        server.become_ready().await?;
        Ok(server)
    }

    /// Kills it (`kill -9`). Its data stays.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Restarts it at the same address, with its data, after killing it if needed.
    ///
    /// # Errors
    /// When it cannot be started, or is not ready in time; with the end of its log.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        self.process.start_again(command(self.process.folder())?)?;
        self.become_ready().await
    }

    /// Kills it and deletes its data, as if its disk were lost; [`start_again`](Self::start_again) starts it
    /// empty.
    ///
    /// # Errors
    /// When the folder cannot be deleted.
    pub fn wipe(&mut self) -> anyhow::Result<()> {
        self.kill();
        std::fs::remove_dir_all(self.process.folder().join(STORE)).context("cannot delete the server's store")
    }

    async fn become_ready(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !is_healthy(self.monitor).await {
            self.process.check()?;
            if Instant::now() > deadline {
                return Err(self.process.complaint("was not ready in time"));
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Its log so far, which has each subject that a user was refused.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Its process id.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// `nats://127.0.0.1:<port>`
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The address of its monitoring pages, such as `/varz`: `127.0.0.1:<port>`.
    pub fn monitor_address(&self) -> String {
        format!("127.0.0.1:{}", self.monitor)
    }
}

impl NatsFixture {
    /// The server of this run, started if needed.
    ///
    /// # Panics
    /// When it cannot be started.
    pub async fn get() -> NatsFixture {
        if let Ok(url) = std::env::var(env::NATS_URL) {
            return NatsFixture { url };
        }
        let server = OWN.get_or_try_init(NatsServer::start).await;
        let server = server.unwrap_or_else(|error| panic!("no NATS server for this test: {error:#}"));
        NatsFixture { url: server.url.clone() }
    }
}

fn command(folder: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new(Venv::servers()?.program("nats-server"));
    command.arg("-c").arg(folder.join(CONFIG));
    Ok(command)
}

async fn is_healthy(monitor: u16) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect(("127.0.0.1", monitor)).await?;
        stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").await?;
        let mut answer = Vec::new();
        stream.take(4096).read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = timeout(Duration::from_secs(2), ask).await;
    matches!(answer, Ok(Ok(answer)) if answer.starts_with(b"HTTP/1.0 200") || answer.starts_with(b"HTTP/1.1 200"))
}
