//! A full disk.

use std::process::Command;

use simulated_source::{Changes, SimulatedSource, Size};
use tempfile::TempDir;

use crate::bad_input::{AGAIN, small};
use crate::common::{Destination, View, source};

/// A file system of its own in memory. It is unmounted at the end.
struct Tmpfs(TempDir);

impl Tmpfs {
    /// None, with the reason on standard error, where mounting is not allowed.
    fn mount(size: &str) -> Option<Self> {
        let folder = TempDir::with_prefix("thresher-tmpfs-").unwrap();
        let options = format!("size={size}");
        let mut mount = Command::new("mount");
        let output = mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(folder.path()).output();
        match output {
            Ok(output) if output.status.success() => Some(Self(folder)),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                eprintln!(
                    "SKIPPED: a full disk needs a small file system, which may not be mounted here: {why}"
                );
                None
            }
            Err(error) => {
                eprintln!(
                    "SKIPPED: a full disk needs a small file system, and there is no mount command: {error}"
                );
                None
            }
        }
    }

    fn resize(&self, size: &str) {
        let options = format!("remount,size={size}");
        let status = Command::new("mount").args(["-o", &options]).arg(self.0.path()).status().unwrap();
        assert!(status.success());
    }

    /// Fills the disk except for this many bytes, with a file beside the harvest.
    fn fill_but(&self, left: u64) {
        let output = Command::new("df").args(["--output=avail", "-B1"]).arg(self.0.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let free: u64 = text.lines().nth(1).unwrap().trim().parse().unwrap();
        let block = vec![0; usize::try_from(free.saturating_sub(left)).unwrap()];
        std::fs::write(self.0.path().join("filler"), block).unwrap();
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Lazily, so that it is unmounted even while a process uses it.
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

const DISK: &[&str] = &["full", "no space"];

#[tokio::test]
async fn a_disk_too_small_for_a_harvest_is_named_and_with_more_room_it_goes_on() {
    let Some(disk) = Tmpfs::mount("4m") else { return };
    let source = source(small(400).size(Size::Fixed(16 * 1024))).await;
    let copy = Destination::at(&disk.0.path().join("copy"));
    let run = copy.sync(&source.well_known()).exits(3).complains(&[&copy.into], DISK).complains(&[], AGAIN);
    assert_eq!(run.stdout, "", "{run}");
    each_file_is_a_version_of_its_resource(&source, &copy, &View::new());
    disk.resize("64m");
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
}

#[tokio::test]
async fn a_disk_that_fills_up_while_changes_come_loses_nothing_that_was_held() {
    let Some(disk) = Tmpfs::mount("48m") else { return };
    let source = source(small(200).size(Size::Fixed(16 * 1024))).await;
    let copy = Destination::at(&disk.0.path().join("copy"));
    copy.sync(&source.well_known()).exits(0);
    let before = copy.view();
    source.change(Changes { create: 0, update: 150, delete: 0 });
    disk.fill_but(1024 * 1024);
    copy.sync(&source.well_known()).exits(3).complains(&[&copy.into], DISK).complains(&[], AGAIN);
    each_file_is_a_version_of_its_resource(&source, &copy, &before);
    assert_eq!(copy.view().len(), before.len(), "no file is missing");

    std::fs::remove_file(disk.0.path().join("filler")).unwrap();
    let held = copy.ls();
    assert_eq!(held.len(), 200);
    assert!(held.values().all(|held| held.sha256.is_some()), "a version of each is held all the time");
    copy.sync(&source.well_known()).exits(0);
    copy.mirrors(&source);
}

/// Each file has the bytes that the Source has now, or those stored before.
#[track_caller]
fn each_file_is_a_version_of_its_resource(source: &SimulatedSource, copy: &Destination, before: &View) {
    let now: Vec<Vec<u8>> = source.expected().filter_map(|now| source.body(&now.uri)).collect();
    for (name, bytes) in copy.view() {
        assert!(before.get(&name) == Some(&bytes) || now.contains(&bytes), "{name} is half written");
    }
}
