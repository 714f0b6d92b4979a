//! Inotify. A folder is watched by its descriptor, so no symbolic link leads the watch elsewhere.

use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::Event;
use super::file_systems::tells_all;
use crate::files::beneath::identity;
use crate::unheard::Unheard;

/// What is told of each folder. Writes are told before the file is closed, since some files never are.
const WATCHED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);
/// How much is read at a time: thousands of events.
const PIECE_BYTES: usize = 256 * 1024;

/// A queue of events.
#[derive(Debug)]
pub(in crate::files) struct Kernel(AsyncFd<OwnedFd>);

impl Kernel {
    /// A queue without folders. It needs a runtime.
    pub(in crate::files) fn begin() -> Result<Self, Unheard> {
        let queue =
            inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(|error| match error {
                Errno::MFILE => Unheard::QueueLimit,
                other => failed(other),
            })?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe for descriptors that may be closed; this one is owned"
        )]
        let queue = AsyncFd::with_interest(queue, Interest::READABLE);
        queue.map(Self).map_err(Unheard::failed)
    }

    /// Watches a folder. One that is watched already keeps its watch. `known` are the file systems so far.
    pub(in crate::files) fn add(
        &self,
        folder: BorrowedFd<'_>,
        known: &mut BTreeSet<u64>,
    ) -> Result<i32, Unheard> {
        let (file_system, _) = identity(&rustix::fs::fstat(folder).map_err(failed)?);
        if known.insert(file_system) && !tells_all(folder).map_err(failed)? {
            return Err(Unheard::NetworkFileSystem);
        }
        let path = format!("/proc/self/fd/{}", folder.as_raw_fd());
        inotify::add_watch(self.0.get_ref(), path, WATCHED).map_err(of_watch)
    }

    /// Watches a folder no more.
    pub(in crate::files) fn remove(&self, watch: i32) {
        // It may have ended by itself.
        let _ = inotify::remove_watch(self.0.get_ref(), watch);
    }

    /// Waits until something is told.
    pub(in crate::files) async fn wait(&self) -> io::Result<()> {
        self.0.readable().await.map(drop)
    }

    /// Reads what is told by now, or a part of it.
    pub(in crate::files) fn read(&self, mut each: impl FnMut(Event<'_>)) -> io::Result<()> {
        let read = self.0.try_io(Interest::READABLE, |queue| {
            let mut piece = vec![MaybeUninit::uninit(); PIECE_BYTES];
            let mut reader = Reader::new(queue, &mut piece);
            loop {
                let told = reader.next()?;
                let name = told.file_name().map(|name| name.to_bytes());
                if let Some(event) = event(told.wd(), told.events(), name) {
                    each(event);
                }
                if reader.is_buffer_empty() {
                    return Ok(());
                }
            }
        });
        match read {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(())
            }
            read => read,
        }
    }
}

/// What is told, if it may concern a file. Permissions and times of a folder do not: one that could not be read is
/// looked at again in any case.
fn event<'a>(watch: i32, told: ReadFlags, name: Option<&'a [u8]>) -> Option<Event<'a>> {
    if told.contains(ReadFlags::QUEUE_OVERFLOW) {
        return Some(Event::Overflow);
    }
    if told.contains(ReadFlags::UNMOUNT) {
        return Some(Event::Unmounted);
    }
    if told.contains(ReadFlags::IGNORED) {
        return Some(Event::Forgotten(watch));
    }
    if told.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF) {
        return Some(Event::Gone(watch));
    }
    let name = name?;
    let is_folder = told.contains(ReadFlags::ISDIR);
    if is_folder && told.contains(ReadFlags::MOVED_FROM) {
        return Some(Event::MovedAway(watch, name));
    }
    let is_of_folder = is_folder && told.contains(ReadFlags::ATTRIB);
    (!is_of_folder).then_some(Event::Changed(watch, name))
}

fn of_watch(error: Errno) -> Unheard {
    match error {
        Errno::NOSPC => Unheard::WatchLimit,
        // The folder itself is open, so only the way to it by its descriptor can be missing.
        Errno::NOENT => Unheard::Failed("/proc is not mounted".to_owned()),
        other => failed(other),
    }
}

fn failed(error: Errno) -> Unheard {
    Unheard::failed(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_concern_a_file_is_an_event() {
        let name = &b"a"[..];
        let told = |told: ReadFlags| event(7, told, Some(name));
        let of_folder = |told: ReadFlags| event(7, told | ReadFlags::ISDIR, Some(name));
        let changed = Some(Event::Changed(7, name));
        for flag in [ReadFlags::CREATE, ReadFlags::MODIFY, ReadFlags::MOVED_FROM, ReadFlags::ATTRIB] {
            assert_eq!(told(flag), changed, "{flag:?}");
        }
        assert_eq!(of_folder(ReadFlags::MOVED_FROM), Some(Event::MovedAway(7, name)));
        assert_eq!((of_folder(ReadFlags::MOVED_TO), of_folder(ReadFlags::ATTRIB)), (changed, None));
        assert_eq!(event(7, ReadFlags::ATTRIB | ReadFlags::ISDIR, None), None);
        assert_eq!(event(7, ReadFlags::DELETE_SELF, None), Some(Event::Gone(7)));
        assert_eq!(event(7, ReadFlags::IGNORED, None), Some(Event::Forgotten(7)));
        assert_eq!(event(7, ReadFlags::UNMOUNT, None), Some(Event::Unmounted));
        assert_eq!(event(-1, ReadFlags::QUEUE_OVERFLOW, None), Some(Event::Overflow));
    }

    #[test]
    fn limits_of_the_kernel_are_told_by_name() {
        assert_eq!(of_watch(Errno::NOSPC), Unheard::WatchLimit);
        assert!(matches!(of_watch(Errno::NOENT), Unheard::Failed(why) if why.contains("/proc")));
        assert!(matches!(of_watch(Errno::ACCESS), Unheard::Failed(_)));
    }
}
