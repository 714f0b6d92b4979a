//! `thresher apply`: the Sources of a file. A repeated call has the same effect.

use crate::common::Fleet;
use crate::common::api::{ADMIN, Api};
use crate::common::console::Visitor;
use control::{Config, Control, SourceSpec};
use model::SourceId;
use reqwest::StatusCode;
use serde_json::json;
use testkit::servers::{NatsFixture, S3Fixture};

const ENTRY: &str = "https://example.org/";

/// The control store, and a gateway in front of it. No scheduler runs.
async fn gateway() -> (Fleet, crate::common::Service, Api, Control) {
    let fleet = Fleet::new(&NatsFixture::get().await.url, S3Fixture::get().await);
    let gateway = fleet.start(&["gateway"], &fleet.gateway());
    let api = Api::of(&gateway).await;
    let servers = vec![fleet.nats.clone()];
    let namespace = fleet.namespace.clone();
    let config = Config { servers, namespace, ..Config::default() };
    let control = Control::connect(&config).await.expect("NATS");
    (fleet, gateway, api, control)
}

fn file(fleet: &Fleet, text: &str) -> String {
    let path = fleet.path("sources.yaml");
    std::fs::write(&path, text).expect("our own folder");
    path.display().to_string()
}

/// The stored spec of the one Source, which is then deleted.
async fn kept(control: &Control) -> SourceSpec {
    let id = SourceId::of_entry(&ENTRY.parse().expect("a URL"));
    let found = control.sources().get(&id).await.expect("it was added");
    control.sources().delete(&id, found.revision).await.expect("it is there");
    SourceSpec::clone(&found)
}

#[tokio::test]
async fn the_same_record_comes_of_the_command_line_a_file_the_api_and_the_page() {
    let (fleet, _gateway, api, control) = gateway().await;
    let options = "--name zenodo --title Example --label country=jp --label example.org/tier=1 --notes first --source-contact Ada \
                   --every 6h --mode baseline --prefer dump --absent keep --max-deletes 3% --keep-versions 2 --metadata-prefix mets --set col_1 --set a:b --encoding latin1 --include a --exclude b --origins same --mirrors prefer --patches off --only type=application/pdf --only collection=https://example.org/c \
                   --follow-links item,http://t/r --follow-type application/pdf --follow-max 5 --follow-rule rel=alternate,type=application/pdf,host=f.example.org,profile=http://t/p,max=3,instead --follow-rule rel=describedby --strict --accept-html --landing-pages \
                   --concurrency 7 --max-rate 9 --robots obey --contact mailto:a@example.org --credential one --allow-network 10.1.0.0/16 --allow-network fd00:1::7 --publish-network 10.2.0.0/16 --publish-archive 365days --publish-set theses=/theses/ --publish-set pdf=[.]pdf$ --disabled";
    let mut all = json!({
        "entry": ENTRY, "name": "zenodo", "title": "Example", "labels": {"country": "jp", "example.org/tier": "1"},
        "notes": "first", "source_contact": "Ada", "enabled": false, "schedule": {"times": {"every_seconds": 21_600}}, "mode": "baseline", "prefer": "dump",
        "absent": "keep", "max_deletes_percent": 3, "keep_versions": 2, "metadata_prefix": "mets", "sets": ["col_1", "a:b"], "encoding": "windows-1252", "landing_pages": true, "include": "a", "exclude": "b", "origins": "same", "mirrors": "prefer", "patches": "off", "only": ["type=application/pdf", "collection=https://example.org/c"],
            "follow_links": ["item", "http://t/r"], "follow_types": ["application/pdf"], "follow_max": 5, "follow_rules": ["rel=alternate,type=application/pdf,host=f.example.org,profile=http://t/p,max=3,instead", "rel=describedby"], "strict": true, "accept_html": true, "concurrency": 7,
        "requests_per_second": 9, "robots": "obey", "contact": "mailto:a@example.org", "credential": "one",
        "allow_networks": ["10.1.0.0/16", "fd00:1::7/128"], "publish": "networks", "publish_networks": ["10.2.0.0/16"],
    });
    // The macro expands only so many fields.
    all["publish_archive"] = json!("1y");
    all["publish_sets"] = json!(["theses=/theses/", "pdf=[.]pdf$"]);
    let form = [
        ("entry", ENTRY),
        ("name", "zenodo"),
        ("title", "Example"),
        ("labels", "country=jp example.org/tier=1"),
        ("notes", "first"),
        ("source_contact", "Ada"),
        ("on_hold", "on"),
        ("when", "every"),
        ("every", "6h"),
        ("mode", "baseline"),
        ("prefer", "dump"),
        ("absent", "keep"),
        ("max_deletes_percent", "3"),
        ("keep_versions", "2"),
        ("metadata_prefix", "mets"),
        ("sets", "col_1 a:b"),
        ("encoding", "windows-1252"),
        ("include", "a"),
        ("exclude", "b"),
        ("origins", "same"),
        ("mirrors", "prefer"),
        ("patches", "off"),
        ("only", "type=application/pdf collection=https://example.org/c"),
        ("follow_links", "item http://t/r"),
        ("follow_types", "application/pdf"),
        ("follow_max", "5"),
        (
            "follow_rules",
            "rel=alternate,type=application/pdf,host=f.example.org,profile=http://t/p,max=3,instead rel=describedby",
        ),
        ("strict", "on"),
        ("accept_html", "on"),
        ("landing_pages", "on"),
        ("concurrency", "7"),
        ("requests_per_second", "9"),
        ("robots", "obey"),
        ("contact", "mailto:a@example.org"),
        ("credential", "one"),
        ("allow_networks", "10.1.0.0/16 fd00:1::7/128"),
        ("publish", "networks"),
        ("publish_networks", "10.2.0.0/16"),
        ("publish_archive", "1y"),
        ("publish_sets", "theses=/theses/ pdf=[.]pdf$"),
        ("add", "yes"),
    ];
    let plain = [("entry", ENTRY), ("add", "yes")];
    let visitor = Visitor::of(&api).signed_in(ADMIN).await;
    for (options, body, form) in [("", json!({"entry": ENTRY}), &plain[..]), (options, all, &form[..])] {
        let options: Vec<&str> = options.split_whitespace().collect();
        // JSON is YAML.
        let yaml = file(&fleet, &body.to_string());
        let mut records = Vec::new();
        api.ask(&[&["source", "add", ENTRY, "--no-run"], &options[..]].concat()).await.exits(0);
        records.push(("source add", kept(&control).await));
        api.ask(&["apply", "-f", &yaml]).await.exits(0);
        records.push(("apply", kept(&control).await));
        api.post("/v1/sources", body).await.is(StatusCode::CREATED);
        records.push(("the API", kept(&control).await));
        visitor.post("/console/sources", form).await.is(StatusCode::SEE_OTHER);
        records.push(("the page", kept(&control).await));
        for (how, record) in &records {
            assert_eq!(record, &records[0].1, "{how}");
        }
    }
}

#[tokio::test]
async fn what_is_applied_again_is_unchanged_and_what_differs_is_told_by_field() {
    let (fleet, _gateway, api, control) = gateway().await;
    let text = "- entry: https://a.example/\n- entry: https://b.example/\n  concurrency: 2\n---\nentry: https://c.example/\n";
    let yaml = file(&fleet, text);
    let done = async |words: &[&str]| -> Vec<String> {
        let ran = api.ask(&[&["apply", "-f", &yaml, "--json"], words].concat()).await.exits(0);
        ran.json_lines().iter().map(|line| line["done"].as_str().expect("a word").to_owned()).collect()
    };
    assert_eq!(done(&["--dry-run"]).await, ["created", "created", "created"]);
    assert!(control.sources().list().await.expect("NATS").is_empty(), "a dry run writes nothing");
    assert_eq!(done(&[]).await, ["created", "created", "created"]);
    let revisions = async || -> Vec<u64> {
        control.sources().list().await.expect("NATS").iter().map(|source| source.revision.get()).collect()
    };
    let before = revisions().await;
    assert_eq!(done(&[]).await, ["unchanged", "unchanged", "unchanged"]);
    file(&fleet, &text.replace("concurrency: 2", "strict: true"));
    let tried = api.ask(&["apply", "-f", &yaml, "--dry-run"]).await.exits(0);
    let told = "would be changed: concurrency from 2 to 4, strict from false to true";
    assert!(tried.stdout.contains(told), "{tried}");
    assert_eq!(revisions().await, before, "nothing was written");
    assert_eq!(done(&[]).await, ["unchanged", "changed", "unchanged"]);
}

#[tokio::test]
async fn a_slip_in_the_last_file_changes_nothing() {
    let (fleet, _gateway, api, control) = gateway().await;
    let good = file(&fleet, "entry: https://a.example/\n");
    let bad = fleet.path("bad.yaml").display().to_string();
    for (text, what) in [
        ("entry: https://b.example/\nconcurency: 2\n", vec!["bad.yaml:2:1", "did you mean concurrency?"]),
        (
            "entry: https://b.example/\nmax_deletes_percent: 101\n",
            vec!["bad.yaml", "max_deletes_percent", "more than 100"],
        ),
        ("entry: https://a.example/\n", vec!["bad.yaml", "twice"]),
    ] {
        std::fs::write(&bad, text).expect("our own folder");
        let refused = api.ask(&["apply", "-f", &good, "-f", &bad]).await.exits(2);
        for what in what {
            assert!(refused.complaint().contains(what), "{what}: {refused}");
        }
    }
    assert!(control.sources().list().await.expect("NATS").is_empty());
    api.ask(&["apply", "-f", "/nowhere/sources.yaml"]).await.exits(2);
}
