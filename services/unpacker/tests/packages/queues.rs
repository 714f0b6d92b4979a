//! The two queues of an unpacker: one to open packages, and one to read their slices.

use std::sync::Arc;
use std::time::Duration;

use bus::{Bus, ConsumerSpec, Filter, Queue};
use fleet::Connections;
use model::{PackageResult, UnpackJob, UnpackTask};
use secrets::Vars;
use service::{Context, Metrics, Readiness, ServiceInfo};
use tokio_util::sync::CancellationToken;
use unpacker::Settings;

use crate::case::{Case, dump, holding};
use crate::tars::Tar;
use crate::zips::Zip;

fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| n.to_string()).collect()
}

fn manifest(names: &[String]) -> Vec<u8> {
    dump(&names.iter().map(|name| holding(name, &format!("/{name}"), b"c")).collect::<Vec<_>>())
}

async fn queue(case: &Case, queue: Queue, job: &UnpackJob) {
    bus::send(&*case.bus, queue, job.id, Arc::new(job.clone())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn slices_go_on_while_tars_take_as_long_as_they_like() {
    let case = Case::new().await;
    let names = names(600);
    let tar = names
        .iter()
        .fold(Tar::new().file("manifest.xml", &manifest(&names)), |tar, name| tar.file(name, b"c"));
    let zip = names
        .iter()
        .fold(Zip::new().stored("manifest.xml", &manifest(&names)), |zip, name| zip.stored(name, b"c"));
    let tar = case.put(tar.end()).await;
    let zip = case.put(zip.build()).await;
    let PackageResult::Opened(contents) = case.answer(&case.job(&zip, UnpackTask::default())).await else {
        panic!("it was not opened")
    };

    // More of them than may be open. Their outcomes are never received, so they are never done.
    let silent = "silent".parse().unwrap();
    let long = Queue::Open { source: silent };
    for _ in 0..3 {
        let job = UnpackJob { source: long.source().clone(), ..case.job(&tar, UnpackTask::default()) };
        queue(&case, long.clone(), &job).await;
    }
    for number in 0..contents.slices {
        let task = UnpackTask::Slice { index: contents.index.unwrap(), number };
        queue(&case, Queue::Unpack { source: case.source.clone() }, &case.job(&zip, task)).await;
    }
    let context = Context {
        config: (),
        vars: Vars::default(),
        readiness: Readiness::default(),
        metrics: Metrics::new(ServiceInfo { name: "test", version: "0" }),
        stop: CancellationToken::new(),
    };
    let joined = Connections { bus: Arc::clone(&case.bus) as Arc<dyn Bus>, store: case.store.clone() };
    let settings = Settings { max_concurrent_jobs: 1, max_open_packages: 2, ..Settings::default() };
    let stop = context.stop.clone();
    let working = tokio::spawn(async move { unpacker::work_queues(&context, joined, &settings).await });

    let mut slices = 0;
    while slices < contents.slices {
        let said = case.said(Duration::from_secs(3_600)).await;
        assert!(said.iter().all(|result| matches!(result, PackageResult::Slice { .. })), "{said:?}");
        assert!(!said.is_empty(), "a slice waits for a tar");
        slices += said.len() as u32;
    }

    // However long they take, no other unpacker gets them: their worker sends signs of life.
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let depth = case.bus.depth(&Filter::Open).await.unwrap();
    assert_eq!((depth.in_flight, depth.waiting), (2, 1));
    let heard = Filter::Outcomes(long.source().clone());
    case.bus.open(ConsumerSpec::new(heard.clone(), 100, Duration::from_secs(60), 2)).await.unwrap();
    let mut told = Vec::new();
    while case.bus.depth(&Filter::Open).await.unwrap() != bus::Depth::default() {
        for delivery in case.bus.pull(&heard, 1, Duration::from_secs(60)).await.unwrap() {
            let outcome: model::PackageOutcome = Arc::unwrap_or_clone(delivery.payload.read().unwrap());
            told.push(matches!(outcome.result, PackageResult::Opened(_) | PackageResult::Slice { .. }));
            delivery.ack().await.unwrap();
        }
    }
    assert_eq!(told, [true; 3 * 4], "each was worked once, by the one who had it first");
    stop.cancel();
    working.await.unwrap().unwrap();
}
