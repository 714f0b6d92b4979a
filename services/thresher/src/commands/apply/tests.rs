use clap::Parser as _;
use serde_json::json;

use super::*;
use crate::cli::{Cli, Command, SourceCommand};

fn read(text: &str) -> Result<Vec<Spec>, String> {
    file::read("sources.yaml", text)
}

fn entries(text: &str) -> Vec<String> {
    read(text).unwrap().iter().map(|wanted| wanted.entry.to_string()).collect()
}

#[test]
fn one_source_a_list_and_several_documents_are_read() {
    let a = "entry: https://a.example/";
    let b = "entry: https://b.example/";
    let both = ["https://a.example/".to_owned(), "https://b.example/".to_owned()];
    assert_eq!(entries(a), both[..1]);
    assert_eq!(entries(&format!("- {a}\n- {b}\n")), both);
    assert_eq!(entries(&format!("{a}\n---\n{b}\n")), both);
    assert_eq!(entries(&format!("---\n- {a}\n---\n{b}\nconcurrency: 2\n---\n")), both);
}

#[test]
fn a_slip_is_refused_with_its_line_and_what_was_probably_meant() {
    for (text, place, what) in [
        ("entry: https://a.example/\nconcurency: 2\n", "sources.yaml:2:1:", "did you mean concurrency?"),
        (
            "- entry: https://a.example/\n- entry: https://b.example/\n  shedule: {}\n",
            ":3:3:",
            "did you mean schedule?",
        ),
        (
            "entry: https://a.example/\n---\nentry: https://b.example/\nzzz: 1\n",
            ":4:1:",
            "there are entry, name",
        ),
        ("entry: https://a.example/\nabsent: delet\n", ":2:", "did you mean delete?"),
        ("enabled: true\n", ":1:", "entry"),
        ("entry: here\n", ":1:", "URL"),
        ("entry: https://a.example/\nconcurrency: 0\n", ":2:", "zero"),
        // An error outside of all fields has no position of its own: it concerns the whole document.
        ("sources\n", "sources.yaml:", "a Source, or a list"),
        ("", "sources.yaml", "names no Source"),
    ] {
        let said = read(text).unwrap_err();
        assert!(said.contains(place) && said.contains(what), "{text}: {said}");
    }
}

#[test]
fn what_differs_is_told_by_field_and_what_is_left_out_is_its_default() {
    let wanted = |value| serde_json::from_value::<Spec>(value).unwrap();
    let before = wanted(json!({"entry": "https://a.example/", "concurrency": 2, "include": "x"}));
    let after =
        wanted(json!({"entry": "https://a.example/", "contact": "mailto:a@a.example", "absent": "confirm"}));
    let changes = changes(&before, &after);
    let told: Vec<(&str, &Value, &Value)> =
        changes.iter().map(|(field, change)| (field.as_str(), &change.from, &change.to)).collect();
    let expected = [
        ("concurrency", json!(2), json!(4)),
        ("contact", Value::Null, json!("mailto:a@a.example")),
        ("include", json!("x"), Value::Null),
    ];
    assert_eq!(told, expected.iter().map(|(field, from, to)| (*field, from, to)).collect::<Vec<_>>());
    assert!(super::changes(&after, &after).is_empty());
}

#[test]
fn what_source_show_prints_is_what_apply_reads() {
    let mut all = json!({
        "entry": "https://example.org/", "name": "example.main", "title": "Yes: #1", "labels": {"year": "2026", "country": "no", "example.org/tier": ""},
        "notes": "Ask first.", "source_contact": "Ada <ada@example.org>", "enabled": false, "schedule": {"times": {"cron": "0 3 * * *"}, "jitter_seconds": 60},
        "follow": {"min_seconds": 5, "max_seconds": 60}, "mode": "baseline", "prefer": "dump", "absent": "keep",
        "max_deletes_percent": 3, "keep_versions": 2, "metadata_prefix": "mets", "sets": ["col_1", "a:b"], "landing_pages": true, "include": "^a: #", "exclude": "yes", "origins": "same", "mirrors": "prefer", "patches": "off", "only": ["type=application/pdf", "collection=https://example.org/c"],
            "follow_links": ["item", "http://t/r"], "follow_types": ["application/pdf"], "follow_max": 5, "strict": true, "accept_html": true, "concurrency": 7,
        "requests_per_second": 9, "robots": "obey", "contact": "mailto:a@example.org", "credential": "one",
        "allow_networks": ["10.1.0.0/16", "fd00:1::7/128"], "publish": "networks", "publish_networks": ["10.2.0.0/16"],
    });
    // The macro expands only so many fields.
    all["encoding"] = json!("windows-1252");
    all["publish_archive"] = json!("1y");
    all["publish_sets"] = json!(["theses=/theses/", "pdf=[.]pdf$"]);
    all["follow_rules"] = json!([
        "rel=alternate,type=application/pdf,host=f.example.org,profile=http://t/p,max=3,instead",
        "rel=describedby"
    ]);
    let wanted: Spec = serde_json::from_value(all).unwrap();
    let shown = serde_saphyr::to_string(&wanted).unwrap();
    assert_eq!(read(&shown).unwrap(), [wanted], "{shown}");
}

#[test]
fn the_command_line_needs_a_file_and_refuses_two_gateways() {
    assert!(Cli::try_parse_from(["thresher", "apply"]).is_err());
    let parsed = Cli::try_parse_from(["thresher", "apply", "-f", "a", "-f", "-", "--dry-run"]).unwrap();
    let Command::Apply(args) = parsed.command else { panic!("another command") };
    assert_eq!((args.files.len(), args.dry_run), (2, true));
    let both = ["thresher", "source", "ls", "--server", "http://h", "--profile", "p"];
    assert!(Cli::try_parse_from(both).is_err(), "{both:?}");
    let parsed = Cli::try_parse_from(["thresher", "source", "show", "a", "--json"]).unwrap();
    assert!(matches!(parsed.command, Command::Source(SourceCommand::Show { json: true, .. })));
}
