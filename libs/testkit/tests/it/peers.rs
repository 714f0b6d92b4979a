//! A third-party reader understands the simulated Source's documents.

use std::process::Command;

use simulated_source::{Changes, SimulatedSource, SourceSpec};
use testkit::servers::Venv;

const READ: &str = "
import sys
from resync.resource_list import ResourceList
from resync.change_list import ChangeList
for kind, uri in ((ResourceList, sys.argv[1]), (ChangeList, sys.argv[2])):
    document = kind()
    document.read(uri)
    for entry in document:
        print(entry.uri, entry.change, entry.length, entry.sha256)
";

#[tokio::test]
async fn python_resync_reads_the_resource_list_index_and_the_change_list() {
    let plan = SourceSpec::default().resources(25).entries_per_list(10);
    let source = SimulatedSource::start(plan).await.unwrap();
    let expected = source.expected().map(|e| format!("{} None {} {}", e.uri, e.length, e.sha256));
    let mut expected: Vec<String> = expected.collect();
    let changes = source.change(Changes { create: 1, update: 2, delete: 1 });
    let truth: Vec<_> = source.expected().collect();
    expected.extend(changes.iter().map(|change| {
        let uri = source.resource_uri(change.index);
        let now = truth.iter().find(|e| e.uri == uri);
        let fixity = now.map_or("None None".to_owned(), |e| format!("{} {}", e.length, e.sha256));
        format!("{uri} {} {fixity}", change.kind.name())
    }));
    let mut python = Command::new(Venv::peers().unwrap().program("python"));
    python.args(["-c", READ]).args([source.resource_list(), source.change_list()]);
    let output = tokio::task::spawn_blocking(move || python.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(read, expected);
}
