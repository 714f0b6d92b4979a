//! Files that have no name until they are whole. Where the system has them, a file comes to its place by getting its first name there,
//! which is less work than to change a name that it had, and what a killed process was writing is gone with it.

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

    /// How a file without a name gets one.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(in crate::view) enum Naming {
        /// Asked of the open file. Older systems than Linux 6.10 let only few do that.
        ByFile,
        /// Asked of the link to it below `/proc`, where that is mounted.
        ByProc,
    }

    impl Naming {
        /// Which way there is for files in `directory`, found out by trying; none where the file system knows no such files.
        pub(in crate::view) fn find(directory: &Path) -> Option<Self> {
            [Self::ByFile, Self::ByProc].into_iter().find(|way| {
                let Ok(file) = way.create(directory) else { return false };
                temporary::name_in(directory, file, |file, path| way.link(file, path)).is_ok()
            })
        }

        /// A file without a name on the file system of `directory`. Anybody may read it, as far as the process's umask lets them.
        pub(in crate::view) fn create(self, directory: &Path) -> io::Result<File> {
            let mut options = std::fs::OpenOptions::new();
            options.write(true).mode(0o666).custom_flags(OFlags::TMPFILE.bits().cast_signed());
            options.open(directory)
        }

        /// Gives a file its name, unless something has that name already.
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

    /// There is none.
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
