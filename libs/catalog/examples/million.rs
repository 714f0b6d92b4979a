//! Measures speed and memory of a catalog of a million records: `cargo run --release -p catalog --example
//! million -- [records] [folder] [seconds of rest]`. Prints one line of JSON per phase; `peak_mib` is the largest
//! resident size so far. Files that were merged are removed after five minutes of rest.

use std::error::Error;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use catalog::{Batch, Catalog, CatalogConfig};
use fixity::{Algorithm, Hasher};
use futures::TryStreamExt;
use jiff::Timestamp;
use model::{
    Action, Assurance, Bitstream, Declaration, Listing, Location, Method, Origin, PackId, PendingRecord,
    ResourceRecord, ResourceUri, Seq, SetId, Validators,
};
use object_store::local::LocalFileSystem;
use serde_json::json;

const BATCH: u64 = 1000;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let records: u64 = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let temporary = tempfile::tempdir()?;
    let folder = arguments.next().map_or_else(|| temporary.path().to_owned(), Into::into);
    let rest: u64 = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let store = Arc::new(LocalFileSystem::new_with_prefix(&folder)?);
    let open = || Catalog::open(store.clone(), "catalogs/million", CatalogConfig::default());

    let sample = serde_json::to_vec(&resource(0))?.len() + uri(0).as_str().len();
    println!("{}", json!({"phase": "start", "bytes_per_record": sample, "rss_mib": status("VmRSS")}));

    let catalog = open().await?;
    phase(
        "write pending",
        records,
        &folder,
        write(&catalog, records, |batch, n| {
            batch.put_pending(&uri(n), &pending(n));
        }),
    )
    .await?;
    phase(
        "settle",
        records,
        &folder,
        write(&catalog, records, |batch, n| {
            batch.put_resource(&uri(n), &resource(n));
            batch.delete_pending(&uri(n));
        }),
    )
    .await?;
    phase("pending is empty", 1, &folder, async {
        assert_eq!(catalog.count_pending().await?, 0);
        Ok(())
    })
    .await?;
    phase("read many, as planned", records, &folder, read(&catalog, records)).await?;
    phase("scan", records, &folder, scan(&catalog, records)).await?;
    phase("read many that are not there", records, &folder, read_nothing(&catalog, records)).await?;
    phase("commit one by one", 1000, &folder, async {
        for n in 0..1000 {
            let mut batch = Batch::new();
            batch.put_resource(&uri(n), &resource(n));
            catalog.commit(batch).await?;
        }
        Ok(())
    })
    .await?;
    phase("close", 1, &folder, async { Ok(catalog.close().await?) }).await?;

    let catalog = open().await?;
    phase("read many, reopened", records, &folder, read(&catalog, records)).await?;
    let before = processor_seconds();
    tokio::time::sleep(Duration::from_secs(rest)).await;
    println!(
        "{}",
        json!({"phase": "idle", "processor_percent": (processor_seconds() - before) * 100.0 / rest as f64,
               "rss_mib": status("VmRSS"), "peak_mib": status("VmHWM"),
               "disk_mib": bytes_in(&folder) >> 20})
    );
    phase("close again", 1, &folder, async { Ok(catalog.close().await?) }).await
}

async fn write(catalog: &Catalog, records: u64, change: impl Fn(&mut Batch, u64)) -> Outcome<()> {
    let mut slowest = Duration::ZERO;
    for first in (0..records).step_by(BATCH as usize) {
        let mut batch = Batch::new();
        for n in first..records.min(first + BATCH) {
            change(&mut batch, n);
        }
        let started = Instant::now();
        catalog.commit(batch).await?;
        slowest = slowest.max(started.elapsed());
    }
    println!("{}", json!({"slowest_commit_ms": slowest.as_millis()}));
    Ok(())
}

async fn read(catalog: &Catalog, records: u64) -> Outcome<()> {
    for first in (0..records).step_by(BATCH as usize) {
        let uris: Vec<ResourceUri> = (first..records.min(first + BATCH)).map(uri).collect();
        let found = catalog.resources_many(&uris).await?;
        assert!(found.iter().all(Option::is_some));
    }
    Ok(())
}

async fn read_nothing(catalog: &Catalog, records: u64) -> Outcome<()> {
    for first in (records..2 * records).step_by(BATCH as usize) {
        let uris: Vec<ResourceUri> = (first..first + BATCH).map(uri).collect();
        let found = catalog.resources_many(&uris).await?;
        assert!(found.iter().all(Option::is_none));
    }
    Ok(())
}

async fn scan(catalog: &Catalog, records: u64) -> Outcome<()> {
    let resources = catalog.scan_resources(None, None).await?;
    let found = resources.try_fold(0, |found, _| async move { Ok(found + 1) }).await?;
    assert_eq!(found, records);
    Ok(())
}

async fn phase(
    name: &str,
    records: u64,
    folder: &Path,
    work: impl Future<Output = Outcome<()>>,
) -> Outcome<()> {
    let started = Instant::now();
    let busy = processor_seconds();
    work.await?;
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{}",
        json!({
            "phase": name,
            "seconds": (seconds * 1000.0).round() / 1000.0,
            "per_second": (records as f64 / seconds).round(),
            "processor_seconds": processor_seconds() - busy,
            "rss_mib": status("VmRSS"),
            "peak_mib": status("VmHWM"),
            "disk_mib": bytes_in(folder) >> 20,
        })
    );
    Ok(())
}

/// URIs of a site whose list is not sorted by URI.
fn uri(n: u64) -> ResourceUri {
    let scattered = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let text = format!("https://repository.example.org/bitstream/handle/{scattered:016x}/article-{n}.pdf");
    text.parse().expect("the URI of an example is one")
}

fn listing() -> Listing {
    Listing {
        document: "https://repository.example.org/resync/resourcelist-0042.xml".into(),
        set: SetId::new("https://repository.example.org/resync/capabilitylist.xml"),
        change: None,
        change_time: None,
        as_of: Some(Timestamp::UNIX_EPOCH),
        latest: Some(Timestamp::UNIX_EPOCH),
        links: None,
        linked: None,
    }
}

fn declaration(n: u64) -> Declaration {
    let mut hasher = Hasher::new([Algorithm::Md5]);
    hasher.update(&n.to_be_bytes());
    Declaration {
        digests: hasher.finish().digests().to_vec(),
        length: Some(2048),
        media_type: Some("application/pdf".to_owned()),
        lastmod: Some(Timestamp::UNIX_EPOCH),
        ..Declaration::default()
    }
}

fn resource(n: u64) -> ResourceRecord {
    let mut hasher = Hasher::new([Algorithm::Md5, Algorithm::Sha256]);
    hasher.update(&n.to_be_bytes());
    ResourceRecord {
        bitstream: Some(Bitstream {
            location: Location::Pack {
                source: "repository-example-org-0123456789ab".parse().expect("a source id"),
                pack: PackId::fresh(),
                offset: n,
                stored_length: 2048,
                method: Method::Stored,
            },
            computed: hasher.finish(),
            assurance: Assurance::Digest,
            media_type: Some("application/pdf".to_owned()),
            encoding: None,
            validators: Validators {
                etag: Some(format!("\"{n:016x}\"")),
                last_modified: Some("Thu, 01 Jan 1970 00:00:00 GMT".to_owned()),
            },
            final_url: None,
            stored_at: Timestamp::UNIX_EPOCH,
        }),
        declaration: declaration(n),
        listing: listing(),
        sets: vec![listing().set],
        deleted: None,
        collected: None,
        absent: None,
        settled_at: Timestamp::UNIX_EPOCH,
    }
}

fn pending(n: u64) -> PendingRecord {
    let origin: Origin = "https://repository.example.org".parse().expect("an origin");
    PendingRecord {
        seq: Seq::new(n),
        action: Action::Fetch { origin },
        declaration: declaration(n),
        listing: listing(),
        attempts: 0,
        next_attempt_at: None,
        candidate: None,
        repair: false,
        mirror: None,
        patch: None,
        account: Default::default(),
    }
}

/// A line of `/proc/self/status`, in MiB.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    let number: String = line.chars().filter(char::is_ascii_digit).collect();
    number.parse::<u64>().unwrap_or_default() / 1024
}

/// Processor time of this process so far.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let ticks: u64 =
        after_name.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => bytes_in(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}
