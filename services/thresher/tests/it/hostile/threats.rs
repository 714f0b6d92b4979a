//! `docs/THREATS.md` names the modules of these tests as they are.

use std::collections::BTreeSet;
use std::path::Path;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn each_module_of_these_tests_is_named_and_each_that_is_named_is_there() {
    let page = read("docs/THREATS.md");
    let named: BTreeSet<&str> = page
        .split("`hostile/")
        .skip(1)
        .filter_map(|rest| rest.split('`').next())
        // The example of how tests are named.
        .filter(|name| *name != "x")
        .collect();
    let main = read("services/thresher/tests/it/hostile/mod.rs");
    let there: BTreeSet<&str> = main
        .lines()
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
        // These belong to no threat: the first steps at the command line, and this module.
        .filter(|name| !["common", "command_line", "threats"].contains(name))
        .collect();
    assert_eq!(named, there);
}
