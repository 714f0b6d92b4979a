//! The other programs: found, or installed below the target directory.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use testkit::servers::{Venv, target_directory};

use crate::process::output_of;

/// A program and which one it is.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) program: PathBuf,
    pub(crate) version: String,
}

/// nginx: the one on the PATH, or Debian's, unpacked but not installed: so it needs no root, and no server is started
/// that listens on all addresses.
pub(crate) fn nginx() -> anyhow::Result<Peer> {
    let unpacked = target_directory().join("nginx-debian");
    let there = on_path("nginx").or_else(|| existing(unpacked.join("usr/sbin/nginx")));
    let program = match there {
        Some(program) => program,
        None => unpack("nginx", &unpacked, "usr/sbin/nginx").context(
            "there is no nginx: install it (Debian: apt-get install nginx), or measure against --source simulated",
        )?,
    };
    let version = output_of(Command::new(&program).arg("-v"))?;
    let version = version.lines().last().unwrap_or_default().replace("nginx version: ", "");
    Ok(Peer { program, version })
}

/// curl, as it is on the PATH.
pub(crate) fn curl() -> anyhow::Result<Peer> {
    let program = on_path("curl").context("there is no curl: install it (Debian: apt-get install curl)")?;
    let version = output_of(Command::new(&program).arg("--version"))?;
    let version = version.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    Ok(Peer { program, version })
}

/// Info-ZIP's `unzip`, as it is on the PATH.
pub(crate) fn unzip() -> anyhow::Result<Peer> {
    let program =
        on_path("unzip").context("there is no unzip: install it (Debian: apt-get install unzip)")?;
    let version = output_of(Command::new(&program).arg("-v"))?;
    let version = version.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    Ok(Peer { program, version })
}

/// `sha256sum` of the GNU core utilities, as it is on the PATH.
pub(crate) fn sha256sum() -> anyhow::Result<Peer> {
    let program = on_path("sha256sum").context("there is no sha256sum: install it (Debian: coreutils)")?;
    let version = output_of(Command::new(&program).arg("--version"))?;
    let version = version.lines().next().unwrap_or_default().to_owned();
    Ok(Peer { program, version })
}

/// `resync-sync` of the Python reference implementation, in a virtual environment.
pub(crate) fn resync() -> anyhow::Result<Peer> {
    resync_program("resync-sync")
}

/// The Python that has the reference implementation as a library.
pub(crate) fn resync_library() -> anyhow::Result<Peer> {
    resync_program("python")
}

fn resync_program(name: &str) -> anyhow::Result<Peer> {
    let venv = Venv::peers()?;
    let ask = "import importlib.metadata, platform; \
        print('resync', importlib.metadata.version('resync'), 'on Python', platform.python_version())";
    let version = output_of(Command::new(venv.program("python")).args(["-c", ask]))?;
    Ok(Peer { program: venv.program(name), version })
}

/// Downloads a Debian package, by apt's own sources and checks, and unpacks it into `folder`.
fn unpack(package: &str, folder: &Path, program: &str) -> anyhow::Result<PathBuf> {
    if on_path("apt-get").is_none() || on_path("dpkg-deb").is_none() {
        bail!("this is no Debian: there is no apt-get or dpkg-deb");
    }
    let parent = folder.parent().context("the target directory has no parent")?;
    fs::create_dir_all(parent)?;
    let fresh = tempfile::TempDir::new_in(parent)?;
    let download =
        || output_of(Command::new("apt-get").args(["download", package]).current_dir(fresh.path()));
    if download().is_err() {
        // The lists of packages may be missing or too old to name what the mirror has.
        output_of(Command::new("apt-get").arg("update"))?;
        download()?;
    }
    let files: Result<Vec<_>, _> =
        fs::read_dir(fresh.path())?.map(|entry| entry.map(|entry| entry.path())).collect();
    let package = files?.into_iter().find(|file| file.extension().is_some_and(|end| end == "deb"));
    let package = package.context("apt-get downloaded no package")?;
    let whole = fresh.path().join("unpacked");
    output_of(Command::new("dpkg-deb").arg("-x").args([&package, &whole]))?;
    // Only what is whole gets the name that later runs look for.
    fs::rename(&whole, folder)
        .with_context(|| format!("cannot put the package into {}", folder.display()))?;
    existing(folder.join(program)).with_context(|| format!("the package holds no {program}"))
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    // Where Debian keeps servers is on root's path only.
    let folders = env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.filter(|folder| folder.is_absolute()).find_map(|folder| existing(folder.join(program)))
}

fn existing(program: PathBuf) -> Option<PathBuf> {
    program.is_file().then_some(program)
}
