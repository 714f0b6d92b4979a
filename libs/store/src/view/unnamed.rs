//! Unnamed files (`O_TMPFILE`) that get a name when they are complete. Linking them is less work than a
//! rename, and a killed process leaves no orphan.

use std::fs::File;
use std::io;
use std::path::Path;

#[cfg(target_os = "linux")]
pub(super) use linux::Naming;
#[cfg(not(target_os = "linux"))]
pub(super) use others::Naming;

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;

    use rustix::fs::{AtFlags, CWD, OFlags, linkat};

    use super::{File, Path, io};
    use crate::temporary;

    /// How an unnamed file gets a name.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(in crate::view) enum Naming {
        /// From the open file. Linux before 6.10 permits that to few processes only.
        ByFile,
        /// From its link below `/proc`, where that is mounted.
        ByProc,
    }

    impl Naming {
        /// The supported way for files in `directory`, found by trying; none where the file system has no
        /// unnamed files.
        pub(in crate::view) fn find(directory: &Path) -> Option<Self> {
            [Self::ByFile, Self::ByProc].into_iter().find(|way| {
                let Ok(file) = way.create(directory) else { return false };
                temporary::name_in(directory, file, |file, path| way.link(file, path)).is_ok()
            })
        }

        /// An unnamed file (`O_TMPFILE`) on the file system of `directory`. All users may read it, as far as
        /// the process's umask permits.
        pub(in crate::view) fn create(self, directory: &Path) -> io::Result<File> {
            let mut options = std::fs::OpenOptions::new();
            options.write(true).mode(0o666).custom_flags(OFlags::TMPFILE.bits().cast_signed());
            options.open(directory)
        }

        /// Names a file, unless the name is taken.
        pub(in crate::view) fn link(self, file: &File, to: &Path) -> io::Result<()> {
            match self {
                Self::ByFile => linkat(file, "", CWD, to, AtFlags::EMPTY_PATH)?,
                Self::ByProc => {
                    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
                    linkat(CWD, link, CWD, to, AtFlags::SYMLINK_FOLLOW)?;
                }
            }
            Ok(())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod others {
    use super::{File, Path, io};

    /// Not supported on this system.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(in crate::view) enum Naming {}

    impl Naming {
        pub(in crate::view) fn find(_: &Path) -> Option<Self> {
            None
        }

        pub(in crate::view) fn create(self, _: &Path) -> io::Result<File> {
            match self {}
        }

        pub(in crate::view) fn link(self, _: &File, _: &Path) -> io::Result<()> {
            match self {}
        }
    }
}
