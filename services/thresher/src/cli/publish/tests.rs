//! Options of `publish` that would have no effect.

use crate::cli::Cli;

/// What is wrong with the options.
fn wrong(options: &str) -> Option<String> {
    let line = format!("thresher publish --base http://e.org/ {options}");
    let error = Cli::read(line.split_whitespace()).err()?.to_string();
    Some(error.split("Usage:").next().unwrap_or_default().to_owned())
}

/// The name of an option that is given with its value.
fn name(option: &str) -> &str {
    option.split(' ').next().unwrap()
}

const OF_A_SERVER: [&str; 11] = [
    "--set a=b",
    "--connections 512",
    "--connections-per-client 5",
    "--redirect",
    "--hub http://h/",
    "--ping-hub http://h/",
    "--own-hub",
    "--tokens t",
    "--contact a@e.org",
    "--allow-readers 127.0.0.1",
    "--metrics 127.0.0.1:0",
];
const OF_A_HUB: [&str; 5] = [
    "--hub-subscribers 5",
    "--hub-subscribers-per-host 5",
    "--hub-lease 1h",
    "--hub-give-up 1h",
    "--allow-address 127.0.0.1",
];
const OF_SERVED_FILES: [&str; 3] = ["--rescan 60s", "--rescan-all 5min", "--no-watch"];

#[test]
fn options_of_a_server_are_refused_without_one() {
    for option in OF_A_SERVER.iter().chain(&OF_A_HUB).chain(&["--trusted-proxy 127.0.0.1"]) {
        let said = wrong(&format!("--to d {option}")).unwrap_or_default();
        assert!(said.contains(name(option)) && said.contains("--to <DIR"), "{option}: {said}");
    }
    for option in OF_A_SERVER {
        assert_eq!(wrong(&format!("--listen 127.0.0.1:0 {option}")), None, "{option}");
    }
    for option in OF_A_HUB {
        assert_eq!(wrong(&format!("--listen 127.0.0.1:0 --own-hub {option}")), None, "{option}");
        assert!(wrong(&format!("--listen 127.0.0.1:0 {option}")).is_some(), "{option}");
    }
    assert!(wrong("--own-hub").is_some(), "neither --to nor --listen");
    assert_eq!(wrong("--to d"), None, "defaults are not given");
}

#[test]
fn only_documents_are_laid_down_and_not_served() {
    let said = wrong("--listen 127.0.0.1:0 --documents-only").unwrap_or_default();
    assert!(said.contains("--documents-only") && said.contains("--listen"), "{said}");
    assert_eq!(wrong("--to d --documents-only"), None);
}

#[test]
fn options_of_files_are_refused_with_a_harvest() {
    for option in OF_SERVED_FILES.iter().chain(&["--files-url http://e.org/", "--allow-deletes"]) {
        for harvest in ["--into d", "--source http://e.org/", "--all-sources", "--label a"] {
            let said = wrong(&format!("--listen 127.0.0.1:0 {harvest} {option}")).unwrap_or_default();
            assert!(said.contains(name(option)), "{harvest} {option}: {said}");
        }
        assert!(wrong(&format!("--listen 127.0.0.1:0 {option}")).is_some(), "{option}: --from is missing");
        assert_eq!(wrong(&format!("--listen 127.0.0.1:0 --from d --state s {option}")), None, "{option}");
    }
}

#[test]
fn options_of_served_files_are_refused_without_a_server() {
    for option in OF_SERVED_FILES.iter().chain(&["--state s"]) {
        let said = wrong(&format!("--to d --from d {option}")).unwrap_or_default();
        assert!(said.contains(name(option)) && said.contains("--to <DIR"), "{option}: {said}");
    }
    assert_eq!(wrong("--to d --from d --allow-deletes"), None, "defaults are not given");
}
