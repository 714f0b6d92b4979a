//! The OAI-PMH repository beside a published set: what harvesters get of it.

use std::collections::BTreeMap;

use oaipmh::{BaseUrl, Item, Limits, Record, canonicalize};
use simulated_source::{Changes, RepositorySpec};
use testkit::waiting::until;

use super::Served;
use super::oai_requests::Repository;
use crate::common::Destination;
use crate::oai::Case;
use crate::oai_peers::with_sickle;

const DAY: u32 = 86_400;

/// What a copy of a repository holds: state and digest by identifier.
fn held(copy: &Destination, base: &str) -> BTreeMap<String, (String, Option<String>)> {
    let base = BaseUrl::new(base.parse().unwrap()).unwrap();
    let held = copy.ls().into_iter().map(|(uri, held)| {
        let (identifier, _) = base.record_of(&uri).unwrap_or_else(|| panic!("{uri} is no record"));
        (identifier, (held.state, held.sha256))
    });
    held.collect()
}

/// The true metadata of a record in canonical form; none of a deleted one.
fn truth(case: &Case, index: u64) -> Option<String> {
    let metadata = case.repository.metadata(index, "oai_dc")?;
    Some(canonicalize(&metadata, &Limits::default()).unwrap().document)
}

#[tokio::test(flavor = "multi_thread")]
async fn sickle_gets_each_record_as_the_first_repository_gave_it() {
    let case = Case::in_step(RepositorySpec::default()).await;
    case.repository.advance(2 * DAY);
    (0..1_000).step_by(10).for_each(|index| case.repository.delete(index));
    [1, 2, 3].into_iter().for_each(|index| case.repository.update(index));
    let run = case.sync(&[]).exits(0);
    assert_eq!((run.count("stored"), run.count("deleted")), (3, 100), "{run}");
    let served = Served::start(&case.copy);
    let ours = with_sickle(&served.oai());
    assert_eq!((ours.len(), ours.values().filter(|record| record.deleted).count()), (1_000, 100));
    for one in case.repository.expected() {
        let record = &ours[&one.identifier];
        assert_eq!(record.deleted, one.deleted, "{}", one.identifier);
        assert_eq!(record.sets, one.set.into_iter().collect::<Vec<_>>(), "{}", one.identifier);
        match truth(&case, one.index) {
            Some(metadata) => assert_eq!(record.canonical(), metadata, "{}", one.identifier),
            None => assert!(record.metadata.is_none(), "{}", one.identifier),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_by_our_repository_equals_the_first_copy_through_changes_and_kills() {
    let case = Case::in_step(RepositorySpec::default().records(600)).await;
    let mut served = Served::start(&case.copy);
    let (first, ours) = (case.repository.base_url(), served.oai());
    let second = Destination::directory();
    let run = second.sync(&ours).exits(0);
    assert_eq!((run.count("stored"), run.count("failed"), run.count("gaps")), (600, 0, 0), "{run}");
    let mut quirks = run.json()["quirks"].clone();
    // All may have been stored within the second of the answer. That looks like a repository that stamps as it answers.
    quirks.as_object_mut().unwrap().remove("datestamp-is-now");
    assert_eq!(quirks, serde_json::json!({}), "{run}");
    assert_eq!(held(&second, &ours), held(&case.copy, &first));
    for round in 0..3 {
        case.repository.advance(DAY);
        case.repository.change(Changes { create: 2, update: 5, delete: 3 });
        case.sync(&[]).exits(0);
        if round == 1 {
            served.restart(&case.copy);
        }
        until("the second copy has the changes", || {
            second.sync(&ours).exits(0);
            held(&second, &ours) == held(&case.copy, &first)
        })
        .await;
    }
    // A late one gets the deletions too.
    let late = Destination::directory();
    late.sync(&ours).exits(0);
    assert_eq!(late.present().len(), second.present().len());
    assert_eq!(late.ls().len(), second.ls().len());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_record_is_lost_while_pages_are_read_though_records_change_and_the_server_is_killed() {
    let case = Case::in_step(RepositorySpec::default().records(700)).await;
    let mut served = Served::start(&case.copy);
    let mut seen: BTreeMap<String, Record> = BTreeMap::new();
    let mut query = "verb=ListRecords&metadataPrefix=oai_dc".to_owned();
    let mut pages = 0;
    loop {
        let (items, answer) = Repository::of(&served).ask(&query).await;
        pages += 1;
        for item in items {
            let Item::Record(record) = item else { panic!("no record: {item:?}") };
            seen.insert(record.header.identifier.clone(), *record);
        }
        let Some(token) = answer.resumption.and_then(|resumption| resumption.token) else { break };
        if pages <= 3 {
            case.repository.advance(DAY);
            // Of those that were listed, and of those that were not.
            let changed = [1, 2, 300, 400, 650].map(|index| index + pages);
            changed.into_iter().for_each(|index| case.repository.update(index));
            case.repository.delete(500 + pages);
            case.repository.delete(10 + pages);
            case.repository.change(Changes { create: 1, update: 0, delete: 0 });
            case.sync(&[]).exits(0);
            served.restart(&case.copy);
        }
        query = format!("verb=ListRecords&resumptionToken={}", token.as_str());
    }
    assert!(pages >= 3, "{pages}");
    let expected = case.repository.expected();
    assert_eq!(seen.len(), expected.len());
    for one in expected {
        let record = &seen[&one.identifier];
        assert_eq!(record.header.is_deleted(), one.deleted, "{}", one.identifier);
        let metadata = record.metadata.as_ref().map(|metadata| metadata.document.clone());
        assert_eq!(metadata, truth(&case, one.index), "{}", one.identifier);
    }
}
