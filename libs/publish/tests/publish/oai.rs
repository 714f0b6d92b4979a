//! Records of an OAI-PMH repository, by pages of the change log.

use std::sync::Arc;

use catalog::Batch;
use jiff::Timestamp;
use model::{
    ChangeEvent, ChangeLogEntry, OaiDeletions, OaiList, OaiProgress, ResourceRecord, RunId, SetId, SetRecord,
};
use oaipmh::{BaseUrl, Granularity, Request, Selection, Window};
use publish::{
    CatalogRecords, OaiLimits, OaiPage, OaiRecord, OaiRecords, Policy, SeenSets, Takedown, Withdrawals,
};

use resourcesync::{Link, relation};

use super::world::{World, uri};

const ALL: OaiLimits = OaiLimits { records: 100, bytes: 1_000_000, entries: 100_000 };

/// The name of a record in the world.
fn name(number: u32) -> String {
    let base = BaseUrl::new("http://e.org/oai".parse().unwrap()).unwrap();
    let uri = base.record_uri(&format!("oai:{number}"), "oai_dc");
    uri.strip_prefix("http://e.org/").unwrap().to_owned()
}

/// A repository with so many records, and a resource that is none.
async fn repository(records: u32) -> World {
    let mut world = empty_repository().await;
    world.put("file.pdf", "no record").await;
    for number in 0..records {
        world.put(&name(number), &format!("<r>{number}</r>")).await;
    }
    world
}

async fn empty_repository() -> World {
    let world = World::new(Policy::default()).await;
    let list = OaiList {
        base: "http://e.org/oai".to_owned(),
        prefix: "oai_dc".to_owned(),
        set: Some("a:b".to_owned()),
        by_seconds: true,
        deletions: OaiDeletions::Persistent,
        earliest: None,
        progress: OaiProgress::default(),
    };
    let mut batch = Batch::new();
    let set = SetRecord { oai: Some(Box::new(list)), ..SetRecord::default() };
    batch.put_set(&SetId::new("set"), &set);
    world.catalog.commit(batch).await.unwrap();
    world
}

fn base() -> BaseUrl {
    BaseUrl::new("http://e.org/oai".parse().unwrap()).unwrap()
}

async fn records_with(world: &World, withdrawals: &Withdrawals, takedown: &Takedown) -> OaiRecords {
    let held = CatalogRecords::new(&world.catalog, &world.store);
    OaiRecords::of(held, Arc::new(withdrawals.clone()), takedown).await.unwrap().expect("records")
}

async fn records(world: &World) -> OaiRecords {
    records_with(world, &Withdrawals::default(), &Takedown::default()).await
}

/// Identifiers, with a mark of deleted ones.
fn named(page: &OaiPage) -> Vec<String> {
    let name = |OaiRecord { header, .. }: &OaiRecord| {
        format!("{}{}", header.identifier, if header.is_deleted() { " -" } else { "" })
    };
    page.records.iter().map(name).collect()
}

fn datestamps(page: &OaiPage) -> Vec<Timestamp> {
    page.records.iter().map(|record| record.header.datestamp.expect("a datestamp").instant()).collect()
}

/// All pages of a list.
async fn pages(records: &OaiRecords, selection: &Selection, limits: OaiLimits) -> Vec<OaiPage> {
    let mut pages: Vec<OaiPage> = Vec::new();
    loop {
        let after = pages.last().and_then(|page| page.next.clone());
        if after.is_none() && !pages.is_empty() {
            return pages;
        }
        pages.push(
            records.page(selection, after.as_deref(), limits).await.unwrap().expect("a position of it"),
        );
    }
}

async fn list(world: &World) -> OaiPage {
    records(world).await.page(&Selection::all("oai_dc"), None, ALL).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_list_is_cut_into_pages_and_the_last_one_says_so() {
    let world = repository(7).await;
    let records = records(&world).await;
    let limits = OaiLimits { records: 3, ..ALL };
    let pages = pages(&records, &Selection::all("oai_dc"), limits).await;
    let names: Vec<_> = pages.iter().map(named).collect();
    assert_eq!(names[0], ["oai:0", "oai:1", "oai:2"]);
    assert_eq!(names[2], ["oai:6"]);
    assert_eq!(pages.len(), 3);
    assert_eq!(pages[1].records[0].metadata.as_deref(), Some("<r>3</r>"));
    // No token leads to an empty page.
    let six = OaiLimits { records: 7, ..ALL };
    let page = records.headers(&Selection::all("oai_dc"), None, six).await.unwrap().unwrap();
    assert_eq!((page.records.len(), page.next, page.records[0].metadata.clone()), (7, None, None));
    assert_eq!(records.formats()[0].namespace, "http://www.openarchives.org/OAI/2.0/oai_dc/");
    let none = records.page(&Selection::all("mets"), None, ALL).await.unwrap().unwrap();
    assert_eq!((none.records.len(), none.next), (0, None));
}

/// Puts so many records in a few commits. All have the same bytes.
async fn put_many(world: &mut World, records: u32) {
    world.put(&name(0), "<r/>").await;
    let record = world.catalog.resource(&uri(&name(0))).await.unwrap().expect("it is there");
    let sha256 = record.bitstream.as_ref().expect("it is there").computed.sha256();
    for numbers in (1..records).collect::<Vec<_>>().chunks(1_000) {
        let mut batch = Batch::new();
        for uri in numbers.iter().map(|number| uri(&name(*number))) {
            world.clock += 1;
            batch.put_resource(&uri, &ResourceRecord { settled_at: world.now(), ..record.clone() });
            let event = ChangeEvent::Created { sha256 };
            batch.append_change(&ChangeLogEntry::new(
                uri,
                event,
                world.now(),
                RunId::fresh(),
                "http://e.org/oai".into(),
            ));
        }
        world.catalog.commit(batch).await.unwrap();
    }
}

#[tokio::test]
async fn page_ten_thousand_costs_what_the_first_one_costs() {
    let mut world = empty_repository().await;
    put_many(&mut world, 10_100).await;
    let records = records(&world).await;
    let all = Selection::all("oai_dc");
    let one = OaiLimits { records: 1, ..ALL };
    // A page of one record behind a position: the record, and its look-ups.
    let page = async |after: Option<&str>| {
        let before = world.catalog.asked().looked_up;
        let page = records.page(&all, after, one).await.unwrap().unwrap();
        assert!(page.next.is_some(), "a page comes behind it");
        (named(&page).remove(0), world.catalog.asked().looked_up - before)
    };
    let (first, cost) = page(None).await;
    assert_eq!(first, "oai:0");
    assert!(cost > 0);
    // Larger pages lead to the same positions, sooner.
    let mut after: Option<String> = None;
    for _ in 0..33 {
        let limits = OaiLimits { records: 303, ..ALL };
        after = records.headers(&all, after.as_deref(), limits).await.unwrap().unwrap().next;
    }
    assert_eq!(page(after.as_deref()).await, ("oai:9999".to_owned(), cost));
}

#[tokio::test]
async fn a_page_ends_with_its_bytes_and_a_large_record_has_one_alone() {
    let mut world = repository(0).await;
    for (number, length) in [(0, 10), (1, 10), (2, 500), (3, 10), (4, 15)] {
        world.put(&name(number), &"x".repeat(length)).await;
    }
    let limits = OaiLimits { bytes: 20, ..ALL };
    let pages = pages(&records(&world).await, &Selection::all("oai_dc"), limits).await;
    let names: Vec<_> = pages.iter().map(named).collect();
    assert_eq!(names, [vec!["oai:0", "oai:1"], vec!["oai:2"], vec!["oai:3"], vec!["oai:4"]]);
}

#[tokio::test]
async fn records_that_change_between_two_pages_are_listed_again_and_none_is_skipped() {
    let mut world = repository(5).await;
    let limits = OaiLimits { records: 2, ..ALL };
    let first = records(&world).await.page(&Selection::all("oai_dc"), None, limits).await.unwrap().unwrap();
    assert_eq!(named(&first), ["oai:0", "oai:1"]);
    world.put(&name(0), "<new/>").await;
    world.put(&name(3), "<new/>").await;
    world.delete(&name(2)).await;
    world.put(&name(5), "<r>5</r>").await;
    let rest = records(&world).await;
    let rest = rest.page(&Selection::all("oai_dc"), first.next.as_deref(), ALL).await.unwrap().unwrap();
    assert_eq!(named(&rest), ["oai:4", "oai:0", "oai:3", "oai:2 -", "oai:5"]);
    assert!(rest.records[3].metadata.is_none());
    assert_eq!(named(&list(&world).await), ["oai:1", "oai:4", "oai:0", "oai:3", "oai:2 -", "oai:5"]);
}

#[tokio::test]
async fn a_record_is_listed_once_with_its_last_change() {
    let mut world = repository(2).await;
    let hour = |world: &mut World| world.passes(1);
    hour(&mut world);
    world.put(&name(0), "<other/>").await;
    hour(&mut world);
    world.put(&name(0), "<r>0</r>").await;
    let last = world.now();
    let page = list(&world).await;
    assert_eq!(named(&page), ["oai:1", "oai:0"], "the bytes of before do not bring their time back");
    assert_eq!(datestamps(&page)[1], last);
    let records = records(&world).await;
    for listed in page.records {
        let alone = records.record(&listed.header.identifier, "oai_dc").await.unwrap();
        assert_eq!(alone, Some(listed));
    }
    assert_eq!(records.record("oai:7", "oai_dc").await.unwrap(), None);
}

#[tokio::test]
async fn windows_include_their_bounds_and_nothing_beyond() {
    let world = repository(6).await;
    let records = records(&world).await;
    let times = datestamps(&list(&world).await);
    let listed = async |window: Window| {
        let selection = Selection { window, ..Selection::all("oai_dc") };
        let pages = pages(&records, &selection, OaiLimits { records: 2, ..ALL }).await;
        pages.iter().flat_map(named).collect::<Vec<_>>()
    };
    assert_eq!(listed(Window::between(times[2], times[2])).await, ["oai:2"]);
    assert_eq!(listed(Window::between(times[1], times[3])).await, ["oai:1", "oai:2", "oai:3"]);
    assert_eq!(listed(Window::since(times[4])).await, ["oai:4", "oai:5"]);
    assert_eq!(listed(Window { until: Some(times[0]), ..Window::ALL }).await, ["oai:0"]);
    assert!(listed(Window::since(world.now() + jiff::SignedDuration::from_secs(1))).await.is_empty());
}

#[tokio::test]
async fn a_clock_that_went_back_hides_no_record() {
    let mut world = repository(40).await;
    world.clock -= 30;
    world.put(&name(50), "<late/>").await;
    let at = world.now();
    let selection = Selection { window: Window::between(at, at), ..Selection::all("oai_dc") };
    let found = records(&world).await.page(&selection, None, ALL).await.unwrap().unwrap();
    assert!(named(&found).contains(&"oai:50".to_owned()), "{:?}", named(&found));
    let until = Selection { window: Window { until: Some(at), from: None }, ..selection };
    let found = records(&world).await.page(&until, None, ALL).await.unwrap().unwrap();
    assert!(named(&found).contains(&"oai:50".to_owned()), "{:?}", named(&found));
}

#[tokio::test]
async fn positions_of_another_catalog_are_refused() {
    let world = repository(4).await;
    let records = records(&world).await;
    let all = Selection::all("oai_dc");
    let page = records.page(&all, None, OaiLimits { records: 2, ..ALL }).await.unwrap().unwrap();
    let next = page.next.unwrap();
    let (number, check) = next.split_once('-').unwrap();
    let other = format!("{number}-{}", check.chars().rev().collect::<String>());
    for bad in ["", "c", "c1", "1-2", "c99-0011223344556677", "x1-2", &other, &next.to_uppercase()] {
        assert!(records.page(&all, Some(bad), ALL).await.unwrap().is_none(), "{bad}");
    }
    let other = repository(4).await;
    assert!(
        self::records(&other).await.page(&all, Some(&next), ALL).await.unwrap().is_some(),
        "the same entries"
    );
}

#[tokio::test]
async fn a_page_ends_after_many_entries_though_none_matches() {
    let mut world = repository(1).await;
    let mut batch = Batch::new();
    for _ in 0..3_000 {
        let event = ChangeEvent::Retried;
        batch.append_change(&ChangeLogEntry::new(
            uri(&name(0)),
            event,
            world.now(),
            RunId::fresh(),
            "http://e.org/oai".into(),
        ));
    }
    world.catalog.commit(batch).await.unwrap();
    world.put(&name(1), "<r>1</r>").await;
    let limits = OaiLimits { entries: 1_000, ..ALL };
    let pages = pages(&records(&world).await, &Selection::all("oai_dc"), limits).await;
    let names: Vec<_> = pages.iter().map(named).collect();
    assert_eq!(names, [vec!["oai:0".to_owned()], vec![], vec!["oai:1".to_owned()]]);
}

#[tokio::test]
async fn what_is_withdrawn_is_listed_as_deleted_at_that_time_and_comes_back() {
    let mut world = repository(4).await;
    let takedown = Takedown::parse(&format!("{}\n{}", uri(&name(1)), uri("file.pdf"))).unwrap();
    world.passes(1);
    let withdrawn = world.now();
    let known = Withdrawals::default().updated(&base(), &takedown, withdrawn).unwrap();
    let records = records_with(&world, &known, &takedown).await;
    let all = Selection::all("oai_dc");
    let limits = OaiLimits { records: 2, ..ALL };
    let names: Vec<_> = pages(&records, &all, limits).await.iter().map(named).collect();
    assert_eq!(names, [["oai:0", "oai:2"], ["oai:3", "oai:1 -"]]);
    let since = Selection { window: Window::since(withdrawn), ..all.clone() };
    let page = records.page(&since, None, ALL).await.unwrap().unwrap();
    assert_eq!((named(&page), datestamps(&page)), (vec!["oai:1 -".to_owned()], vec![withdrawn]));
    let alone = records.record("oai:1", "oai_dc").await.unwrap().unwrap();
    assert!(alone.metadata.is_none() && alone == page.records[0], "{alone:?}");

    // Nothing is said of its later versions.
    world.put(&name(1), "<later/>").await;
    let records = records_with(&world, &known, &takedown).await;
    let page = records.page(&since, None, ALL).await.unwrap().unwrap();
    assert!(page.records.iter().all(|record| record.metadata.is_none()), "{page:?}");

    world.passes(1);
    let back = world.now();
    let known = known.updated(&base(), &Takedown::default(), back).unwrap();
    let records = records_with(&world, &known, &Takedown::default()).await;
    let since = Selection { window: Window::since(back), ..all };
    let page = records.page(&since, None, ALL).await.unwrap().unwrap();
    assert_eq!((named(&page), datestamps(&page)), (vec!["oai:1".to_owned()], vec![back]));
    assert_eq!(page.records[0].metadata.as_deref(), Some("<later/>"));
}

#[tokio::test]
async fn withdrawals_are_saved_at_the_place() {
    let world = repository(1).await;
    let takedown = Takedown::parse(uri(&name(0)).as_str()).unwrap();
    let known = Withdrawals::default().updated(&base(), &takedown, world.now()).unwrap();
    assert_eq!(world.publication.withdrawals().await.unwrap(), Withdrawals::default());
    world.publication.save_withdrawals(&known).await.unwrap();
    assert_eq!(world.publication.withdrawals().await.unwrap(), known);
}

#[tokio::test]
async fn damaged_records_are_left_out_and_named() {
    let world = repository(3).await;
    world.damage("<r>1</r>").await;
    let page = list(&world).await;
    assert_eq!(named(&page), ["oai:0", "oai:2"]);
    assert_eq!(page.damaged[0].0, "oai:1");
    assert!(records(&world).await.record("oai:1", "oai_dc").await.is_err());
}

#[tokio::test]
async fn an_answer_is_complete_up_to_the_last_change_or_some_minutes_ago() {
    let world = repository(2).await;
    let records = records(&world).await;
    let later = |minutes: i64| world.now() + jiff::SignedDuration::from_mins(minutes);
    assert_eq!(records.complete_until(later(1)).await.unwrap(), world.now());
    assert_eq!(records.complete_until(later(60)).await.unwrap(), later(55));
    assert_eq!(records.complete_until(later(-1)).await.unwrap(), later(-1));
}

#[tokio::test]
async fn other_sources_have_no_records() {
    let world = World::with(2, Policy::default()).await;
    let held = CatalogRecords::new(&world.catalog, &world.store);
    let none = OaiRecords::of(held, Arc::default(), &Takedown::default()).await.unwrap();
    assert!(none.is_none());
}

#[tokio::test]
async fn sets_are_collected_along_the_change_log() {
    let mut world = repository(0).await;
    let base = BaseUrl::new("http://e.org/oai".parse().unwrap()).unwrap();
    let list = |set: &str| {
        let selection = Selection { set: Some(set.to_owned()), ..Selection::all("oai_dc") };
        let url = Request::list_records(selection, Granularity::Day).url(&base);
        Link::new(relation::COLLECTION, url)
    };
    for (number, set) in [(0, "x:y:z"), (1, "a:b"), (2, "q")] {
        world.links = vec![list(set), Link::new(relation::COLLECTION, "http://e.org/other")];
        world.put(&name(number), "<r/>").await;
    }
    let records = records(&world).await;
    let mut seen = SeenSets::default();
    assert!(!records.see_sets(&mut seen, 1).await.unwrap(), "some entries at a time");
    while !records.see_sets(&mut seen, 1).await.unwrap() {}
    let specs: Vec<String> = records.sets(&seen).into_iter().map(|set| set.spec).collect();
    assert_eq!(specs, ["a:b", "a", "q", "x", "x:y", "x:y:z"]);
    let of_set = Selection { set: Some("x".to_owned()), ..Selection::all("oai_dc") };
    let page = records.headers(&of_set, None, ALL).await.unwrap().unwrap();
    assert_eq!(
        (named(&page), page.records[0].header.sets.clone()),
        (vec!["oai:0".to_owned()], vec!["x:y:z".to_owned()])
    );
}
