//! The data of the console, written directly in place of a fleet: harvesting it would take hours.

use std::sync::Arc;

use catalog::{Batch, Catalog, CatalogConfig};
use control::{
    AskedBy, Claim, Config, Control, InSync, MemberId, Problems, Progress, RunFailure, RunSpec, Schedule,
    SourceSpec, Spec,
};
use fixity::Computed;
use jiff::Timestamp;
use model::{
    Assurance, Bitstream, ChangeEvent, ChangeLogEntry, Counters, Declaration, Listing, Location,
    ProblemReason, ProblemRecord, ResourceRecord, ResourceUri, RunId, RunMode, SetId, SourceId, Subject,
    Validators,
};
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use testkit::servers::S3Fixture;

/// Records per batch.
const AT_ONCE: u64 = 5_000;
/// One of this many resources is a problem.
const EACH_PROBLEM: u64 = 5_000;
/// Runs of each Source; the large one has as many as are kept.
const RUNS: u64 = 20;

/// The written data.
pub(super) struct Filled {
    large: SourceId,
    run: RunId,
    resources: u64,
}

/// Writes Sources with runs, and a catalog of one of them.
pub(super) async fn fill(
    nats: &str,
    namespace: &str,
    s3: &S3Fixture,
    sources: u64,
    resources: u64,
) -> anyhow::Result<Filled> {
    let config =
        Config { servers: vec![nats.to_owned()], namespace: namespace.to_owned(), ..Config::default() };
    let control = Control::connect(&config).await?;
    let mut last = None;
    for number in 0..sources.max(1) {
        let is_large = number == 0;
        let entry = format!("https://source-{number:05}.example.org/.well-known/resourcesync");
        let schedule = if number % 3 == 0 { Schedule::cron("0 3 * * *") } else { Schedule::every(3_600) };
        let spec = SourceSpec::from(Spec { schedule: Some(schedule), ..Spec::new(entry.parse()?) });
        control.sources().create(&spec).await?;
        for _ in 0..if is_large { RUNS } else { 1 } {
            let run = run_once(&control, &spec.id, number, resources).await?;
            if is_large {
                last = Some((spec.id.clone(), run));
            }
        }
    }
    let (large, run) = last.expect("at least one Source");
    write_catalog(&large, run, s3, resources).await?;
    Ok(Filled { large, run, resources })
}

/// A run from its submission to its end; some fail, some leave problems.
async fn run_once(
    control: &Control,
    source: &SourceId,
    number: u64,
    resources: u64,
) -> anyhow::Result<RunId> {
    let now = Timestamp::now();
    let id = RunId::fresh();
    let mode = RunMode::Auto;
    let asked_by = AskedBy::Schedule;
    let source = source.clone();
    let spec = RunSpec {
        id,
        source: source.clone(),
        mode,
        asked_by,
        asked_at: now,
        allow_deletes: false,
        repair: false,
        task: None,
    };
    control.runs().submit(spec).await?;
    let Claim::Taken(lease) = control.leases().acquire(&source, &MemberId::fresh("load-test"), now).await?
    else {
        anyhow::bail!("somebody else has the lease of {source}");
    };
    control.runs().start(&lease, id, now).await?;
    let open = if number.is_multiple_of(7) { resources / EACH_PROBLEM } else { 0 };
    let counters = Counters {
        listed: resources,
        planned: resources,
        stored: resources - open,
        failed: open,
        bytes: 1 << 40,
        ..Counters::default()
    };
    let problems = Some(Problems { open, ignored: 0 });
    let progress = Progress { counters, problems, ..Progress::default() };
    match number % 11 {
        3 => {
            control.runs().tell(&lease, id, progress, now).await?;
            control
                .runs()
                .fail(&lease, id, RunFailure::because("the Source cannot be reached"), Timestamp::now())
                .await?
        }
        _ => control.runs().finish(&lease, id, progress, InSync(open == 0), Timestamp::now()).await?,
    };
    lease.release().await;
    Ok(id)
}

/// A catalog with this many resources, each with its line in the change log, and some problems.
async fn write_catalog(source: &SourceId, run: RunId, s3: &S3Fixture, resources: u64) -> anyhow::Result<()> {
    let objects: Arc<dyn ObjectStore> = Arc::new(s3.store()?);
    // The server creates a bucket with its first object, and lists none before.
    objects.put(&"harvest/.bucket".into(), PutPayload::new()).await?;
    let path = format!("harvest/catalogs/{source}");
    let catalog = Catalog::open(objects, &path, CatalogConfig::default()).await?;
    let now = Timestamp::now();
    for first in (0..resources).step_by(AT_ONCE as usize) {
        let mut batch = Batch::new();
        for number in first..resources.min(first + AT_ONCE) {
            let uri = uri(number);
            let record = record(number, now);
            let sha256 = record.bitstream.as_ref().map(|bitstream| bitstream.computed.sha256());
            let sha256 = sha256.expect("it was made with one");
            let event = ChangeEvent::Created { sha256 };
            batch.put_resource(&uri, &record);
            batch.append_change(&ChangeLogEntry::new(uri.clone(), event, now, run, document(number).into()));
            if number % EACH_PROBLEM == 0 {
                batch.put_problem(&Subject::Resource(uri.to_string()), &problem(now));
            }
        }
        catalog.commit(batch).await?;
        if first % 500_000 == 0 {
            eprintln!("{first} of {resources} resources");
        }
    }
    Ok(catalog.close().await?)
}

fn uri(number: u64) -> ResourceUri {
    let text = format!("https://source-00000.example.org/objects/{:03}/{number:09}.pdf", number % 1_000);
    text.parse().expect("it is one")
}

fn document(number: u64) -> String {
    format!("https://source-00000.example.org/resourcelist-{:04}.xml", number / 50_000)
}

fn record(number: u64, now: Timestamp) -> ResourceRecord {
    let computed = Computed::of(&number.to_be_bytes());
    let set = SetId::new("https://source-00000.example.org/capabilitylist.xml");
    ResourceRecord {
        bitstream: Some(Bitstream {
            location: Location::Object { sha256: computed.sha256() },
            assurance: Assurance::Digest,
            media_type: Some("application/pdf".to_owned()),
            encoding: None,
            validators: Validators::default(),
            final_url: None,
            stored_at: now,
            computed,
        }),
        declaration: Declaration { length: Some(8), lastmod: Some(now), ..Declaration::default() },
        listing: Listing {
            document: document(number).into(),
            set: set.clone(),
            change: None,
            change_time: None,
            as_of: Some(now),
            latest: None,
            links: None,
            linked: None,
        },
        sets: vec![set],
        deleted: None,
        collected: None,
        absent: None,
        settled_at: now,
    }
}

fn problem(now: Timestamp) -> ProblemRecord {
    ProblemRecord {
        reason: ProblemReason::HttpClientError,
        message: "the server answered with 404".to_owned(),
        first_seen: now,
        last_seen: now,
        attempts: 3,
        retry: false,
        next_attempt_at: None,
        ignored: None,
        evidence: Default::default(),
        declaration: None,
        listing: None,
        repair: false,
    }
}

impl Filled {
    /// All pages, by their names.
    pub(super) fn pages(&self) -> Vec<(&'static str, String)> {
        let at = format!("/console/sources/{}", self.large);
        let some = uri(self.resources / 2).to_string().replace(':', "%3A").replace('/', "%2F");
        vec![
            ("the fleet", "/console".to_owned()),
            ("failed runs", "/console/runs?state=failed".to_owned()),
            ("Sources", "/console/sources".to_owned()),
            ("Sources that failed", "/console/sources?state=failed".to_owned()),
            ("Sources by name", "/console/sources?name=source-019".to_owned()),
            ("one Source", at.clone()),
            ("one run", format!("{at}/runs/{}", self.run)),
            ("resources", format!("{at}/resources")),
            ("resources by prefix", format!("{at}/resources?prefix={}", &some[..some.len() - 8])),
            ("the story of one", format!("{at}/resources/history?uri={some}")),
            ("problems", format!("{at}/problems")),
            ("report card", format!("{at}/report")),
            ("add a Source", "/console/add".to_owned()),
        ]
    }
}
