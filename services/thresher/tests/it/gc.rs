//! Collections of garbage during any other work: nothing that a record points to is ever missing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Destination, Run, source};
use catalog::{CatalogConfig, CatalogReader};
use futures::TryStreamExt as _;
use jiff::{SignedDuration, Timestamp};
use model::PackId;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use simulated_source::{ChangeKind, Changes, SimulatedSource, Size, SourceSpec};
use store::{Key, Store, StoreOptions, StoreTarget};
use testkit::servers::S3Fixture;

/// Sets the seed, to reproduce a failure.
const SEED: &str = "THRESHER_GC_SEED";
/// How often a collection is killed.
const KILLS: u32 = 20;
/// The most collections begun for that. Some end before they are killed.
const BEGUN: u32 = 20 * KILLS;
/// The time limit of a harvest that the test waits for.
const HARVEST: Duration = Duration::from_secs(300);

/// Some bodies are too large for a pack.
fn mixed(resources: u64) -> SourceSpec {
    SourceSpec::default().resources(resources).size(Size::Range(0, 500_000))
}

/// All files below a folder of Thresher's own data.
fn files(copy: &Destination, folder: &str) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    let mut folders = vec![Path::new(&copy.into).join(".thresher").join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("a file of our own").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path);
            }
        }
    }
    files
}

fn stored(copy: &Destination) -> BTreeSet<PathBuf> {
    ["bitstreams", "packs", "packages"].iter().flat_map(|folder| files(copy, folder)).collect()
}

/// Makes the stored objects a month old.
fn age(copy: &Destination) {
    let long_ago = Timestamp::now() - SignedDuration::from_hours(30 * 24);
    for path in stored(copy) {
        // A collection may be running.
        if let Ok(file) = std::fs::File::options().write(true).open(path) {
            file.set_modified(long_ago.into()).expect("our own file");
        }
    }
}

/// Reads all bytes that any record of any catalog points to, and compares them with their digests. Returns the keys of
/// the objects that contain them.
async fn every_byte_is_there(copy: &Destination) -> BTreeSet<String> {
    let target: StoreTarget = copy.into.parse().expect("a place");
    let options = StoreOptions { read_only: true, ..StoreOptions::default() };
    let store = Store::open(&target, options).await.expect("the store is there");
    let mut keys = BTreeSet::new();
    for source in store.catalogs().await.expect("catalogs") {
        let path = Key::Catalog(source.clone()).to_string();
        let catalog = CatalogReader::open(store.object_store(), &path, CatalogConfig::default()).await;
        let catalog = catalog.expect("a catalog");
        let mut resources = catalog.scan_resources(None, None).await.expect("resources");
        while let Some((uri, record)) = resources.try_next().await.expect("a record") {
            for held in [record.bitstream, record.deleted].into_iter().flatten() {
                if let Err(error) = store.read_verified(&held).await {
                    panic!("{uri} of {source}, settled {}: {error}", record.settled_at);
                }
                keys.insert(Key::of(&held.location).to_string());
            }
        }
        catalog.close().await.expect("it can be closed");
    }
    keys
}

#[tokio::test]
async fn what_is_of_no_use_goes_and_is_said_before_and_after() {
    let source = source(mixed(60)).await;
    let copy = Destination::directory();
    copy.sync(&source.url()).exits(0);
    source.change(Changes { create: 0, update: 20, delete: 0 });
    let gone = source.resource_uri(7);
    source.change_one(7, ChangeKind::Deleted);
    copy.sync(&source.url()).exits(0);
    age(&copy);
    let pack = files(&copy, "packs").into_iter().next().expect("a pack");
    let orphan = pack.with_file_name(format!("{}.zip", PackId::fresh()));
    std::fs::copy(&pack, &orphan).unwrap();

    // The earlier versions were released a moment ago.
    let lately = copy.run("gc", &["--dry-run", "--retention", "1h", "--json"]).exits(0);
    assert_eq!(lately.json()["removed"]["objects"], 0, "{lately}");
    age(&copy);
    let run = copy.run("gc", &["--retention", "1h", "--json"]).exits(0);
    assert_eq!(run.json()["packs"]["removed"]["objects"], 1, "{run}");
    assert!(!orphan.exists());
    copy.run("restore", &[&gone]).exits(0);
    source.change_one(3, ChangeKind::Deleted);
    let gone = source.resource_uri(3);
    copy.sync(&source.url()).exits(0);
    age(&copy);

    let before = stored(&copy);
    let dry = copy.run("gc", &["--dry-run", "--retention", "0s", "--json"]).exits(0);
    let shown = copy.run("gc", &["--dry-run", "--retention", "0s"]).exits(0);
    assert!(shown.stdout.contains("would remove") && shown.stdout.contains("made final"), "{shown}");
    assert_eq!(stored(&copy), before);
    let real = copy.run("gc", &["--retention", "0s", "--json"]).exits(0);
    let (mut told, dry) = (real.json(), dry.json());
    told["dry_run"] = true.into();
    // What is written anew is in use afterwards, too. How many packs there are depends on the time of the requests.
    let in_use = |report: &serde_json::Value| report["packs"]["in_use"]["objects"].as_u64().unwrap();
    let rewritten = told["rewritten"]["packs"].as_u64().unwrap();
    assert!((in_use(&dry)..=in_use(&dry) + rewritten).contains(&in_use(&told)), "{real}");
    told["packs"]["in_use"] = dry["packs"]["in_use"].clone();
    assert_eq!(told, dry);
    assert!(told["bitstreams"]["removed"]["objects"].as_u64() > Some(3), "{real}");
    assert_eq!(told["tombstones"]["given_up"], 1, "{real}");
    every_byte_is_there(&copy).await;

    copy.run("restore", &[&gone]).exits(1).says(&[&gone, "removed its bytes"]);
    copy.run("cat", &[&gone]).exits(1).complains(&[&gone], &["removed its bytes"]);
    assert!(copy.explain(&gone).contains("removed its bytes"));
    assert_eq!(copy.present().len(), 59);

    // Compacted packs are removed when no reader can use them any more. Without retention, that is at once.
    age(&copy);
    copy.run("gc", &["--retention", "0s"]).exits(0);
    let needed = every_byte_is_there(&copy).await;
    assert_eq!(stored(&copy).len(), needed.len());
}

#[tokio::test]
async fn with_an_unreadable_catalog_nothing_goes_and_it_is_named() {
    let source = source(mixed(10)).await;
    let copy = Destination::directory();
    copy.sync(&source.url()).exits(0);
    source.change(Changes { create: 0, update: 5, delete: 0 });
    copy.sync(&source.url()).exits(0);
    age(&copy);
    for file in files(&copy, "catalogs").iter().filter(|path| path.to_string_lossy().contains("manifest")) {
        std::fs::write(file, "gibberish").unwrap();
    }
    let before = stored(&copy);
    let run = copy.run("gc", &["--retention", "0s"]).exits(3);
    run.complains(&["catalog of 127-0-0-1", "Nothing was removed"], &["cannot be read"]);
    assert_eq!(stored(&copy), before);
}

#[tokio::test]
async fn in_a_bucket_the_owners_part_is_left_unless_it_is_asked_for() {
    let source = source(mixed(12)).await;
    let copy = Destination::s3(&S3Fixture::get().await);
    copy.run("gc", &[]).exits(2);
    copy.sync(&source.url()).exits(0);
    source.change(Changes { create: 0, update: 4, delete: 2 });
    copy.sync(&source.url()).exits(0);
    copy.run("gc", &["--retention", "0s"]).exits(2).complains(&["--retention"], &["at least 1h"]);
    let run = copy.run("gc", &["--json"]).exits(0);
    assert_eq!((&run.json()["removed"]["objects"], &run.json()["dry_run"]), (&0.into(), &false.into()));
    copy.run("gc", &["--exclusive"]).exits(0);
    assert_eq!(copy.present().len(), 10);
    copy.run("gc", &["--into", "/does/not/exist"]).exits(2);
}

/// A child process that is killed with the test.
struct Running(Child);

impl Running {
    fn start(mut command: Command) -> Self {
        // Its standard error is the test's own. A pipe without a reader would block it once full.
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
        Self(command.spawn().expect("the binary was built by cargo"))
    }

    /// Whether it has ended. A collection that began at the same moment may fence a harvest.
    fn is_over(&mut self) -> bool {
        self.0.try_wait().expect("our own child").is_some()
    }

    /// Whether it has finished, which a collection always does.
    fn has_ended_well(&mut self) -> bool {
        let Some(status) = self.0.try_wait().expect("our own child") else { return false };
        assert!(status.success(), "it ended with {status}");
        true
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two Sources with the same content share one store. Everything that the first one stored is deleted, and stays there
/// for a month. It is garbage, and the harvest of the second finds it at the same time.
async fn garbage_that_is_found_again(resources: u64) -> (SimulatedSource, SimulatedSource, Destination) {
    let spec = || SourceSpec::default().seed(19).resources(resources).size(Size::Range(200_000, 400_000));
    let first = source(spec()).await;
    let second = source(spec().latency(Duration::from_millis(150))).await;
    let copy = Destination::directory();
    copy.sync_with(&first.url(), &["--view", "none", "--concurrency", "8"]).exits(0);
    first.change(Changes { create: 0, update: 0, delete: resources - 10 });
    copy.sync_with(&first.url(), &["--view", "none"]).exits(0);
    age(&copy);
    (first, second, copy)
}

fn harvest(copy: &Destination, source: &SimulatedSource) -> Running {
    Running::start(copy.command("sync", &[&source.url(), "--view", "none", "--concurrency", "4"]))
}

#[tokio::test]
async fn killed_twenty_times_beside_a_harvest_nothing_that_a_record_points_to_is_missing() {
    let seed = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random);
    eprintln!("{SEED}={seed}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (first, second, copy) = garbage_that_is_found_again(300).await;
    let before = stored(&copy).len();
    let mut harvesting = harvest(&copy, &second);
    let mut killed = 0;
    let mut ended = 0;
    let mut beside = 0;
    while killed < KILLS {
        assert!(killed + ended < BEGUN, "it is hardly ever killed: {killed} times in {BEGUN}");
        let lies = stored(&copy);
        let mut gc = Running::start(copy.command("gc", &["--retention", "0s"]));
        if (killed + ended) % 2 == 0 {
            tokio::time::sleep(Duration::from_millis(rng.random_range(5..900))).await;
        } else {
            // Right after the first removal: a record that is not written by now never is.
            while lies.iter().all(|path| path.exists()) && !gc.is_over() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        if gc.has_ended_well() {
            ended += 1
        } else {
            killed += 1
        }
        drop(gc);
        beside += u32::from(!harvesting.is_over());
        if harvesting.is_over() {
            // It had finished. There is more to do, and the earlier objects are garbage.
            second.change(Changes { create: 5, update: 60, delete: 5 });
            harvesting = harvest(&copy, &second);
        }
        if killed % 5 == 0 {
            every_byte_is_there(&copy).await;
        }
    }
    let begun = Instant::now();
    while !harvesting.is_over() {
        assert!(begun.elapsed() < HARVEST, "the harvest does not come to its end");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    eprintln!("killed {killed}, came to their end {ended}, beside a harvest {beside}");
    assert!(beside >= KILLS / 2, "the harvests are too short to have anything beside them");
    every_byte_is_there(&copy).await;
    // Interrupted runs are resumed, and the copies equal the Sources.
    for source in [&second, &first] {
        let run: Run = copy.sync_with(&source.url(), &["--view", "none"]).exits(0);
        assert_eq!(run.json()["in_sync"], true, "{run}");
    }
    age(&copy);
    copy.run("gc", &["--retention", "0s"]).exits(0);
    age(&copy);
    copy.run("gc", &["--retention", "0s"]).exits(0);
    let needed = every_byte_is_there(&copy).await;
    assert_eq!(stored(&copy).len(), needed.len(), "what is left is what is needed; it was {before} once");
    let present: usize = copy.ls().values().filter(|held| held.state == "present").count();
    assert!(present as u64 >= second.len(), "{present}");
    for uri in [second.resource_uri(0), second.expected().last().expect("some are left").uri] {
        if let Some(body) = second.body(&uri) {
            assert!(copy.cat(&uri) == body, "{uri} has other bytes than its Source");
        }
    }
}

#[tokio::test]
async fn killed_twenty_times_while_it_rewrites_packs_every_record_points_to_its_bytes() {
    let seed = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(rand::random);
    eprintln!("{SEED}={seed}");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let resources = 1_500;
    let source = source(SourceSpec::default().resources(resources).size(Size::Range(0, 3_000))).await;
    let copy = Destination::directory();
    let mut killed = 0;
    let mut begun = 0;
    let mut rewritten = 0;
    while killed < KILLS {
        begun += 1;
        assert!(begun < BEGUN, "it is hardly ever killed: {killed} times in {BEGUN}");
        if killed % 5 == 0 {
            // After that, four of five resources are in other packs, or deleted.
            source.change(Changes { create: 0, update: resources / 2, delete: 40 });
            copy.sync_with(&source.url(), &["--view", "none"]).exits(0);
            age(&copy);
        }
        let before = copy.run("gc", &["--dry-run", "--retention", "0s", "--json"]).exits(0);
        rewritten += u32::from(before.json()["rewritten"]["packs"].as_u64() > Some(0));
        let lies = stored(&copy);
        let mut gc = Running::start(copy.command("gc", &["--retention", "0s"]));
        if begun % 2 == 0 {
            tokio::time::sleep(Duration::from_millis(rng.random_range(20..250))).await;
        } else {
            // Right after the first removal: a record that is not written by now never is.
            while lies.iter().all(|path| path.exists()) && !gc.is_over() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        killed += u32::from(!gc.has_ended_well());
        drop(gc);
        every_byte_is_there(&copy).await;
    }
    eprintln!("{rewritten} times there were packs to be rewritten");
    assert!(rewritten > 0, "nothing was ever rewritten");
    for _ in 0..2 {
        age(&copy);
        copy.run("gc", &["--retention", "0s"]).exits(0);
    }
    let needed = every_byte_is_there(&copy).await;
    assert_eq!(stored(&copy).len(), needed.len());
    assert_eq!(copy.present().len() as u64, source.len());
}
