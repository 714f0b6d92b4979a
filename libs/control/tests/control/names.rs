//! Names of Sources: unique at any time, whichever client writes them, and free again when no Source bears them.

use std::collections::HashSet;

use async_nats::jetstream;
use control::{Config, Control, ControlError, NameClaim, Revision, SourceName, SourceSpec, Versioned};
use futures::future::join_all;

use crate::support::{config, control, source, spec};

fn name(text: &str) -> SourceName {
    text.parse().unwrap()
}

fn named(n: usize, text: &str) -> SourceSpec {
    let mut spec = spec(n);
    spec.name = Some(name(text));
    spec
}

fn is_taken<T>(result: Result<T, ControlError>) -> bool {
    matches!(result, Err(ControlError::NameTaken { .. }))
}

async fn bearer(control: &Control, text: &str) -> Option<Versioned<SourceSpec>> {
    match control.sources().named(&name(text)).await {
        Ok(found) => Some(found),
        Err(ControlError::Absent { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// Writes the claim of a name that a process wrote before it crashed.
async fn claim(config: &Config, text: &str, n: usize, read: Revision) {
    let client = async_nats::connect(&config.servers[0]).await.unwrap();
    let bucket = jetstream::new(client).get_key_value(format!("{}-names", config.namespace)).await.unwrap();
    let claim = NameClaim { source: source(n), read };
    bucket.put(text, model::encode(&claim).into()).await.unwrap();
}

#[tokio::test]
async fn a_name_leads_to_its_source_until_it_changes_or_the_source_goes() {
    let control = control().await;
    let sources = control.sources();
    assert!(bearer(&control, "zenodo").await.is_none());
    let created = sources.create(&named(1, "zenodo")).await.unwrap();
    assert_eq!(bearer(&control, "zenodo").await.unwrap().id, source(1));
    assert!(is_taken(sources.create(&named(2, "zenodo")).await));
    let other = sources.create(&spec(2)).await.unwrap();
    assert!(is_taken(sources.update(&named(2, "zenodo"), other).await));
    assert_eq!(sources.get(&source(2)).await.unwrap().name, None, "it is as before");

    let renamed = sources.update(&named(1, "zenodo.org"), created).await.unwrap();
    assert_eq!(bearer(&control, "zenodo.org").await.unwrap().id, source(1));
    assert!(bearer(&control, "zenodo").await.is_none());
    let other = sources.update(&named(2, "zenodo"), other).await.unwrap();
    assert_eq!(bearer(&control, "zenodo").await.unwrap().id, source(2), "a former name is free");

    sources.delete(&source(2), other).await.unwrap();
    assert!(bearer(&control, "zenodo").await.is_none());
    let back = sources.update(&named(1, "zenodo"), renamed).await.unwrap();
    sources.update(&spec(1), back).await.unwrap();
    sources.create(&named(2, "zenodo")).await.unwrap();
    assert_eq!(bearer(&control, "zenodo").await.unwrap().id, source(2), "a Source may lay a name down");
}

#[tokio::test]
async fn of_those_who_take_a_name_at_the_same_time_one_has_it() {
    let control = control().await;
    let sources = control.sources();
    let mut plain = Vec::new();
    for n in 0..10 {
        plain.push(sources.create(&spec(n)).await.unwrap());
    }
    let rename = |n: usize| {
        let read = plain[n];
        async move { sources.update(&named(n, "zenodo"), read).await }
    };
    let create = |n: usize| async move { sources.create(&named(n, "zenodo")).await };
    let renamed = join_all((0..10).map(rename));
    let created = join_all((10..20).map(create));
    let (renamed, created) = futures::join!(renamed, created);
    let all: Vec<_> = renamed.into_iter().chain(created).collect();
    assert_eq!(all.iter().filter(|written| written.is_ok()).count(), 1, "{all:?}");
    let others = all.iter().filter(|written| written.is_err());
    for refused in others {
        let is_refused =
            matches!(refused, Err(ControlError::NameTaken { .. } | ControlError::Conflict { .. }));
        assert!(is_refused, "{refused:?}");
    }
    let bearers = sources.list().await.unwrap().iter().filter(|source| source.name.is_some()).count();
    assert_eq!(bearers, 1);
    assert!(bearer(&control, "zenodo").await.is_some());
}

#[tokio::test]
async fn names_stay_unique_while_many_change_them() {
    let control = control().await;
    let sources = control.sources();
    for n in 0..6 {
        sources.create(&spec(n)).await.unwrap();
    }
    let names = ["a", "b", "c", "d"];
    let work = |seed: usize| async move {
        for step in 0..12 {
            let n = (seed * 5 + step * 7) % 6;
            let found = sources.get(&source(n)).await.unwrap();
            let next = match (seed + step * 3) % 5 {
                4 => spec(n),
                place => named(n, names[place]),
            };
            match sources.update(&next, found.revision).await {
                Ok(_) | Err(ControlError::NameTaken { .. } | ControlError::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    join_all((0..4).map(work)).await;
    let all = sources.list().await.unwrap();
    let borne: Vec<&SourceName> = all.iter().filter_map(|source| source.name.as_ref()).collect();
    assert_eq!(borne.iter().collect::<HashSet<_>>().len(), borne.len(), "{borne:?}");
    for source in all.iter().filter(|source| source.name.is_some()) {
        let found = bearer(&control, source.name.as_ref().unwrap().as_str()).await.unwrap();
        assert_eq!(found.id, source.id);
    }
    // No name is locked: a new Source may take each that no Source bears.
    for (place, text) in names.into_iter().enumerate() {
        let is_free = !borne.contains(&&name(text));
        let taken = sources.create(&named(100 + place, text)).await;
        assert_eq!(taken.is_ok(), is_free, "{text}: {taken:?}");
    }
}

#[tokio::test]
async fn a_crash_between_the_claim_and_the_spec_does_not_lock_the_name() {
    let config = config().await;
    let control = Control::connect(&config).await.unwrap();
    let sources = control.sources();
    // The claimant was about to add a Source.
    claim(&config, "zenodo", 1, Revision::new(0)).await;
    assert!(bearer(&control, "zenodo").await.is_none(), "a claim alone names nothing");
    sources.create(&named(2, "zenodo")).await.unwrap();
    assert_eq!(bearer(&control, "zenodo").await.unwrap().id, source(2));
    // The Source itself can still be added.
    sources.create(&spec(1)).await.unwrap();

    // The claimant was about to rename a Source. It was only suspended, and comes too late.
    let read = sources.get(&source(1)).await.unwrap().revision;
    claim(&config, "arxiv", 1, read).await;
    sources.create(&named(3, "arxiv")).await.unwrap();
    let late = sources.update(&named(1, "other"), read).await;
    assert!(matches!(late, Err(ControlError::Conflict { .. })), "{late:?}");
    assert_eq!(*sources.get(&source(1)).await.unwrap().value, spec(1), "its spec is as before");

    // The claimant was about to delete the claim of a former name.
    let read = sources.get(&source(1)).await.unwrap().revision;
    let changed = sources.update(&spec(1), read).await.unwrap();
    claim(&config, "hal", 1, read).await;
    sources.create(&named(4, "hal")).await.unwrap();
    assert_eq!(sources.get(&source(1)).await.unwrap().revision, changed, "it was not touched");
}
