//! Several Sources of a harvest as the sets of one.

use std::collections::BTreeMap;

use model::ResourceUri;
use publish::Named;
use reqwest::{Client, StatusCode};
use serde_json::json;
use simulated_source::{Changes, SimulatedSource, SourceSpec};
use testkit::waiting::until;

use super::{Files, Held, Served, originals};
use crate::common::{Destination, Run, source, thresher};

/// Two Sources, and a harvest of both.
pub(super) struct Two {
    pub(super) sources: [SimulatedSource; 2],
    pub(super) copy: Destination,
}

impl Two {
    pub(super) async fn new() -> Self {
        let sources = [
            source(SourceSpec::default().resources(12)).await,
            source(SourceSpec::default().seed(2).resources(7)).await,
        ];
        let two = Self { sources, copy: Destination::directory() };
        two.sync();
        two
    }

    #[track_caller]
    fn sync(&self) {
        for source in &self.sources {
            self.copy.sync_with(&source.well_known(), &["--view", "none"]).exits(0);
        }
    }

    fn change(&self) {
        for source in &self.sources {
            source.change(Changes { create: 1, update: 2, delete: 1 });
        }
        self.sync();
    }

    /// The IDs of the Sources.
    pub(super) fn ids(&self) -> [String; 2] {
        self.sources.each_ref().map(|source| {
            model::SourceId::of_entry(&source.well_known().parse().unwrap()).as_str().to_owned()
        })
    }
}

/// What a copy of the sets holds, by the URI of the original.
pub(super) fn of_sets(copy: &Destination, base: &str) -> BTreeMap<String, Held> {
    let held = copy.ls().into_iter().map(|(uri, held)| {
        let (_, path) = uri.strip_prefix(base).and_then(|path| path.split_once('/')).expect("below a set");
        let Some(Named::Resource(uri)) = Named::at(path) else { panic!("{path} is no resource") };
        (ResourceUri::to_string(&uri), (held.state, held.length, held.sha256))
    });
    held.collect()
}

#[tokio::test]
async fn sources_are_laid_down_as_sets_and_followed() {
    let two = Two::new().await;
    let files = Files::start();
    let to = files.public().display().to_string();
    let publish = || {
        let options = ["--base", &files.base, "--to", &to, "--all-sources", "--json"];
        two.copy.run("publish", &options).exits(0)
    };
    assert_eq!(publish().count("resources"), 19);
    let reader = Destination::directory();
    reader.sync(&files.base).exits(0);
    assert_eq!(of_sets(&reader, &files.base), originals(&two.copy, &[]));
    for _ in 0..2 {
        two.change();
        assert_eq!(publish().count("changes"), 8);
        let run = reader.sync(&files.base).exits(0);
        assert_eq!(run.json()["mode"], "incremental", "{run}");
        assert_eq!(of_sets(&reader, &files.base), originals(&two.copy, &[]));
    }
    assert_eq!(publish().count("documents"), 0);
    let mut documents = vec![files.public().join(".well-known/resourcesync")];
    documents.extend(two.ids().map(|id| files.public().join(id).join("capabilitylist.xml")));
    for path in documents {
        let run = Run::of(thresher().args(["inspect", "--strict"]).arg(&path)).exits(0);
        assert_eq!(run.json_lines().pop().unwrap()["quirks"], json!({}), "{}: {run}", path.display());
    }
}

#[tokio::test]
async fn one_server_serves_all_sets_and_follows_them_through_a_kill() {
    let two = Two::new().await;
    let [first, second] = two.ids();
    let options = ["--source", &first, "--source", &second];
    let mut served = Served::with(&two.copy, &options);
    let reader = Destination::directory();
    reader.sync(&served.well_known()).exits(0);
    for _ in 0..2 {
        two.change();
        served.restart_with(&two.copy, &options);
        let held = originals(&two.copy, &[]);
        until("the reader has all changes", || {
            reader.sync(&served.well_known()).exits(0);
            of_sets(&reader, &served.base) == held
        })
        .await;
    }
    let client = Client::builder().no_proxy().build().unwrap();
    let status =
        async |path: &str| client.get(format!("{}{path}", served.base)).send().await.unwrap().status();
    for good in [
        "",
        "robots.txt",
        ".well-known/resourcesync",
        &format!("{first}/"),
        &format!("{second}/resourcelist.xml"),
    ] {
        assert_eq!(status(good).await, StatusCode::OK, "{good}");
    }
    for bad in
        ["resourcelist.xml", "other/resourcelist.xml", &format!("{first}/.well-known/resourcesync"), &first]
    {
        assert_eq!(status(bad).await, StatusCode::NOT_FOUND, "{bad}");
    }
}

#[tokio::test]
async fn each_set_is_for_readers_in_its_networks() {
    let two = Two::new().await;
    let [first, second] = two.ids();
    let near = format!("{first}=10.2.0.0/16");
    let options = ["--all-sources", "--own-hub", "--allow-readers", &near, "--trusted-proxy", "127.0.0.0/8"];
    let served = Served::with(&two.copy, &options);
    let client = Client::builder().no_proxy().build().unwrap();
    let uri: ResourceUri = two.sources[0].resource_uri(1).parse().unwrap();
    let resource = publish::PublishedPath::of(&uri);
    for path in ["resourcelist.xml", "notifications.xml", "hub", "", resource.as_str()] {
        for (set, from, expected) in
            [(&first, "10.2.0.1", 200), (&first, "10.3.0.1", 403), (&second, "10.3.0.1", 200)]
        {
            if set == &second && path == resource.as_str() {
                continue;
            }
            let url = format!("{}{set}/{path}", served.base);
            let answer = client.get(url).header("x-forwarded-for", from).send().await.unwrap();
            assert_eq!(answer.status(), expected, "{path} {from}");
        }
    }
    let subscribe = client.post(format!("{}{first}/hub", served.base)).header("x-forwarded-for", "10.3.0.1");
    assert_eq!(subscribe.body("").send().await.unwrap().status(), 403);

    // Without a proxy that is trusted, the header of a reader says nothing.
    let served = Served::with(&two.copy, &["--all-sources", "--allow-readers", "10.2.0.0/16"]);
    let list = client.get(format!("{}{second}/resourcelist.xml", served.base));
    assert_eq!(list.header("x-forwarded-for", "10.2.0.1").send().await.unwrap().status(), 403);
}

#[tokio::test]
async fn sources_are_chosen_by_a_label_that_stays_with_them() {
    let two = Two::new().await;
    let [first, second] = two.ids();
    let files = Files::start();
    let to = files.public().display().to_string();
    let publish = |label: &str| {
        two.copy.run("publish", &["--base", &files.base, "--to", &to, "--label", label, "--json"])
    };
    assert!(publish("country=jp").exits(2).stderr.contains("no Source with the label country=jp"));
    let sync = |number: usize, options: &[&str]| {
        let fixed = ["--view", "none"];
        two.copy.sync_with(&two.sources[number].well_known(), &[&fixed[..], options].concat()).exits(0);
    };
    sync(0, &["--label", "country=jp", "--label", "tier=1"]);
    sync(1, &["--label", "country=de"]);
    assert_eq!(publish("country=jp").exits(0).count("resources"), 12);
    assert!(files.public().join(&first).is_dir() && !files.public().join(&second).exists());
    // A run without labels keeps them.
    sync(0, &[]);
    assert_eq!(publish("tier").exits(0).count("resources"), 12);
    assert_eq!(publish("country").exits(0).count("resources"), 19);
    let reader = Destination::directory();
    reader.sync(&files.base).exits(0);
    assert_eq!(of_sets(&reader, &files.base), originals(&two.copy, &[]));
    publish("no label").exits(2);
}

#[tokio::test]
async fn other_places_and_unknown_sources_are_refused() {
    let two = Two::new().await;
    let [first, second] = two.ids();
    let folder = tempfile::TempDir::with_prefix("sets-").unwrap();
    let to = folder.path().join("public").display().to_string();
    let run = |options: &[&str]| {
        let fixed = ["--base", "http://mirror.example/", "--to", &to];
        two.copy.run("publish", &[&fixed[..], options].concat())
    };
    assert!(run(&[]).exits(2).stderr.contains("2 Sources"));
    assert!(run(&["--source", &first, "--source", "none"]).exits(2).stderr.contains("no Source none"));
    assert!(run(&["--source", &first, "--source", &first]).exits(2).stderr.contains("named twice"));
    run(&["--source", &first]).exits(0);
    assert!(run(&["--source", &first, "--source", &second]).exits(2).stderr.contains("is not empty"));
}
