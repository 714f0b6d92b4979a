//! Jobs that are repeated, out of order, or invalid.

use std::time::Duration;

use bus::HandlerResult;
use fixity::Sha256;
use model::{Disposition, Location, PackageId, PackageResult, ProblemReason, UnpackTask};
use store::Store;

use crate::case::{Case, dump, holding};
use crate::zips::Zip;

const A: &[u8] = b"the content of a";

fn zip() -> Vec<u8> {
    Zip::new().stored("manifest.xml", &dump(&[holding("a", "/a", A)])).stored("a", A).build()
}

#[tokio::test]
async fn a_package_is_what_its_dump_declares_or_it_is_fetched_again() {
    let case = Case::new().await;
    let stored = case.put(zip()).await;
    let mut job = case.job(&stored, UnpackTask::default());
    job.declaration.length = Some(7);
    let PackageResult::Failed(failure) = case.answer(&job).await else { panic!("it was opened") };
    assert_eq!(
        (failure.reason, failure.disposition),
        (ProblemReason::LengthMismatch, Disposition::Retry { after: None })
    );
    job.declaration.length = None;
    job.declaration.digests = vec![Sha256::of(b"other").into()];
    let (work, said) = case.work(&case.job(&stored, UnpackTask::default())).await;
    assert!(work == HandlerResult::Done && matches!(said[..], [PackageResult::Opened(_)]));
    job.id = model::JobId::fresh();
    let PackageResult::Failed(failure) = case.answer(&job).await else { panic!("it was opened") };
    assert_eq!(failure.reason, ProblemReason::DigestMismatch);
    assert_eq!(failure.evidence.computed, Some(format!("sha-256:{}", stored.computed.sha256())));
}

#[tokio::test]
async fn a_package_or_an_index_that_is_gone_is_missing() {
    let case = Case::new().await;
    let stored = case.put(zip()).await;
    let mut gone = stored.clone();
    if let Location::Package { package, .. } = &mut gone.location {
        *package = PackageId::fresh();
    }
    let no_index = UnpackTask::Slice { index: PackageId::fresh(), number: 0 };
    for job in [case.job(&gone, UnpackTask::default()), case.job(&stored, no_index)] {
        let PackageResult::Failed(failure) = case.answer(&job).await else { panic!("it was read") };
        assert_eq!(failure.reason, ProblemReason::MissingBytes);
        assert_eq!(failure.disposition, Disposition::Retry { after: None });
    }
    // The package is opened, and is gone when a slice of it is read.
    let PackageResult::Opened(contents) = case.answer(&case.job(&stored, UnpackTask::default())).await else {
        panic!("it was not opened")
    };
    let slice = UnpackTask::Slice { index: contents.index.unwrap(), number: 0 };
    let PackageResult::Failed(failure) = case.answer(&case.job(&gone, slice)).await else {
        panic!("it was read")
    };
    assert_eq!(failure.reason, ProblemReason::MissingBytes);
}

#[tokio::test]
async fn slices_in_any_order_and_again_say_the_same() {
    let case = Case::new().await;
    let contents: Vec<Vec<u8>> = (0..600_u32).map(|n| format!("content {n}").into_bytes()).collect();
    let entries: Vec<_> = (0..)
        .zip(&contents)
        .map(|(n, content): (u32, _)| holding(&n.to_string(), &format!("/{n}"), content))
        .collect();
    let mut zip = Zip::new();
    // The archive's order is not the manifest's.
    for (n, content) in contents.iter().enumerate().rev() {
        zip = if n % 2 == 0 {
            zip.stored(n.to_string(), content)
        } else {
            zip.deflated(n.to_string(), content)
        };
    }
    let stored = case.put(zip.stored("manifest.xml", &dump(&entries)).build()).await;
    let PackageResult::Opened(opened) = case.answer(&case.job(&stored, UnpackTask::default())).await else {
        panic!("it was not opened")
    };
    assert_eq!((opened.slices, opened.entries), (3, 600));
    let slice = |number| case.job(&stored, UnpackTask::Slice { index: opened.index.unwrap(), number });
    let mut taken = 0;
    for number in [2, 0, 1] {
        let first = case.answer(&slice(number)).await;
        assert_eq!(first, case.answer(&slice(number)).await);
        let PackageResult::Slice { items, .. } = first else { panic!("{first:?}") };
        for item in items {
            let n: usize = item.entry.loc.rsplit('/').next().unwrap().parse().unwrap();
            let model::MemberResult::Verified { stored, .. } = item.result else {
                panic!("{n} was not taken")
            };
            assert_eq!(case.bytes(&stored).await, contents[n]);
            taken += 1;
        }
    }
    assert_eq!(taken, 600);
}

#[tokio::test]
async fn members_of_all_sizes_are_found_behind_one_another_and_far_apart() {
    let case = Case::new().await;
    // So many that their headers are read with several requests, some with more than that between them.
    let long = vec![7; 3 << 20];
    let content = |n: u32| if n % 300 == 1 { long.clone() } else { n.to_le_bytes().to_vec() };
    let entries: Vec<_> =
        (0..1_300).map(|n| holding(&n.to_string(), &format!("/{n}"), &content(n))).collect();
    let mut zip = Zip::new().deflated("manifest.xml", &dump(&entries));
    for n in 0..1_300 {
        zip = zip.stored(n.to_string(), &content(n));
    }
    let unpacked = case.unpack(zip.build()).await;
    assert_eq!((unpacked.items.len(), unpacked.contents.unlisted), (1_300, 0));
    for n in [0, 1, 2, 511, 512, 513, 1_023, 1_024, 1_201, 1_299] {
        assert_eq!(case.bytes(unpacked.taken(&n.to_string())).await, content(n), "{n}");
    }
    assert!(unpacked.items.iter().all(|item| matches!(item.result, model::MemberResult::Verified { .. })));
}

#[tokio::test]
async fn a_package_that_is_opened_again_gives_the_same_contents() {
    let case = Case::new().await;
    let stored = case.put(zip()).await;
    let mut answers = Vec::new();
    for _ in 0..2 {
        match case.answer(&case.job(&stored, UnpackTask::default())).await {
            PackageResult::Opened(contents) => answers.push(contents),
            other => panic!("{other:?}"),
        }
    }
    assert_ne!(answers[0].index, answers[1].index, "nothing is overwritten");
    answers.iter_mut().for_each(|contents| contents.index = None);
    assert_eq!(answers[0], answers[1]);
}

#[tokio::test]
async fn a_job_that_is_worked_again_under_its_name_is_heard_once() {
    let case = Case::new().await;
    let stored = case.put(zip()).await;
    let job = case.job(&stored, UnpackTask::default());
    for attempt in [1, 2] {
        let payload = model::encode(&job).into();
        assert_eq!(case.unpacker().work(payload, attempt).await, HandlerResult::Done);
    }
    assert_eq!(case.said(Duration::ZERO).await.len(), 1);
}

#[tokio::test]
async fn what_makes_no_sense_is_poison() {
    let case = Case::new().await;
    assert!(matches!(case.unpacker().work("{}".into(), 1).await, HandlerResult::Poison { .. }));
    let mut stored = case.put(zip()).await;
    stored.location = Location::Object { sha256: stored.computed.sha256() };
    let (work, said) = case.work(&case.job(&stored, UnpackTask::default())).await;
    assert!(matches!(work, HandlerResult::Poison { .. }) && said.is_empty(), "{work:?}");
}

#[tokio::test]
async fn a_store_on_disk_serves_as_well() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().to_str().unwrap().parse().unwrap();
    let case = Case { store: Store::open(&target, Default::default()).await.unwrap(), ..Case::new().await };
    let unpacked = case.unpack(zip()).await;
    assert_eq!(case.bytes(unpacked.taken("a")).await, A);
}
