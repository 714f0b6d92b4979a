//! The other programs: found, or installed below the target directory.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use testkit::servers::{Venv, target_directory};

use crate::process::{CommandLine, output_of};

/// A program and its version.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) program: PathBuf,
    /// Variables for its environment.
    environment: Vec<(&'static str, String)>,
    pub(crate) version: String,
}

impl Peer {
    /// The program, without arguments.
    pub(crate) fn command(&self) -> CommandLine {
        CommandLine::new(&self.program).envs(&self.environment)
    }
}

/// nginx, unpacked and not installed by Debian: so it needs no root, and no server is started that listens on
/// all addresses.
pub(crate) fn nginx() -> anyhow::Result<Peer> {
    let there = debian("nginx", "nginx", "-v").context("or measure against --source simulated")?;
    let version = there.version.lines().last().unwrap_or_default().replace("nginx version: ", "");
    Ok(Peer { version, ..there })
}

/// curl.
pub(crate) fn curl() -> anyhow::Result<Peer> {
    debian("curl", "curl", "--version").map(|peer| peer.called_by_words(2))
}

/// aria2c.
pub(crate) fn aria2c() -> anyhow::Result<Peer> {
    debian("aria2", "aria2c", "--version").map(|peer| peer.called_by_words(3))
}

/// GNU wget.
pub(crate) fn wget() -> anyhow::Result<Peer> {
    debian("wget", "wget", "--version").map(|peer| peer.called_by_words(3))
}

/// GNU Wget2.
pub(crate) fn wget2() -> anyhow::Result<Peer> {
    debian("wget2", "wget2", "--version").map(|peer| peer.called_by_words(3))
}

/// rclone.
pub(crate) fn rclone() -> anyhow::Result<Peer> {
    debian("rclone", "rclone", "version").map(|peer| peer.called_by_words(2))
}

/// Info-ZIP's `unzip`.
pub(crate) fn unzip() -> anyhow::Result<Peer> {
    debian("unzip", "unzip", "-v").map(|peer| peer.called_by_words(2))
}

/// `sha256sum` of the GNU core utilities.
pub(crate) fn sha256sum() -> anyhow::Result<Peer> {
    debian("coreutils", "sha256sum", "--version").map(|peer| peer.called_by_words(4))
}

/// `resync-sync` of the Python reference implementation, in a virtual environment.
pub(crate) fn resync() -> anyhow::Result<Peer> {
    resync_program("resync-sync")
}

/// `resync-build` of the Python reference implementation.
pub(crate) fn resync_build() -> anyhow::Result<Peer> {
    resync_program("resync-build")
}

/// The Python that has the reference implementation as a library.
pub(crate) fn resync_library() -> anyhow::Result<Peer> {
    resync_program("python")
}

/// The Python that has the libraries `sickle` and `oaipmh-scythe`, in a virtual environment.
pub(crate) fn oai_libraries() -> anyhow::Result<Peer> {
    let program = Venv::oai()?.program("python");
    let ask = "from importlib.metadata import version; import platform; \
        print('sickle', version('sickle'), 'and oaipmh-scythe', version('oaipmh-scythe'), \
        'on Python', platform.python_version())";
    let version = output_of(Command::new(&program).args(["-c", ask]))?;
    Ok(Peer { program, environment: Vec::new(), version })
}

fn resync_program(name: &str) -> anyhow::Result<Peer> {
    let venv = Venv::peers()?;
    let ask = "import importlib.metadata, platform; \
        print('resync', importlib.metadata.version('resync'), 'on Python', platform.python_version())";
    let version = output_of(Command::new(venv.program("python")).args(["-c", ask]))?;
    Ok(Peer { program: venv.program(name), environment: Vec::new(), version })
}

impl Peer {
    /// Named by the first words of its version text.
    fn called_by_words(mut self, words: usize) -> Self {
        let first = self.version.lines().next().unwrap_or_default();
        self.version = first.split_whitespace().take(words).collect::<Vec<_>>().join(" ");
        self
    }
}

/// A program: the one on the PATH, or that of Debian's `package`, unpacked but not installed. The whole
/// version text is kept.
fn debian(package: &str, program: &str, ask_version: &str) -> anyhow::Result<Peer> {
    let unpacked = target_directory().join(format!("{package}-debian"));
    let inside =
        || ["usr/bin", "usr/sbin"].iter().find_map(|folder| existing(unpacked.join(folder).join(program)));
    let (program, environment) = match on_path(program) {
        Some(program) => (program, Vec::new()),
        None => {
            if inside().is_none() {
                unpack(package, &unpacked).with_context(|| {
                    format!("there is no {program}: install it (Debian: apt-get install {package})")
                })?;
            }
            let program =
                inside().with_context(|| format!("Debian's package {package} holds no {program}"))?;
            (program, vec![("LD_LIBRARY_PATH", libraries(&unpacked)?)])
        }
    };
    let version = output_of(Command::new(&program).arg(ask_version).envs(environment.iter().cloned()))?;
    Ok(Peer { program, environment, version })
}

/// Downloads a Debian package with its missing dependencies, by apt's own sources and checks, and unpacks all
/// of it into `folder`.
fn unpack(package: &str, folder: &Path) -> anyhow::Result<()> {
    if on_path("apt-get").is_none() || on_path("dpkg-deb").is_none() {
        bail!("this is no Debian: there is no apt-get or dpkg-deb");
    }
    let parent = folder.parent().context("the target directory has no parent")?;
    fs::create_dir_all(parent)?;
    let fresh = tempfile::TempDir::new_in(parent)?;
    let download = || {
        let mut simulation = Command::new("apt-get");
        simulation.args(["install", "--simulate", "--no-install-recommends", package]);
        let packages = to_be_installed(&output_of(&mut simulation)?);
        output_of(Command::new("apt-get").arg("download").args(packages).current_dir(fresh.path()))
    };
    if download().is_err() {
        // The package lists may be missing, or older than the mirror.
        output_of(Command::new("apt-get").arg("update"))?;
        download()?;
    }
    let files: Result<Vec<_>, _> =
        fs::read_dir(fresh.path())?.map(|entry| entry.map(|entry| entry.path())).collect();
    let whole = fresh.path().join("unpacked");
    for package in files?.iter().filter(|file| file.extension().is_some_and(|end| end == "deb")) {
        output_of(Command::new("dpkg-deb").arg("-x").args([package, &whole]))?;
    }
    // Only a complete folder gets the name that later runs look for.
    fs::rename(&whole, folder).with_context(|| format!("cannot put the package into {}", folder.display()))
}

/// The packages of `Inst name (version …)` lines in apt's simulation.
fn to_be_installed(simulation: &str) -> Vec<String> {
    let names = simulation.lines().filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next());
    names.map(str::to_owned).collect()
}

/// The library path of unpacked programs: the folders of `usr/lib`, which are named after architectures.
fn libraries(unpacked: &Path) -> anyhow::Result<String> {
    let folder = unpacked.join("usr/lib");
    let mut folders = vec![folder.display().to_string()];
    for entry in fs::read_dir(&folder).into_iter().flatten() {
        folders.push(entry?.path().display().to_string());
    }
    Ok(folders.join(":"))
}

/// A program of this name on the PATH, or in Debian's folder of servers.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    // Debian's folder of servers is on root's PATH only.
    let folders = env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.filter(|folder| folder.is_absolute()).find_map(|folder| existing(folder.join(program)))
}

fn existing(program: PathBuf) -> Option<PathBuf> {
    program.is_file().then_some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_would_be_installed_is_downloaded() {
        let simulation = "The following NEW packages will be installed:\n  aria2 libaria2-0\n\
            Inst libaria2-0 (1.36.0-1 Debian:12 [amd64])\nInst aria2 (1.36.0-1 Debian:12 [amd64])\n\
            Conf libaria2-0 (1.36.0-1 Debian:12 [amd64])\n";
        assert_eq!(to_be_installed(simulation), ["libaria2-0", "aria2"]);
    }

    #[test]
    fn libraries_lie_in_usr_lib_and_in_the_folders_of_architectures() {
        let folder = tempfile::TempDir::new().unwrap();
        fs::create_dir_all(folder.path().join("usr/lib/x86_64-linux-gnu")).unwrap();
        let lib = folder.path().join("usr/lib").display().to_string();
        assert_eq!(libraries(folder.path()).unwrap(), format!("{lib}:{lib}/x86_64-linux-gnu"));
    }
}
