//! docs/HOSTILE-ARCHIVES.md names every refusal, and only tests that exist.

use std::collections::BTreeSet;

use packages::PackageError;

const PAGE: &str = include_str!("../../../docs/HOSTILE-ARCHIVES.md");
const TESTS: &[&str] = &[
    include_str!("memory.rs"),
    include_str!("properties.rs"),
    include_str!("tar_honest.rs"),
    include_str!("tar_hostile.rs"),
    include_str!("zip_honest.rs"),
    include_str!("zip_hostile.rs"),
    include_str!("../src/manifest.rs"),
    include_str!("../src/name.rs"),
];

/// The texts between backticks in a column of the tables.
fn quoted(column: usize) -> BTreeSet<&'static str> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| attack"));
    rows.flat_map(|row| row.split('|').nth(column).unwrap_or_default().split('`').skip(1).step_by(2))
        .collect()
}

#[test]
fn every_refusal_stands_on_the_page_and_no_other() {
    let names: BTreeSet<&str> = PackageError::NAMES.iter().copied().collect();
    assert_eq!(quoted(2), names);
}

#[test]
fn every_test_on_the_page_exists() {
    let tests = quoted(4);
    assert!(tests.len() > 60, "{}", tests.len());
    for test in tests {
        let found = TESTS.iter().any(|file| file.contains(&format!("fn {test}(")));
        assert!(found, "{test}");
    }
}

#[test]
fn every_hostile_test_stands_on_the_page() {
    for file in [include_str!("tar_hostile.rs"), include_str!("zip_hostile.rs")] {
        for test in file.split("#[test]\nfn ").skip(1) {
            let name = test.split('(').next().unwrap_or_default();
            let inner = ["after_an_error_there_is_no_good_end"];
            assert!(quoted(4).contains(name) || inner.contains(&name), "{name}");
        }
    }
}
