//! Data of a Source controls no terminal and forges no line. A reader that goes away ends a command quietly.

use std::process::Command;

use testkit::scripted::Reply;

use crate::common::{Destination, Run, Site, resource, thresher, urlset};

const LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
/// Names a window, colours the following text (with one character or two), changes the direction of the text.
const COMMANDS: &str = "\u{9d}0;pwned\u{9c}\u{9b}31m\u{7f}\u{202e}";
/// The exit status that a shell reports for SIGPIPE.
const READER_GONE: i32 = 141;

/// Checks that the output has no control characters for a terminal, and that no line was forged.
#[track_caller]
fn is_harmless(run: &Run) {
    for text in [&run.stdout, &run.stderr] {
        let found = text.chars().find(|c| *c != '\n' && resourcesync::steers_display(*c));
        assert_eq!(found, None, "{run}");
        assert!(!text.lines().any(|line| line.starts_with("present 7")), "{run}");
    }
}

#[tokio::test]
async fn control_characters_in_a_loc_cost_that_entry_only_and_are_named() {
    let site = Site::start().await;
    let good = site.serve("/1.txt", "one");
    let bad = ["&#10;present 7 https://bank.example/FORGED", "\u{9b}31m", "&#127;", "&#x202e;"];
    let mut entries: Vec<String> =
        bad.iter().map(|bad| format!("  <url><loc>{}/x{bad}</loc></url>\n", site.uri(""))).collect();
    entries.insert(2, resource(&good, ""));
    let list = site.serve("/list.xml", urlset(LIST, &entries));
    let copy = Destination::directory();
    let run = copy.sync(&list).exits(1).says(&["control character U+000A", "U+009B", "U+007F", "U+202E"]);
    is_harmless(&run);
    assert_eq!(copy.present().len(), 1, "{run}");
    assert_eq!(copy.cat(&good), b"one");
    for command in ["ls", "problems", "report"] {
        is_harmless(&copy.run(command, &[]).exits(0));
    }
}

#[tokio::test]
async fn names_of_elements_and_media_types_reach_no_terminal_as_they_are() {
    let site = Site::start().await;
    let one = site.serve("/1.txt", "one");
    let document = urlset(LIST, &[resource(&one, "")]).replace("</urlset>", &format!("</a{COMMANDS}>"));
    let list = site.serve("/list.xml", document.clone());
    let copy = Destination::directory();
    is_harmless(&copy.sync(&list).exits(1));
    for command in ["problems", "report"] {
        is_harmless(&copy.run(command, &[]).exits(0));
    }
    is_harmless(&copy.run("problems", &["--json"]).exits(0));
    let inspected = Run::of(thresher().args(["inspect", &list])).exits(1);
    is_harmless(&inspected);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), document).unwrap();
    is_harmless(&Run::of(thresher().arg("inspect").arg(file.path())).exits(1));
    is_harmless(&Run::of(thresher().args(["discover", &list])));
}

#[tokio::test]
async fn values_that_are_kept_are_cleaned_for_people_and_escaped_in_json() {
    let site = Site::start().await;
    let one = site.serve("/1.txt", "one");
    let two = site.reply("/2.txt", Reply::status(404));
    let md = format!("type=\"text/plain{COMMANDS}\"");
    let list = site.serve("/list.xml", urlset(LIST, &[resource(&one, &md), resource(&two, &md)]));
    let copy = Destination::directory();
    is_harmless(&copy.sync(&list).exits(1));
    for uri in [&one, &two] {
        is_harmless(&copy.run("explain", &[uri]).exits(0));
        let json = copy.run("explain", &[uri, "--json"]).exits(0);
        is_harmless(&json);
        assert!(json.json().to_string().contains(COMMANDS), "nothing of it is lost: {json}");
    }
}

/// Runs a command whose standard output has no reader.
#[track_caller]
fn unread(command: &mut Command) -> Run {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child = command.stdout(writer).stderr(std::process::Stdio::piped()).spawn().unwrap();
    Run::ended(command, &child.wait_with_output().unwrap())
}

#[tokio::test]
async fn a_command_whose_reader_has_gone_ends_without_a_word() {
    let site = Site::start().await;
    let one = site.serve("/1.txt", "one");
    let two = site.reply("/2.txt", Reply::status(404));
    let list = site.serve("/list.xml", urlset(LIST, &[resource(&one, ""), resource(&two, "")]));
    let copy = Destination::directory();
    copy.sync(&list).exits(1);
    let words: [&[&str]; 11] = [
        &["ls"],
        &["ls", "--json"],
        &["cat", &one],
        &["explain", &one],
        &["problems"],
        &["problems", "--json"],
        &["report"],
        &["gc", "--dry-run"],
        &["scrub"],
        &["export", "-", "--as", "tar"],
        &["export", "-", "--as", "jsonl"],
    ];
    for words in words {
        let run = unread(&mut copy.command(words[0], &words[1..])).exits(READER_GONE);
        assert_eq!(run.stderr, "", "{run}");
    }
    for words in [&["discover", &list][..], &["inspect", &list], &["completions", "bash"], &["man"]] {
        let run = unread(thresher().args(words)).exits(READER_GONE);
        assert_eq!(run.stderr, "", "{run}");
    }
}
