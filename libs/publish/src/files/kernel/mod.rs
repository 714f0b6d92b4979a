//! What the kernel tells of changes in folders: by inotify where there is one, else nothing.

#[cfg(target_os = "linux")]
mod file_systems;
#[cfg(target_os = "linux")]
mod inotify;
#[cfg(not(target_os = "linux"))]
mod none;

#[cfg(target_os = "linux")]
pub(super) use self::inotify::Kernel;
#[cfg(not(target_os = "linux"))]
pub(super) use self::none::Kernel;

/// Something that the kernel tells. A folder is named by its watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nothing is told there"))]
pub(super) enum Event<'a> {
    /// Something has changed at a name in a folder.
    Changed(i32, &'a [u8]),
    /// A folder was moved away from a name in a folder.
    MovedAway(i32, &'a [u8]),
    /// A folder itself was removed, or moved.
    Gone(i32),
    /// A folder is watched no more.
    Forgotten(i32),
    /// A file system is there no more.
    Unmounted,
    /// Events were lost.
    Overflow,
}
