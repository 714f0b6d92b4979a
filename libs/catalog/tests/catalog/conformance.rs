//! What a catalog guarantees on any store.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Batch, Catalog, CatalogConfig, CatalogError, CatalogReader, LogEnd};
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use model::{
    ChangeLogEntry, DiscoveryReport, ResourceRecord, ResourceState, ResourceUri, Seq, SetId, SetRecord,
    Subject,
};
use object_store::ObjectStore;
use slatedb::Db;
use slatedb::admin::AdminBuilder;
use testkit::waiting::found;

use crate::commits;
use crate::records::*;

pub(crate) type Store = Arc<dyn ObjectStore>;

/// Runs all cases, each in a catalog of its own.
pub(crate) async fn all(store: Store) {
    // Each in memory of its own: together they would be larger than the stack of a test.
    Box::pin(every_record_comes_back_as_it_was_put(&store)).await;
    Box::pin(scans_are_in_order_and_keep_to_their_prefix(&store)).await;
    Box::pin(what_is_not_read_at_once_can_be_read_later(&store)).await;
    Box::pin(a_walk_finds_what_is_asked_for_and_nothing_else(&store)).await;
    Box::pin(commits::what_was_committed_survives_a_crash_and_nothing_else(&store)).await;
    Box::pin(the_change_log_counts_on_over_openings(&store)).await;
    Box::pin(the_change_log_is_read_from_any_entry_on_and_costs_a_row_for_many(&store)).await;
    Box::pin(the_change_log_is_searched_by_time(&store)).await;
    Box::pin(a_change_log_without_pages_is_read_and_goes_on_with_them(&store)).await;
    Box::pin(records_of_json_are_read_and_become_compact_as_they_are_written(&store)).await;
    Box::pin(records_of_json_become_compact_as_their_files_are_merged(&store)).await;
    Box::pin(a_reader_sees_the_writers_commits_and_writes_nothing(&store)).await;
    Box::pin(a_reader_of_nothing_creates_nothing(&store)).await;
    Box::pin(a_scan_shows_the_state_it_began_with(&store)).await;
    Box::pin(what_moves_while_it_is_read_is_met_once_and_never_in_none_of_its_places(&store)).await;
    Box::pin(commits::commits_side_by_side_are_all_durable(&store)).await;
    Box::pin(commits::what_is_committed_together_is_written_once_in_its_order(&store)).await;
    Box::pin(commits::what_is_handed_over_is_durable_with_what_follows_it_and_not_found_before(&store)).await;
    Box::pin(commits::a_second_writer_fences_the_first(&store)).await;
    Box::pin(a_newer_schema_is_refused_and_its_writer_left_alone(&store)).await;
    Box::pin(a_record_that_does_not_parse_is_named(&store)).await;
}

pub(crate) async fn open(store: &Store, path: &str) -> Catalog {
    Catalog::open(Arc::clone(store), path, CatalogConfig::default()).await.unwrap()
}

async fn every_record_comes_back_as_it_was_put(store: &Store) {
    let catalog = open(store, "catalogs/round-trip").await;
    let first = run();
    let second = run();
    let same = "https://example.org/same";
    let subjects = [
        Subject::Resource(same.to_owned()),
        Subject::Document(same.to_owned()),
        Subject::Entry(same.to_owned()),
        Subject::Message(same.to_owned()),
    ];
    let set = SetId::new("https://example.org/capabilitylist.xml");
    let document_record = document();

    let mut batch = Batch::new();
    batch.put_resource(&uri("a"), &resource("a"));
    batch.put_pending(&uri("a"), &pending(1));
    batch.put_pending(&uri("a"), &pending(2));
    batch.put_document("https://example.org/list.xml", &document_record);
    for (n, subject) in subjects.iter().enumerate() {
        batch.put_problem(subject, &problem(&n.to_string()));
    }
    batch.put_set(&set, &SetRecord::default());
    batch.put_run(&first);
    batch.put_run(&second);
    batch.put_last_seq(Seq::new(2));
    let look = DiscoveryReport {
        well_known_missing: Some("https://example.org/".to_owned()),
        ..DiscoveryReport::default()
    };
    batch.put_look(&look);
    catalog.commit(batch).await.unwrap();

    assert_eq!(catalog.resource(&uri("a")).await.unwrap(), Some(resource("a")));
    assert_eq!(catalog.resource(&uri("b")).await.unwrap(), None);
    assert_eq!(catalog.pending(&uri("a")).await.unwrap(), Some(pending(2)), "the later put counts");
    assert_eq!(catalog.pending_many(&[uri("b"), uri("a")]).await.unwrap(), [None, Some(pending(2))]);
    assert_eq!(catalog.document("https://example.org/list.xml").await.unwrap(), Some(document_record));
    let problems = catalog.problems_many(&subjects).await.unwrap();
    let messages: Vec<String> = problems.into_iter().map(|problem| problem.unwrap().message).collect();
    assert_eq!(
        messages,
        ["0", "1", "2", "3"],
        "a resource, a document, an entry and a message of one name are four subjects"
    );
    let scanned: Vec<(Subject, _)> = catalog.scan_problems().await.unwrap().try_collect().await.unwrap();
    assert!(scanned.iter().all(|(subject, _)| subjects.contains(subject)));
    assert_eq!(scanned.len(), 4);
    let scanned = catalog.scan_message_problems().await.unwrap();
    let scanned: Vec<Subject> = scanned.map_ok(|(subject, _)| subject).try_collect().await.unwrap();
    assert_eq!(scanned, [subjects[3].clone()]);
    // In the order of their keys: document, entry, message, resource.
    let scanned = catalog.scan_problems_after(Some(&subjects[2])).await.unwrap();
    let scanned: Vec<Subject> = scanned.map_ok(|(subject, _)| subject).try_collect().await.unwrap();
    assert_eq!(scanned, [subjects[3].clone(), subjects[0].clone()]);
    let scanned = catalog.scan_resource_problems("", None).await.unwrap();
    let scanned: Vec<Subject> = scanned.map_ok(|(subject, _)| subject).try_collect().await.unwrap();
    assert_eq!(scanned, [subjects[0].clone()]);
    assert_eq!(catalog.sets().await.unwrap(), [(set.clone(), SetRecord::default())]);
    assert_eq!(catalog.run(first.id).await.unwrap(), Some(first));
    assert_eq!(catalog.last_run().await.unwrap(), Some(second));
    assert_eq!(catalog.last_seq().await.unwrap(), Seq::new(2));
    assert_eq!(catalog.look().await.unwrap(), Some(look));
    assert_eq!(catalog.count_pending().await.unwrap(), 1);

    let mut batch = Batch::new();
    batch.delete_pending(&uri("a"));
    batch.delete_problem(&subjects[1]);
    catalog.commit(batch).await.unwrap();
    assert_eq!(catalog.count_pending().await.unwrap(), 0);
    assert_eq!(catalog.problem(&subjects[1]).await.unwrap(), None);
    assert!(catalog.problem(&subjects[0]).await.unwrap().is_some());
    catalog.close().await.unwrap();
    catalog.close().await.unwrap();
    assert!(matches!(put(&catalog, "late").await, Err(CatalogError::Closed { .. })));
}

async fn scans_are_in_order_and_keep_to_their_prefix(store: &Store) {
    let catalog = open(store, "catalogs/scans").await;
    let mut batch = Batch::new();
    for path in ["b/2", "a", "b", "b/10", "c", "b/1", "b0", "é"] {
        batch.put_resource(&uri(path), &resource(path));
        batch.put_pending(&uri(path), &pending(1));
    }
    catalog.commit(batch).await.unwrap();
    assert_eq!(paths(&catalog, "", None).await, ["a", "b", "b/1", "b/10", "b/2", "b0", "c", "é"]);
    assert_eq!(paths(&catalog, "b/", None).await, ["b/1", "b/10", "b/2"]);
    assert_eq!(paths(&catalog, "b/", Some("b/1")).await, ["b/10", "b/2"]);
    assert_eq!(
        paths(&catalog, "b/", Some("a")).await,
        ["b/1", "b/10", "b/2"],
        "what lies before counts for nothing"
    );
    assert_eq!(
        paths(&catalog, "b/", Some("b/11")).await,
        ["b/2"],
        "what is not there is a place all the same"
    );
    assert!(paths(&catalog, "b/", Some("c")).await.is_empty());
    assert!(paths(&catalog, "nothing", None).await.is_empty());
    let after_c: Vec<(ResourceUri, _)> =
        catalog.scan_pending(Some(&uri("c"))).await.unwrap().try_collect().await.unwrap();
    assert_eq!(after_c.len(), 1);
    assert_eq!(after_c[0].0, uri("é"));
    let below: Vec<(ResourceUri, _)> =
        catalog.scan_pending_below(uri("c").as_str(), None).await.unwrap().try_collect().await.unwrap();
    assert_eq!(below.iter().map(|(found, _)| found.clone()).collect::<Vec<_>>(), [uri("c")]);
    catalog.close().await.unwrap();
}

async fn what_is_not_read_at_once_can_be_read_later(store: &Store) {
    let catalog = open(store, "catalogs/unread").await;
    let mut batch = Batch::new();
    for name in ["a", "b", "c", "d", "e"] {
        let bitstream = resource(name).bitstream.filter(|_| name != "b");
        batch.put_resource(&uri(name), &ResourceRecord { bitstream, ..resource(name) });
    }
    // Neither is a resource.
    batch.put_pending(&uri("f"), &pending(1));
    batch.put_document("https://example.org/list.xml", &document());
    catalog.commit(batch).await.unwrap();

    let batches: Vec<_> = catalog.scan_resources_unread(2).await.unwrap().try_collect().await.unwrap();
    assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 1]);
    let read: Vec<_> = catalog.scan_resources(None, None).await.unwrap().try_collect().await.unwrap();
    for (unread, (uri, record)) in batches.iter().flatten().zip(&read) {
        assert_eq!(unread.uri().unwrap(), uri.as_str());
        assert_eq!(&unread.read().unwrap(), &(uri.clone(), record.clone()));
        let holding = unread.holding().unwrap();
        let held = record.bitstream.clone();
        assert_eq!(holding.sets, record.sets);
        assert_eq!(
            holding.bitstream.map(|held| (held.location, held.computed)),
            held.map(|held| (held.location, held.computed)),
            "{uri}"
        );
    }
    catalog.close().await.unwrap();
}

/// Some are adjacent, some are far apart, some are missing, and some are in files of their own.
async fn a_walk_finds_what_is_asked_for_and_nothing_else(store: &Store) {
    for part in 0..4 {
        let catalog = open(store, "catalogs/walk").await;
        let mut batch = Batch::new();
        for n in (part..2_000).step_by(4).filter(|n| n % 3 != 0) {
            batch.put_resource(&uri(&format!("{n:04}")), &resource(&format!("{n:04}")));
        }
        catalog.commit(batch).await.unwrap();
        catalog.close().await.unwrap();
    }
    let catalog = open(store, "catalogs/walk").await;
    let asked: Vec<usize> =
        (0..60).chain((60..1_900).step_by(37)).chain([1_990, 1_991, 1_999, 5_000]).collect();
    let mut walk = catalog.walk_resources();
    for n in asked {
        let found = walk.find(uri(&format!("{n:04}")).as_str().as_bytes()).await.unwrap();
        let found = found.map(|found| found.read().unwrap().0);
        assert_eq!(found, (n % 3 != 0 && n < 2_000).then(|| uri(&format!("{n:04}"))), "{n}");
    }
    catalog.close().await.unwrap();
}

async fn the_change_log_counts_on_over_openings(store: &Store) {
    for path in ["a", "b", "a"] {
        let catalog = open(store, "catalogs/changes").await;
        let mut batch = Batch::new();
        batch.append_change(&change(path));
        batch.append_change(&change("x"));
        catalog.commit(batch).await.unwrap();
        // Every second one crashes.
        if path == "b" { drop(catalog) } else { catalog.close().await.unwrap() }
    }
    let catalog = open(store, "catalogs/changes").await;
    let all: Vec<_> = catalog.scan_changes(0).await.unwrap().try_collect().await.unwrap();
    let numbers: Vec<u64> = all.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
    assert_eq!(all[2].1.uri, uri("b"));
    let late: Vec<_> = catalog.scan_changes(4).await.unwrap().try_collect().await.unwrap();
    assert_eq!(late.len(), 2);
    let of_a: Vec<_> = catalog.changes_of(&uri("a")).await.unwrap().try_collect().await.unwrap();
    assert_eq!(of_a.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 4]);
    catalog.close().await.unwrap();
}

async fn the_change_log_is_read_from_any_entry_on_and_costs_a_row_for_many(store: &Store) {
    let catalog = open(store, "catalogs/pages").await;
    let before = catalog.asked().written;
    for commit in 0..3 {
        let mut batch = Batch::new();
        (0..200).for_each(|n| batch.append_change(&change(&format!("{commit}/{n}"))));
        catalog.commit(batch).await.unwrap();
    }
    assert!(catalog.asked().written - before < 60, "rows of 600 entries");
    for from in [0, 1, 50, 199, 200, 201, 599, 600] {
        let scan = catalog.scan_changes(from).await.unwrap();
        let numbers: Vec<u64> = scan.map_ok(|(number, _)| number).try_collect().await.unwrap();
        assert!(numbers.into_iter().eq(from..600), "{from}");
    }
    let of_one: Vec<_> = catalog.changes_of(&uri("2/7")).await.unwrap().try_collect().await.unwrap();
    assert_eq!(of_one.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [407]);
    catalog.close().await.unwrap();
}

async fn the_change_log_is_searched_by_time(store: &Store) {
    let catalog = open(store, "catalogs/times").await;
    let at = |second: u64| Timestamp::from_second(second as i64).unwrap();
    assert_eq!(catalog.first_change_since(at(0)).await.unwrap(), 0);
    let mut batch = Batch::new();
    // Three entries each second.
    (0..900).for_each(|n| {
        batch.append_change(&ChangeLogEntry { at: at(n / 3), ..change(&n.to_string()) });
    });
    catalog.commit(batch).await.unwrap();
    for (second, number) in [(0, 0), (1, 3), (150, 450), (299, 897), (300, 900), (9_999, 900)] {
        assert_eq!(catalog.first_change_since(at(second)).await.unwrap(), number, "{second}");
    }
    catalog.close().await.unwrap();
}

async fn a_change_log_without_pages_is_read_and_goes_on_with_them(store: &Store) {
    open(store, "catalogs/old").await.close().await.unwrap();
    let old = Db::open("catalogs/old", Arc::clone(store)).await.unwrap();
    old.put(b"mschema", b"1").await.unwrap();
    old.put(b"mnext-change", b"2").await.unwrap();
    for number in 0..2_u64 {
        let key = [b"c".as_slice(), &number.to_be_bytes()].concat();
        old.put(key, serde_json::to_vec(&change(&number.to_string())).unwrap()).await.unwrap();
    }
    old.flush_with_options(memtable_flush()).await.unwrap();
    old.close().await.unwrap();

    let catalog = open(store, "catalogs/old").await;
    let mut batch = Batch::new();
    ["2", "3"].iter().for_each(|path| batch.append_change(&change(path)));
    catalog.commit(batch).await.unwrap();
    let scan = catalog.scan_changes(1).await.unwrap();
    let all: Vec<_> = scan.map_ok(|(number, entry)| (number, entry.uri)).try_collect().await.unwrap();
    assert_eq!(all, [1, 2, 3].map(|number: u64| (number, uri(&number.to_string()))));
    catalog.close().await.unwrap();
    let raw = Db::open("catalogs/old", Arc::clone(store)).await.unwrap();
    assert_eq!(
        raw.get(b"mschema").await.unwrap().unwrap(),
        catalog::SCHEMA.to_string(),
        "an older version is told"
    );
    raw.close().await.unwrap();
}

async fn records_of_json_are_read_and_become_compact_as_they_are_written(store: &Store) {
    open(store, "catalogs/json").await.close().await.unwrap();
    let raw = || async { Db::open("catalogs/json", Arc::clone(store)).await.unwrap() };
    let old = raw().await;
    old.put(b"mschema", b"2").await.unwrap();
    let key = |letter: u8, path: &str| [&[letter], uri(path).as_str().as_bytes()].concat();
    for path in ["a", "b"] {
        old.put(key(b'r', path), serde_json::to_vec(&resource(path)).unwrap()).await.unwrap();
        old.put(key(b'p', path), serde_json::to_vec(&pending(7)).unwrap()).await.unwrap();
    }
    old.flush_with_options(memtable_flush()).await.unwrap();
    old.close().await.unwrap();

    let catalog = open(store, "catalogs/json").await;
    put(&catalog, "b").await.unwrap();
    put(&catalog, "c").await.unwrap();
    assert_eq!(catalog.pending(&uri("a")).await.unwrap(), Some(pending(7)));
    let unread: Vec<_> = catalog.scan_resources_unread(9).await.unwrap().try_collect().await.unwrap();
    let unread: Vec<_> = unread.into_iter().flatten().collect();
    for (unread, path) in unread.iter().zip(["a", "b", "c"]) {
        assert_eq!(unread.read().unwrap(), (uri(path), resource(path)));
        let held = unread.holding().unwrap().bitstream.unwrap();
        assert_eq!(held.computed, resource(path).bitstream.unwrap().computed);
        assert!(unread.mentions("https://example.org/resourcelist.xml"));
        assert!(!unread.mentions("https://example.org/other.xml"));
    }
    assert_eq!(unread.len(), 3);
    catalog.close().await.unwrap();

    let raw = raw().await;
    let first_byte = |path: &str| raw.get(key(b'r', path));
    assert_eq!(first_byte("a").await.unwrap().unwrap()[0], b'{', "it was neither written again nor merged");
    assert_ne!(first_byte("b").await.unwrap().unwrap()[0], b'{');
    raw.close().await.unwrap();
}

async fn records_of_json_become_compact_as_their_files_are_merged(store: &Store) {
    const PATH: &str = "catalogs/merged";
    open(store, PATH).await.close().await.unwrap();
    let old = Db::open(PATH, Arc::clone(store)).await.unwrap();
    let key = |path: &str| [b"r", uri(path).as_str().as_bytes()].concat();
    let paths = ["a", "b", "c", "d", "e"];
    for path in paths {
        // So many files are merged as soon as a catalog is opened.
        old.put(key(path), serde_json::to_vec(&resource(path)).unwrap()).await.unwrap();
        old.flush_with_options(memtable_flush()).await.unwrap();
    }
    old.put(key("damaged"), b"{\"cut").await.unwrap();
    old.flush_with_options(memtable_flush()).await.unwrap();
    old.close().await.unwrap();

    let catalog = open(store, PATH).await;
    let admin = AdminBuilder::new(PATH, Arc::clone(store)).build();
    found("the files are merged", async || {
        let manifest = admin.read_manifest(None).await.unwrap().unwrap();
        (!manifest.compacted().is_empty() && manifest.l0().len() < 4).then_some(())
    })
    .await;
    for path in paths {
        assert_eq!(catalog.resource(&uri(path)).await.unwrap(), Some(resource(path)));
    }
    catalog.close().await.unwrap();

    let raw = Db::open(PATH, Arc::clone(store)).await.unwrap();
    let record = raw.get(key("a")).await.unwrap().unwrap();
    assert!(record.len() < serde_json::to_vec(&resource("a")).unwrap().len() / 2, "{} bytes", record.len());
    assert_ne!(record[0], b'{');
    assert_eq!(raw.get(key("damaged")).await.unwrap().unwrap(), b"{\"cut".as_slice());
    raw.close().await.unwrap();
}

async fn a_reader_sees_the_writers_commits_and_writes_nothing(store: &Store) {
    let catalog = open(store, "catalogs/read").await;
    put(&catalog, "a").await.unwrap();
    let before = objects(store, "catalogs/read").await;
    let config =
        CatalogConfig { poll_interval: std::time::Duration::from_millis(10), ..CatalogConfig::default() };
    let reader = CatalogReader::open(Arc::clone(store), "catalogs/read", config.clone()).await.unwrap();
    assert_eq!(paths(&reader, "", None).await, ["a"]);
    assert_eq!(reader.resource(&uri("a")).await.unwrap(), Some(resource("a")));
    assert_eq!(objects(store, "catalogs/read").await, before, "a reader writes nothing");

    let end = LogEnd::of(store, "catalogs/read", None).await.unwrap();
    assert!(end.is_some());
    assert_eq!(LogEnd::of(store, "catalogs/read", end.as_ref()).await.unwrap(), end, "nothing was committed");
    put(&catalog, "b").await.unwrap();
    assert!(LogEnd::of(store, "catalogs/read", end.as_ref()).await.unwrap() > end);
    assert_eq!(LogEnd::of(store, "catalogs/none", None).await.unwrap(), None);
    found("the reader sees what was committed", async || reader.resource(&uri("b")).await.unwrap()).await;
    assert_eq!(paths(&reader, "", None).await, ["a", "b"]);
    reader.close().await.unwrap();
    catalog.close().await.unwrap();

    let reader = CatalogReader::open(Arc::clone(store), "catalogs/read", config.clone()).await.unwrap();
    assert_eq!(paths(&reader, "", None).await, ["a", "b"], "a reader needs no writer");
    reader.close().await.unwrap();
}

async fn a_reader_of_nothing_creates_nothing(store: &Store) {
    let config = CatalogConfig::default();
    assert!(!Catalog::exists(store, "catalogs/nothing").await.unwrap());
    let error = CatalogReader::open(Arc::clone(store), "catalogs/nothing", config).await.unwrap_err();
    assert!(matches!(&error, CatalogError::NotFound { path } if path == "catalogs/nothing"), "{error}");
    assert!(objects(store, "catalogs/nothing").await.is_empty());
    open(store, "catalogs/nothing").await.close().await.unwrap();
    assert!(Catalog::exists(store, "catalogs/nothing").await.unwrap());
}

async fn a_scan_shows_the_state_it_began_with(store: &Store) {
    let catalog = open(store, "catalogs/snapshot").await;
    let mut batch = Batch::new();
    for n in 0..1000 {
        batch.put_pending(&uri(&format!("{n:04}")), &pending(n));
    }
    catalog.commit(batch).await.unwrap();
    let mut scan = catalog.scan_pending(None).await.unwrap();
    scan.next().await.unwrap().unwrap();
    let mut batch = Batch::new();
    for n in 0..1000 {
        batch.delete_pending(&uri(&format!("{n:04}")));
    }
    batch.put_pending(&uri("new"), &pending(1));
    catalog.commit(batch).await.unwrap();
    let rest: Vec<_> = scan.try_collect().await.unwrap();
    assert_eq!(rest.len(), 999);
    assert_eq!(catalog.count_pending().await.unwrap(), 1);
    catalog.close().await.unwrap();
}

async fn what_moves_while_it_is_read_is_met_once_and_never_in_none_of_its_places(store: &Store) {
    let catalog = open(store, "catalogs/known").await;
    let uris: Vec<_> = (0..300).map(|n| uri(&format!("{n:04}"))).collect();
    let mut batch = Batch::new();
    for (n, uri) in uris.iter().enumerate() {
        batch.put_pending(uri, &pending(n as u64));
    }
    catalog.commit(batch).await.unwrap();
    let settling = async {
        for (n, some) in uris.chunks(5).enumerate() {
            let mut batch = Batch::new();
            for uri in some {
                batch.delete_pending(uri);
                if n % 3 == 0 {
                    batch.put_problem(&Subject::Resource(uri.to_string()), &problem("no answer"));
                } else {
                    batch.put_resource(uri, &resource("settled"));
                }
            }
            catalog.commit(batch).await.unwrap();
        }
    };
    let config = CatalogConfig { poll_interval: Duration::from_millis(1), ..CatalogConfig::default() };
    let reader = CatalogReader::open(Arc::clone(store), "catalogs/known", config).await.unwrap();
    let reading = async {
        let mut looks = 0;
        loop {
            let known: Vec<_> = reader.scan_known(None, None).await.unwrap().try_collect().await.unwrap();
            assert!(known.iter().map(|known| &known.uri).eq(&uris), "{} of 300, look {looks}", known.len());
            looks += 1;
            if known.iter().all(|known| known.pending.is_none()) {
                break;
            }
        }
    };
    tokio::join!(settling, reading);
    let below = |prefix: &'static str, after: Option<usize>| {
        let reader = &reader;
        let uris = &uris;
        async move {
            let prefix = uri(prefix);
            let after = after.map(|n| &uris[n]);
            let scan = reader.scan_known(Some(prefix.as_str()), after).await.unwrap();
            scan.map_ok(|known| (known.uri.clone(), known.state())).try_collect::<Vec<_>>().await.unwrap()
        }
    };
    let stands = [(uris[94].clone(), ResourceState::Problem), (uris[95].clone(), ResourceState::Present)];
    assert_eq!(below("009", Some(93)).await[..2], stands);
    assert_eq!(below("02", None).await.len(), 100);
    assert_eq!(below("03", None).await, []);
    reader.close().await.unwrap();
    catalog.close().await.unwrap();
}

async fn a_newer_schema_is_refused_and_its_writer_left_alone(store: &Store) {
    open(store, "catalogs/newer").await.close().await.unwrap();
    let newer = Db::open("catalogs/newer", Arc::clone(store)).await.unwrap();
    newer.put(b"mschema", b"7").await.unwrap();
    newer.flush_with_options(memtable_flush()).await.unwrap();

    let refused =
        Catalog::open(Arc::clone(store), "catalogs/newer", CatalogConfig::default()).await.unwrap_err();
    let message = refused.to_string();
    assert!(
        matches!(refused, CatalogError::NewerSchema { found: 7, known: catalog::SCHEMA, .. }),
        "{message}"
    );
    assert!(message.contains("catalogs/newer has schema 7"), "{message}");
    let refused =
        CatalogReader::open(Arc::clone(store), "catalogs/newer", CatalogConfig::default()).await.unwrap_err();
    assert!(matches!(refused, CatalogError::NewerSchema { .. }));

    newer.put(b"mschema", b"7").await.unwrap();
    newer.flush().await.expect("the newer writer was not fenced");
    newer.close().await.unwrap();
}

async fn a_record_that_does_not_parse_is_named(store: &Store) {
    let catalog = open(store, "catalogs/corrupt").await;
    put(&catalog, "a").await.unwrap();
    catalog.close().await.unwrap();
    let raw = Db::open("catalogs/corrupt", Arc::clone(store)).await.unwrap();
    raw.put(b"rhttps://example.org/b", b"{\"sets\":1}").await.unwrap();
    raw.put(b"rnot a uri", serde_json::to_vec(&resource("x")).unwrap()).await.unwrap();
    raw.put(b"c123", b"{}").await.unwrap();
    raw.close().await.unwrap();

    let catalog = open(store, "catalogs/corrupt").await;
    let error = catalog.resource(&uri("b")).await.unwrap_err();
    assert!(
        matches!(&error, CatalogError::Corrupt { key, .. } if key == "resource https://example.org/b"),
        "{error}"
    );
    let mut scan = catalog.scan_resources(None, None).await.unwrap();
    assert_eq!(scan.next().await.unwrap().unwrap().0, uri("a"));
    assert!(matches!(scan.next().await, Some(Err(CatalogError::Corrupt { .. }))));
    assert!(scan.next().await.is_none(), "after an error it ends");
    let error = catalog.scan_resources(None, Some(&uri("b"))).await.unwrap().try_next().await.unwrap_err();
    assert!(matches!(&error, CatalogError::Corrupt { key, .. } if key == "resource not a uri"), "{error}");
    let error = catalog.scan_changes(0).await.unwrap().try_next().await.unwrap_err();
    assert!(error.to_string().contains("change log entry [31, 32, 33]"), "{error}");
    catalog.close().await.unwrap();
}

fn memtable_flush() -> slatedb::config::FlushOptions {
    slatedb::config::FlushOptions { flush_type: slatedb::config::FlushType::MemTable }
}

pub(crate) async fn objects(store: &Store, path: &str) -> Vec<String> {
    let mut found: Vec<String> = store
        .list(Some(&path.into()))
        .map_ok(|object| object.location.to_string())
        .try_collect()
        .await
        .unwrap();
    found.sort();
    found
}
