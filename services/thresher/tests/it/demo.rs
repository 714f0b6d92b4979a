//! `demo` shows the main job without a server and without a network.

use std::path::Path;
use std::process::Command;

use crate::common::{Destination, Run, thresher};

/// The output of a run, and the directory that it names.
#[track_caller]
fn told(run: &Run) -> (String, String) {
    let words = format!("{}{}", run.stdout, run.stderr);
    let at = words.split_whitespace().map(|word| word.trim_end_matches(['.', ',', ';', ':']));
    let place =
        at.filter(|word| word.starts_with('/')).find(|word| Path::new(word).join(".thresher").is_dir());
    let place = place.unwrap_or_else(|| panic!("no directory of a harvest is named: {run}"));
    (words.clone(), place.to_owned())
}

#[test]
fn the_demo_says_in_plain_words_what_happened_and_where_it_lies() {
    let folder = tempfile::TempDir::new().unwrap();
    // It needs no proxy and no server: there is no network beyond the machine itself.
    let mut command: Command = thresher();
    let run = Run::of(command.args(["demo", "--resources", "200"]).env("TMPDIR", folder.path())).exits(0);
    let (words, place) = told(&run);
    for word in
        ["200", "updated", "created", "deleted", "problem", "digest", "thresher ls", "thresher explain"]
    {
        assert!(words.contains(word), "{word:?} is part of the story: {run}");
    }
    assert!(
        Path::new(&place).starts_with(folder.path()),
        "a new directory among the temporary ones: {place}"
    );
    let copy = Destination::at(Path::new(&place));
    assert_eq!(copy.present().len(), 205, "200 and 10 created, but for 5 deleted");
    assert_eq!(copy.view().len(), 205);

    // The commands that it suggests run as printed, in a shell whose PATH has no Thresher.
    for (hint, told) in [(" ls --into ", "present"), (" explain http://", "digest")] {
        let line = run.stdout.lines().find(|line| line.starts_with("  ") && line.contains(hint));
        let line = line.unwrap_or_else(|| panic!("no line has {hint:?}: {run}"));
        let shown = Run::of(Command::new("/bin/sh").args(["-c", line]).env("PATH", "/usr/bin:/bin")).exits(0);
        assert!(shown.stdout.contains(told), "{told:?} is not shown: {shown}");
    }
}

#[test]
fn the_demo_fills_the_directory_that_it_is_given() {
    let copy = Destination::directory();
    let run = copy.run("demo", &["--resources", "50"]).exits(0);
    let (_, place) = told(&run);
    assert_eq!(place, copy.into);
    assert_eq!(copy.view().len(), 55);
}
