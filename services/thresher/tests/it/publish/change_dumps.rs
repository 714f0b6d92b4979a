//! Change Dumps: a copy that reads dumps alone follows the original.

use std::process::Command;

use serde_json::{Value, json};
use simulated_source::{Changes, SimulatedSource, Size, SourceSpec};
use testkit::servers::Venv;

use super::{Files, originals};
use crate::common::{Destination, Run, source, thresher};

/// A Source, a copy of it, and the publication of that, with a list closed by each run.
struct Case {
    source: SimulatedSource,
    copy: Destination,
    files: Files,
}

impl Case {
    async fn new() -> Self {
        let source = source(SourceSpec::default().resources(40).size(Size::Range(0, 50_000))).await;
        let case = Self { source, copy: Destination::directory(), files: Files::start() };
        case.publish();
        case
    }

    #[track_caller]
    fn publish(&self) -> Run {
        self.copy.sync(&self.source.well_known()).exits(0);
        let to = self.files.public().display().to_string();
        let options = ["--base", &self.files.base, "--to", &to, "--dumps", "--close-after", "0s", "--json"];
        self.copy.run("publish", &options).exits(0)
    }
}

#[tokio::test]
async fn a_copy_by_dumps_alone_is_that_of_the_original_through_changes() {
    let case = Case::new().await;
    let second = Destination::directory();
    let prefer = ["--prefer", "dump"];
    second.sync_with(&case.files.base, &prefer).exits(0);
    for _ in 0..3 {
        case.source.change(Changes { create: 3, update: 6, delete: 2 });
        let run = case.publish();
        assert_eq!((run.count("changes"), run.count("change_packages")), (11, 1), "{run}");
        let run = second.sync_with(&case.files.base, &prefer).exits(0);
        assert_eq!(run.json()["mode"], "incremental", "{run}");
        assert_eq!((run.count("stored"), run.count("deleted"), run.count("gaps")), (9, 2, 0), "{run}");
        assert!(run.count("requests") < 9, "the package has all: {run}");
        assert_eq!(originals(&second, &[&case.files.base]), originals(&case.copy, &[]));
    }
    // One that comes late takes several packages at once.
    let late = Destination::directory();
    late.sync_with(&case.files.base, &prefer).exits(0);
    let present = |copy: &Destination| copy.present().into_values().collect::<Vec<_>>().len();
    assert_eq!(present(&late), present(&case.copy));

    let strict = |path: &std::path::Path| {
        let run = Run::of(thresher().args(["inspect", "--strict"]).arg(path)).exits(0);
        assert_eq!(run.json_lines().pop().unwrap()["quirks"], json!({}), "{}: {run}", path.display());
    };
    strict(&case.files.public().join("changedump.xml"));
    strict(&case.files.public().join("capabilitylist.xml"));
    for entry in std::fs::read_dir(case.files.public().join("changedump")).unwrap() {
        strict(&entry.unwrap().path());
    }
}

#[tokio::test]
async fn the_package_resync_reads_the_change_dump_and_its_manifests() {
    let case = Case::new().await;
    case.source.change(Changes { create: 2, update: 3, delete: 1 });
    case.publish();
    case.source.change(Changes { create: 0, update: 1, delete: 1 });
    case.publish();
    let mut command = Command::new(Venv::peers().expect("a virtual environment").program("python"));
    let program = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/read_change_dump.py");
    command.arg("-B").arg(program).arg(format!("{}changedump.xml", case.files.base));
    let output = command.env("NO_PROXY", "*").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let counts: Vec<_> = said.iter().map(|package| package["changes"].clone()).collect();
    assert_eq!(
        counts,
        [json!({"created": 2, "updated": 3, "deleted": 1}), json!({"updated": 1, "deleted": 1})]
    );
    let copied: usize = said.iter().map(|package| package["bodies"].as_u64().unwrap() as usize).sum();
    assert_eq!(copied, 6, "each change but the deletions has its bytes");
}

#[test]
fn a_server_does_not_close_lists_all_the_time() {
    let copy = Destination::directory();
    let options = ["--base", "http://e.org/", "--listen", "127.0.0.1:0", "--close-after", "1s"];
    let run = copy.run("publish", &options).exits(2);
    assert!(run.stderr.contains("at least 1min"), "{run}");
}
