//! PyPI's `resync-sync` follows a publication.

use std::path::Path;
use std::process::Command;

use simulated_source::{Changes, SourceSpec};
use tempfile::TempDir;
use testkit::servers::Venv;

use super::Files;
use crate::common::{Destination, source};

/// Runs `resync-sync` in a folder, and returns what it says.
#[track_caller]
pub(super) fn resync(folder: &Path, base: &str, options: &[&str]) -> String {
    let mut command = Command::new(Venv::peers().expect("a virtual environment").program("resync-sync"));
    command.current_dir(folder).args(options).arg("--verbose");
    let output =
        command.arg(format!("{}=into", base.trim_end_matches('/'))).output().expect("it was installed");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
    said
}

#[tokio::test]
async fn acc_2_resync_sync_is_in_sync_after_a_baseline_and_after_changes() {
    let source = source(SourceSpec::default().resources(40)).await;
    let copy = Destination::directory();
    copy.sync(&source.well_known()).exits(0);
    let files = Files::start();
    files.publish(&copy).exits(0);
    let folder = TempDir::with_prefix("resync-").unwrap();
    resync(folder.path(), &files.base, &["-b", "--hash", "sha-256"]);
    let said = resync(folder.path(), &files.base, &["-a", "--hash", "sha-256"]);
    assert!(said.contains("IN SYNC") && !said.contains("NOT IN SYNC"), "{said}");

    source.change(Changes { create: 3, update: 5, delete: 2 });
    copy.sync(&source.well_known()).exits(0);
    files.publish(&copy).exits(0);
    let said = resync(folder.path(), &files.base, &["-a", "--hash", "sha-256"]);
    assert!(said.contains("NOT IN SYNC"), "{said}");
    // It reads Change Lists, and no index of them. With digests, it fails at any Change List.
    let lists = std::fs::read_dir(files.public().join("changelist")).unwrap();
    let lists: Vec<_> = lists.map(|list| list.unwrap().file_name().into_string().unwrap()).collect();
    let [open] = &lists[..] else { panic!("one list is open, and none is closed yet: {lists:?}") };
    let open = format!("{}changelist/{open}", files.base);
    resync(folder.path(), &files.base, &["-i", "--delete", "--changelist-uri", &open]);
    let said = resync(folder.path(), &files.base, &["-a", "--hash", "sha-256"]);
    assert!(said.contains("IN SYNC") && !said.contains("NOT IN SYNC"), "{said}");
}
