//! Why changes of a directory are not heard of.

use std::fmt;
use std::io;

/// Why changes of a directory are not heard of from the kernel, or some were not. Then everything is scanned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unheard {
    /// This system tells of none.
    NoKernel,
    /// There are more folders than are watched.
    TooManyFolders,
    /// The system has as many watches as it may have.
    WatchLimit,
    /// The system has as many queues of events as it may have.
    QueueLimit,
    /// Others write there whom the kernel does not see.
    NetworkFileSystem,
    /// More events came than the kernel keeps.
    Overflow,
    /// More paths changed than are noted.
    TooManyChanges,
    /// The directory, or a file system in it, was removed or moved.
    Gone,
    /// The system refuses.
    Failed(String),
}

impl Unheard {
    pub(crate) fn failed(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }

    /// Whether it is over with the next scan of everything.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Overflow | Self::TooManyChanges | Self::Gone)
    }
}

impl fmt::Display for Unheard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoKernel => "this system does not tell of changes; nothing is to be done",
            Self::TooManyFolders => {
                "the directory has more folders than are watched; nothing is to be done, or publish a part of it"
            }
            Self::WatchLimit => {
                "the system allows no further watches; raise fs.inotify.max_user_watches above the number of folders"
            }
            Self::QueueLimit => {
                "the system allows no further watchers; raise fs.inotify.max_user_instances, or end other programs \
                 that watch"
            }
            Self::NetworkFileSystem => {
                "part of the directory is on a network file system, whose changes by other hosts are not reported; \
                 publish on the host that has the files, or accept the scans"
            }
            Self::Overflow => {
                "more changes came at once than the system keeps; raise fs.inotify.max_queued_events if that is often \
                 so"
            }
            Self::TooManyChanges => "more paths changed at once than are noted; nothing is to be done",
            Self::Gone => {
                "the directory, or a file system in it, was removed, moved or unmounted; see whether that is right"
            }
            Self::Failed(why) => return write!(f, "the system refuses to tell of changes: {why}; repair that"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_says_what_to_do() {
        let all = [
            Unheard::NoKernel,
            Unheard::TooManyFolders,
            Unheard::WatchLimit,
            Unheard::QueueLimit,
            Unheard::NetworkFileSystem,
            Unheard::Overflow,
            Unheard::TooManyChanges,
            Unheard::Gone,
            Unheard::Failed("it is broken".to_owned()),
        ];
        for why in all {
            assert!(why.to_string().contains("; "), "{why}");
        }
    }
}
