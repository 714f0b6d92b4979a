//! Completions and manual pages are generated from the command line.

use crate::common::{Run, thresher};

#[test]
fn every_shell_has_its_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = Run::of(thresher().args(["completions", shell])).exits(0);
        assert!(run.stdout.contains("max-deletes") && run.stdout.contains("scrub"), "{shell}");
    }
    Run::of(thresher().args(["completions", "cobol"])).exits(2);
}

#[test]
fn every_command_has_its_manual_page() {
    let page = Run::of(thresher().arg("man")).exits(0);
    assert!(page.stdout.starts_with(".ie") || page.stdout.contains(".TH thresher 1"), "{page}");
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("man1");
    Run::of(thresher().arg("man").arg(&directory)).exits(0);
    for (page, says) in
        [("thresher.1", "sync"), ("thresher-sync.1", "keep"), ("thresher-source-add.1", "cron")]
    {
        let text = std::fs::read_to_string(directory.join(page)).unwrap();
        assert!(text.contains(says), "{page}");
    }
}
