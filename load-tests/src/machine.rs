//! The machine that the figures come from.

use std::fs;
use std::path::Path;

use serde::Serialize;

/// The machine, as far as it matters for the figures.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Machine {
    /// The maker's name of the processor.
    pub(crate) processor: String,
    /// Processors available to this program.
    pub(crate) cores: usize,
    /// Total memory, in MiB.
    pub(crate) memory_mib: u64,
    /// The version of Linux.
    pub(crate) kernel: String,
    /// File system of the working directory: kind and options.
    pub(crate) file_system: String,
    /// Load averages of 1, 5 and 15 minutes before the start.
    pub(crate) load_before: String,
}

impl Machine {
    /// This machine, with the file system of `folder`.
    pub(crate) fn here(folder: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let load = read("/proc/loadavg");
        let unknown = || "unknown".to_owned();
        Self {
            processor: field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: memory_mib(&read("/proc/meminfo")).unwrap_or_default(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            file_system: file_system(&read("/proc/self/mountinfo"), folder).unwrap_or_else(unknown),
            load_before: load.split_whitespace().take(3).collect::<Vec<_>>().join(" "),
        }
    }
}

/// Unused memory in bytes, not even used as page cache; none where the kernel does not report it.
pub(crate) fn free_memory() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    kib(&meminfo, "MemFree").unwrap_or_default() * 1024
}

/// Whether the files below `folder` are in memory (tmpfs).
pub(crate) fn lies_in_memory(folder: &Path) -> bool {
    let mountinfo = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    file_system(&mountinfo, folder).is_some_and(|kind| kind.starts_with("tmpfs"))
}

fn field(text: &str, name: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn memory_mib(meminfo: &str) -> Option<u64> {
    Some(kib(meminfo, "MemTotal")? / 1024)
}

fn kib(meminfo: &str, name: &str) -> Option<u64> {
    field(meminfo, name)?.strip_suffix(" kB")?.parse().ok()
}

/// The line of the deepest mount point above `folder`: `36 35 98:0 / /mnt rw,noatime - ext4 /dev/root
/// rw,errors=continue`.
fn file_system(mountinfo: &str, folder: &Path) -> Option<String> {
    let mounts = mountinfo.lines().filter_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(4);
        let point = mount.next()?;
        let options = mount.next()?;
        folder.starts_with(point).then(|| (point.len(), kind.split(' ').next().unwrap_or_default(), options))
    });
    // Of several on one point the last one hides the others.
    mounts.max_by_key(|(depth, ..)| *depth).map(|(_, kind, options)| format!("{kind} ({options})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
        30 21 0:5 / /dev rw,nosuid shared:2 - devtmpfs udev rw\n\
        31 30 0:24 / /dev/shm rw,nosuid,nodev shared:3 - tmpfs tmpfs rw\n";

    #[test]
    fn the_deepest_mount_point_counts() {
        assert_eq!(file_system(MOUNTS, Path::new("/dev/shm/x")).unwrap(), "tmpfs (rw,nosuid,nodev)");
        assert_eq!(file_system(MOUNTS, Path::new("/home/x")).unwrap(), "ext4 (rw,relatime)");
    }

    #[test]
    fn a_mount_point_is_no_prefix_of_a_longer_name() {
        assert_eq!(file_system(MOUNTS, Path::new("/device")).unwrap(), "ext4 (rw,relatime)");
    }

    #[test]
    fn memory_is_told_in_mib() {
        assert_eq!(memory_mib("MemTotal:       2048000 kB\nMemFree: 1 kB\n"), Some(2000));
    }
}
