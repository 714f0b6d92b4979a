//! Kept versions: up to the requested number, available for a moment in the past, and ignored by garbage collection.

use crate::common::{Destination, Inside, Site, resource, urlset};
use jiff::Timestamp;

/// A Source of two resources, and a copy of it.
struct Case {
    site: Site,
    copy: Destination,
}

impl Case {
    async fn new() -> Self {
        Self { site: Site::start().await, copy: Destination::directory() }
    }

    /// Publishes these bodies in a list of this number, and harvests them. Returns a moment at which they are stored.
    fn harvest(&self, number: usize, bodies: &[(&str, &str)], options: &[&str]) -> Timestamp {
        let entries: Vec<String> = bodies
            .iter()
            .map(|(name, body)| {
                let uri = self.site.serve(&format!("/{name}"), (*body).to_owned());
                let digest = fixity::Sha256::of(body.as_bytes());
                resource(&uri, &format!("hash=\"sha-256:{digest}\" length=\"{}\"", body.len()))
            })
            .collect();
        let at = format!("capability=\"resourcelist\" at=\"2026-01-0{number}T00:00:00Z\"");
        let list = self.site.serve("/list.xml", urlset(&at, &entries));
        self.copy.sync_with(&list, options).exits(0);
        Timestamp::now()
    }

    fn cat(&self, name: &str, at: Timestamp) -> Option<String> {
        let run = self.copy.run("cat", &[&self.site.uri(&format!("/{name}")), "--at", &at.to_string()]);
        (run.exit == Some(0)).then_some(run.stdout)
    }

    fn names_at(&self, at: Timestamp) -> Vec<(String, u64)> {
        let lines = self.copy.run("ls", &["--json", "--at", &at.to_string()]).exits(0).json_lines();
        let base = self.site.uri("/");
        let name = |line: &serde_json::Value| line["uri"].as_str().unwrap().replace(&base, "");
        lines.iter().map(|line| (name(line), line["length"].as_u64().unwrap())).collect()
    }
}

fn held(names: &[(&str, u64)]) -> Vec<(String, u64)> {
    names.iter().map(|(name, length)| ((*name).to_owned(), *length)).collect()
}

#[tokio::test]
async fn each_moment_gives_the_version_of_its_time_as_long_as_it_is_kept() {
    let case = Case::new().await;
    let before = Timestamp::now();
    let first = case.harvest(1, &[("a", "a 1"), ("b", "b 1")], &["--keep-versions", "2"]);
    let second = case.harvest(2, &[("a", "a 22"), ("b", "b 1")], &[]);
    let third = case.harvest(3, &[("a", "a 333"), ("b", "b 1")], &[]);
    for (moment, expected) in [(first, "a 1"), (second, "a 22"), (third, "a 333")] {
        assert_eq!(case.cat("a", moment).as_deref(), Some(expected));
        assert_eq!(case.cat("b", moment).as_deref(), Some("b 1"));
        assert_eq!(case.names_at(moment), held(&[("a", expected.len() as u64), ("b", 3)]));
    }
    assert!(case.names_at(before).is_empty());

    // A third one before the current version is one too many.
    let fourth = case.harvest(4, &[("a", "a 4444"), ("b", "b 1")], &[]);
    assert_eq!(case.cat("a", first), None);
    assert_eq!(case.cat("a", second).as_deref(), Some("a 22"));
    assert_eq!(case.names_at(first), held(&[("b", 3)]));
    let run = case.copy.run("cat", &[&case.site.uri("/a"), "--at", &first.to_string()]).exits(1);
    assert!(run.stderr.contains("is not kept; kept versions go back to"), "{run}");

    // Kept versions are no garbage.
    case.copy.run("gc", &["--retention", "0s"]).exits(0);
    for (moment, expected) in [(second, "a 22"), (third, "a 333"), (fourth, "a 4444")] {
        assert_eq!(case.cat("a", moment).as_deref(), Some(expected));
    }

    // No versions are wanted any more: the next change releases them.
    let fifth = case.harvest(5, &[("a", "a 55555"), ("b", "b 1")], &["--keep-versions", "0"]);
    assert_eq!(case.names_at(third), held(&[("b", 3)]));
    assert_eq!(case.cat("a", fifth).as_deref(), Some("a 55555"));
}

#[tokio::test]
async fn kept_versions_are_told_of_read_again_and_given_up_when_they_are_damaged() {
    let case = Case::new().await;
    // The first two are too large for a pack.
    let bodies = ["a 1 ", "a 22 "].map(|words| words.repeat(100_000));
    let moments = [
        case.harvest(1, &[("a", &bodies[0])], &["--keep-versions", "3"]),
        case.harvest(2, &[("a", &bodies[1])], &[]),
        case.harvest(3, &[("a", "a 333")], &[]),
        case.harvest(4, &[("a", "a 4444")], &[]),
    ];
    let uri = case.site.uri("/a");
    let clean = case.copy.run("scrub", &["--json"]).exits(0);
    assert_eq!(["resources", "versions", "versions_damaged"].map(|name| clean.count(name)), [1, 3, 0]);
    let text = case.copy.run("scrub", &[]).exits(0).stdout;
    assert!(text.contains("1 of 1 resource and 3 kept earlier versions were read"), "{text}");
    let story = case.copy.run("explain", &[&uri, "--json"]).exits(0).json();
    let kept = story["versions"].as_array().unwrap().clone();
    assert_eq!(kept.len(), 3, "{story:#}");
    let digest = fixity::Sha256::of(bodies[1].as_bytes());
    let text = case.copy.explain(&uri);
    let held = format!(
        "  {}  stored until {}: ",
        kept[1]["from"].as_str().unwrap(),
        kept[1]["until"].as_str().unwrap()
    );
    for words in [
        "Kept versions",
        &held,
        &format!("500000 bytes, sha-256 {digest}"),
        "stored at bitstreams/",
        "stored at packs/",
    ] {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }

    let inside = Inside::of(&case.copy, &case.site.uri("/list.xml")).await;
    let key = store::Key::Bitstream(digest);
    let mut bytes = inside.object(&key).await;
    bytes[9] ^= 1;
    inside.overwrite(&key, bytes.clone()).await;
    inside.close().await;
    let found = case.copy.run("scrub", &["--json"]).exits(1).says(&[&uri, "the version stored from"]);
    let counts = ["damaged", "missing", "versions_damaged", "noted", "quarantined", "discarded"];
    assert_eq!(counts.map(|name| found.count(name)), [0, 0, 1, 0, 0, 0], "{found}");
    assert_eq!(case.copy.state(&uri).as_deref(), Some("present"));
    let text = case.copy.run("scrub", &[]).exits(1).stdout;
    assert!(text.contains("no Source can send them again. Restore the objects from a backup"), "{text}");

    let asked = case.site.requests_at("/a");
    let mended = case.copy.run("scrub", &["--repair", "--json"]).exits(0);
    assert_eq!(counts.map(|name| mended.count(name)), [0, 0, 1, 0, 1, 1], "{mended}");
    assert_eq!(case.site.requests_at("/a"), asked, "its Source has another version");
    let clean = case.copy.run("scrub", &["--json"]).exits(0);
    assert_eq!(["versions", "versions_damaged"].map(|name| clean.count(name)), [2, 0]);
    let story = case.copy.explain(&uri);
    for words in ["was damaged, and discarded", "It was quarantined as damaged/", "its bytes were damaged"] {
        assert!(story.contains(words), "{words:?} is not in {story}");
    }
    // Only that version was stored then.
    let run = case.copy.run("cat", &[&uri, "--at", &moments[1].to_string()]).exits(1);
    assert!(run.stderr.contains("was damaged, and discarded at"), "{run}");
    assert!(case.names_at(moments[1]).is_empty());
    for (moment, body) in [(moments[0], bodies[0].as_str()), (moments[2], "a 333"), (moments[3], "a 4444")] {
        assert_eq!(case.cat("a", moment).as_deref(), Some(body));
    }
    case.copy.run("gc", &["--retention", "0s"]).exits(0);
    assert_eq!(case.cat("a", moments[0]).as_deref(), Some(bodies[0].as_str()));
}

#[tokio::test]
async fn what_was_deleted_is_given_for_its_time_and_not_for_the_time_it_was_gone() {
    let case = Case::new().await;
    let there = case.harvest(1, &[("a", "a 1"), ("b", "b 1")], &["--keep-versions", "3"]);
    let gone = case.harvest(2, &[("b", "b 1")], &["--absent", "delete", "--max-deletes", "100%"]);
    assert_eq!((case.cat("a", there).as_deref(), case.cat("a", gone)), (Some("a 1"), None));
    assert_eq!(case.names_at(gone), held(&[("b", 3)]));
    case.copy.run("restore", &[&case.site.uri("/a")]).exits(0);
    let restored = Timestamp::now();
    assert_eq!(case.cat("a", restored).as_deref(), Some("a 1"));
    assert_eq!((case.cat("a", there).as_deref(), case.cat("a", gone)), (Some("a 1"), None));
}

#[tokio::test]
async fn an_audit_changes_no_setting() {
    let case = Case::new().await;
    case.harvest(1, &[("a", "a 1")], &["--keep-versions", "1"]);
    case.harvest(1, &[("a", "a 1")], &["--mode", "audit", "--keep-versions", "0"]);
    let held = Timestamp::now();
    case.harvest(2, &[("a", "a 22")], &[]);
    assert_eq!(case.cat("a", held).as_deref(), Some("a 1"), "one version is kept as before");
}
