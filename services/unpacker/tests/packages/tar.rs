//! Packages that are read from their beginning.

use std::time::Duration;

use bus::{Bus as _, HandlerResult};
use fixity::Computed;
use model::{
    Contents, Disposition, Location, MemberOutcome, MemberResult, PackageResult, ProblemReason, UnpackTask,
};
use packages::Compression;
use tokio_util::sync::CancellationToken;

use crate::case::{Case, Unpacked, dump, entry, holding};
use crate::tars::{ALL, Tar, compressed};

fn content(n: usize) -> Vec<u8> {
    format!("content {n} ").repeat(n % 7 + 1).into_bytes()
}

/// Entries 0..count in order, members in the opposite order.
fn tar(count: usize, manifest_first: bool) -> Vec<u8> {
    let mut entries: Vec<_> =
        (0..count).map(|n| holding(&n.to_string(), &format!("/d/{n}"), &content(n))).collect();
    entries.insert(0, entry("deleted", ""));
    let manifest = dump(&entries);
    let mut tar = Tar::new();
    if manifest_first {
        tar = tar.file("manifest.xml", &manifest);
    }
    tar = tar.entry(b'5', "d/", b"");
    for n in (0..count).rev() {
        tar = tar.file(&format!("d/{n}"), &content(n));
    }
    if !manifest_first {
        tar = tar.file("manifest.xml", &manifest);
    }
    tar.end()
}

fn unpacked(mut said: Vec<PackageResult>) -> Unpacked {
    let slices: Vec<_> = said.drain(1..).collect();
    let PackageResult::Opened(contents) = said.remove(0) else { panic!("{said:?}") };
    let slices: Vec<Vec<MemberOutcome>> = (0..)
        .zip(slices)
        .map(|(expected, slice): (u32, _)| match slice {
            PackageResult::Slice { number, items, .. } if number == expected => items,
            other => panic!("{other:?}"),
        })
        .collect();
    Unpacked { items: slices.iter().flatten().cloned().collect(), slices, contents }
}

async fn unpack(case: &Case, package: Vec<u8>) -> Unpacked {
    let stored = case.put(package).await;
    let (work, said) = case.work(&case.job(&stored, UnpackTask::default())).await;
    assert_eq!(work, HandlerResult::Done);
    unpacked(said)
}

#[tokio::test]
async fn every_compression_is_unpacked_whether_the_manifest_is_first_or_last() {
    for compression in ALL {
        for manifest_first in [true, false] {
            let case = Case::new().await;
            let unpacked = unpack(&case, compressed(&tar(20, manifest_first), compression)).await;
            let Contents { entries, slices, index, .. } = unpacked.contents;
            assert_eq!((entries, slices, index), (21, 1, None));
            assert!(!unpacked.contents.manifest.quirks.contains_key("manifest-elsewhere"));
            for n in 0..20 {
                let stored = unpacked.taken(&n.to_string());
                assert_eq!(stored.computed, Computed::of(&content(n)));
                assert!(matches!(stored.location, Location::Pack { .. }));
                assert_eq!(case.bytes(stored).await, content(n));
            }
            assert_eq!(unpacked.of("deleted"), &MemberResult::NoMember);
            // In the order of the members; entries without a member come last.
            assert!(unpacked.items[0].entry.loc.ends_with("/19"));
            assert!(unpacked.items[20].entry.loc.ends_with("deleted"));
        }
    }
}

#[tokio::test]
async fn large_members_become_objects_and_small_ones_too_where_there_are_no_packs() {
    for pack_threshold_bytes in [10, 0] {
        let mut case = Case::new().await;
        case.config.pack_threshold_bytes = pack_threshold_bytes;
        let unpacked = unpack(&case, tar(3, true)).await;
        for n in 0..3 {
            let location = &unpacked.taken(&n.to_string()).location;
            let is_small = content(n).len() <= pack_threshold_bytes;
            assert_eq!(
                matches!(location, Location::Pack { .. }),
                is_small,
                "{pack_threshold_bytes}: {location:?}"
            );
            assert_eq!(case.bytes(unpacked.taken(&n.to_string())).await, content(n));
        }
    }
}

#[tokio::test]
async fn slices_are_told_one_by_one_under_names_of_their_own() {
    let case = Case::new().await;
    let unpacked = unpack(&case, tar(600, true)).await;
    assert_eq!(unpacked.contents.slices, 3);
    assert_eq!(unpacked.slices.iter().map(Vec::len).collect::<Vec<_>>(), [256, 256, 89]);
    let names = case.names.lock().unwrap().clone();
    let ends: Vec<_> = names.iter().map(|name| name.split('.').nth(1).unwrap_or("")).collect();
    assert_eq!(ends, ["", "0", "1", "2"], "{names:?}");
}

#[tokio::test]
async fn settled_slices_are_not_stored_again() {
    let case = Case::new().await;
    let package = tar(600, true);
    let before = unpack(&case, package.clone()).await;
    let stored = case.put(package).await;
    let packs_before = packs(&case).await;
    let (work, said) =
        case.work(&case.job(&stored, UnpackTask::Open { settled: 2, keep_earlier: false })).await;
    assert_eq!(work, HandlerResult::Done);
    let [PackageResult::Opened(contents), PackageResult::Slice { number: 2, items, .. }] = &said[..] else {
        panic!("{said:?}")
    };
    assert_eq!(contents, &before.contents);
    let names = |items: &[MemberOutcome]| items.iter().map(|item| item.entry.clone()).collect::<Vec<_>>();
    assert_eq!(names(items), names(&before.slices[2]));
    assert_eq!(packs(&case).await - packs_before, 1);
}

async fn packs(case: &Case) -> usize {
    use futures::TryStreamExt as _;
    let prefix = store::Key::packs(&case.source);
    case.store.object_store().list(Some(&prefix)).try_collect::<Vec<_>>().await.unwrap().len()
}

#[tokio::test]
async fn an_unpacker_that_is_to_stop_leaves_the_rest_of_a_tar_to_another() {
    let case = Case::new().await;
    let stored = case.put(tar(600, true)).await;
    let job = case.job(&stored, UnpackTask::default());
    let stop = CancellationToken::new();
    let unpacker = case.unpacker().stopped_by(stop.clone());
    let working = unpacker.work(model::encode(&job).into(), 1);
    let (work, said) = tokio::join!(working, async {
        let mut said = case.said(Duration::from_secs(60)).await;
        said.extend(case.said(Duration::from_secs(60)).await);
        stop.cancel();
        said
    });
    assert!(matches!(work, HandlerResult::Later { after: Some(Duration::ZERO), .. }), "{work:?}");
    let [PackageResult::Opened(_), PackageResult::Slice { number: 0, .. }] = &said[..] else {
        panic!("{said:?}")
    };
}

#[tokio::test(start_paused = true)]
async fn no_slice_is_stored_before_the_one_before_it_is_settled() {
    let case = Case::new().await;
    let stored = case.put(tar(1_300, true)).await;
    let job = model::encode(&case.job(&stored, UnpackTask::default()));
    let unpacker = case.unpacker();
    let working = tokio::spawn(async move { unpacker.work(job.into(), 1).await });
    let filter = bus::Filter::Outcomes(case.source.clone());
    let mut settled = 0;
    let mut ahead = Vec::new();
    while let Some(held) = case.bus.pull(&filter, 1, Duration::from_secs(3_600)).await.unwrap().pop() {
        // Time passes only when the runtime is idle: the job got as far as it can while its outcome is held back.
        tokio::time::sleep(Duration::from_secs(1)).await;
        ahead.push(packs(&case).await - settled);
        settled += usize::from(held.id.as_str().contains('.'));
        held.ack().await.unwrap();
    }
    assert_eq!((working.await.unwrap(), settled), (HandlerResult::Done, 6));
    assert_eq!(ahead, [0, 1, 1, 1, 1, 1, 1], "packs that would be stored again");
}

#[tokio::test]
async fn a_job_that_was_killed_between_slices_says_what_was_not_heard_yet() {
    let case = Case::new().await;
    let stored = case.put(tar(600, true)).await;
    let job = case.job(&stored, UnpackTask::default());
    let (_, said) = case.work(&job).await;
    let whole = unpacked(said);

    // Killed before its acknowledgement: the next unpacker of the job only asks the owner.
    let packs = packs(&case).await;
    let (work, again) = case.work_again(&job, 2).await;
    assert_eq!((work, again), (HandlerResult::Done, vec![PackageResult::Interrupted { settled: 0 }]));
    let (work, again) = case.work_again(&job, 3).await;
    assert_eq!((work, again.len()), (HandlerResult::Done, 0), "it asks once: {again:?}");
    assert_eq!(self::packs(&case).await, packs);

    // Killed after the first slice: the owner asks for the rest.
    let (_, rest) = case.work(&case.job(&stored, UnpackTask::Open { settled: 1, keep_earlier: false })).await;
    let told: Vec<u32> = rest
        .iter()
        .filter_map(|result| match result {
            PackageResult::Slice { number, .. } => Some(*number),
            _ => None,
        })
        .collect();
    assert_eq!(told, [1, 2]);
    let PackageResult::Slice { items, .. } = &rest[1] else { panic!("{rest:?}") };
    for (item, before) in items.iter().zip(&whole.slices[1]) {
        assert_eq!(item.entry, before.entry);
        let (MemberResult::Verified { stored, .. }, MemberResult::Verified { stored: other, .. }) =
            (&item.result, &before.result)
        else {
            panic!("{item:?}")
        };
        assert_eq!(stored.computed, other.computed);
        assert_eq!(case.bytes(stored).await, case.bytes(other).await);
    }
}

#[tokio::test]
async fn entries_and_members_that_do_not_fit_are_told() {
    let case = Case::new().await;
    let right = content(3);
    let manifest = dump(&[
        holding("wrong", "/wrong", b"something else"),
        holding("gone", "/gone", &right),
        holding("one", "/same", &right),
        holding("two", "same", &right),
        holding("three", "/same", b"not this one"),
        holding("link", "/link", &right),
        holding("dot", "./d", &right),
        holding("../up", "../up", &right),
    ]);
    let tar = Tar::new()
        .file("manifest.xml", &manifest)
        .file("wrong", &right)
        .file("same", &right)
        .entry(b'2', "link", b"")
        .file("d", &right)
        .file("../up", &right)
        .end();
    let unpacked = unpack(&case, compressed(&tar, Compression::Gzip)).await;
    assert_eq!(unpacked.failure("wrong").reason, ProblemReason::LengthMismatch);
    assert_eq!(unpacked.failure("three").reason, ProblemReason::LengthMismatch);
    for loc in ["gone", "dot"] {
        assert!(unpacked.failure(loc).message.contains("no member of exactly this name"), "{loc}");
    }
    assert!(unpacked.failure("link").message.contains("is a link"));
    for loc in ["one", "two"] {
        assert_eq!(case.bytes(unpacked.taken(loc)).await, right, "{loc}");
    }
    let up = unpacked.items.iter().find(|item| item.entry.metadata.path.as_deref() == Some("../up")).unwrap();
    assert!(matches!(up.result, MemberResult::Verified { .. }), "{up:?}");
}

/// The members without an entry, as each outcome reports them.
fn unlisted(said: &[PackageResult]) -> Vec<(u64, Vec<String>)> {
    let told = said.iter().map(|result| match result {
        PackageResult::Opened(contents) => (contents.unlisted, contents.unlisted_names.clone()),
        PackageResult::Slice { unlisted, unlisted_names, .. } => (*unlisted, unlisted_names.clone()),
        other => panic!("{other:?}"),
    });
    told.collect()
}

#[tokio::test]
async fn members_that_no_entry_names_are_told_with_the_last_slice_whoever_works_it() {
    let case = Case::new().await;
    let entries: Vec<_> = (0..512).map(|n| holding(&n.to_string(), &format!("/{n}"), b"c")).collect();
    let mut tar =
        Tar::new().file("before", b"x").entry(b'2', "link", b"").file("manifest.xml", &dump(&entries));
    for n in 0..512 {
        tar = tar.file(&n.to_string(), b"c");
    }
    // After the last named member: its slice is full by then.
    for n in 0..9 {
        tar = tar.file(&format!("behind {n}"), b"x");
    }
    let stored = case.put(tar.end()).await;
    let names: Vec<String> = ["before".to_owned(), "link".to_owned()]
        .into_iter()
        .chain((0..6).map(|n| format!("behind {n}")))
        .collect();
    let none = (0, Vec::new());
    let (_, said) = case.work(&case.job(&stored, UnpackTask::default())).await;
    assert_eq!(unlisted(&said), [none.clone(), none.clone(), (11, names.clone())]);
    let (_, said) = case.work(&case.job(&stored, UnpackTask::Open { settled: 1, keep_earlier: false })).await;
    assert_eq!(unlisted(&said), [none.clone(), (11, names)]);
    let (_, said) = case.work(&case.job(&stored, UnpackTask::Open { settled: 2, keep_earlier: false })).await;
    assert_eq!(unlisted(&said), [none]);
}

#[tokio::test]
async fn the_member_of_an_entry_that_a_later_one_overtakes_is_not_among_them() {
    let case = Case::new().await;
    let manifest = dump(&[holding("a", "/1", b"old"), holding("a", "/2", b"new")]);
    let tar = Tar::new().file("manifest.xml", &manifest).file("1", b"old").file("2", b"new").file("3", b"x");
    let stored = case.put(tar.end()).await;
    let (_, said) = case.work(&case.job(&stored, UnpackTask::default())).await;
    assert_eq!(unlisted(&said), [(0, Vec::new()), (1, vec!["3".to_owned()])]);
}

#[tokio::test]
async fn where_there_is_no_slice_members_that_no_entry_names_are_told_at_once() {
    let case = Case::new().await;
    let stored = case.put(Tar::new().file("manifest.xml", &dump(&[])).file("a", b"a").end()).await;
    let (_, said) = case.work(&case.job(&stored, UnpackTask::default())).await;
    assert_eq!(unlisted(&said), [(1, vec!["a".to_owned()])]);
}

#[tokio::test]
async fn a_member_that_many_entries_name_is_stored_once() {
    let case = Case::new().await;
    let entries: Vec<_> = (0..400).map(|n| holding(&n.to_string(), "/same", &content(1))).collect();
    let tar = Tar::new().file("manifest.xml", &dump(&entries)).file("same", &content(1)).end();
    let unpacked = unpack(&case, tar).await;
    assert_eq!((unpacked.slices.len(), unpacked.items.len()), (2, 400));
    let first = unpacked.taken("0").location.clone();
    assert!(matches!(first, Location::Object { .. }));
    assert!((0..400).all(|n| unpacked.taken(&n.to_string()).location == first));
}

#[tokio::test]
async fn a_tar_that_breaks_off_fails_under_a_name_of_its_own_after_what_was_told() {
    let case = Case::new().await;
    let whole = tar(600, true);
    let stored = case.put(whole[..whole.len() * 3 / 4].to_vec()).await;
    let (work, said) = case.work(&case.job(&stored, UnpackTask::default())).await;
    assert_eq!(work, HandlerResult::Done);
    let Some(PackageResult::Failed(failure)) = said.last() else { panic!("{said:?}") };
    assert_eq!(failure.reason, ProblemReason::Truncated);
    assert_eq!(failure.disposition, Disposition::Retry { after: None });
    assert!(said.len() > 2 && matches!(said[0], PackageResult::Opened(_)), "{}", said.len());
}

#[tokio::test]
async fn a_tar_without_a_manifest_is_refused() {
    let case = Case::new().await;
    let tar = Tar::new().file("a", b"a").end();
    let failure = case.refusal(tar).await;
    assert_eq!((failure.reason, failure.disposition), (ProblemReason::WrongKind, Disposition::Refuse));
}

#[tokio::test]
async fn entries_with_long_uris_make_shorter_slices() {
    let case = Case::new().await;
    let long = "x".repeat(20_000);
    let entries: Vec<_> = (0..40).map(|n| holding(&format!("{n}/{long}"), &format!("/{n}"), b"c")).collect();
    let mut tar = Tar::new().file("manifest.xml", &dump(&entries));
    for n in 0..40 {
        tar = tar.file(&n.to_string(), b"c");
    }
    let unpacked = unpack(&case, tar.end()).await;
    assert_eq!(unpacked.slices.len() as u32, unpacked.contents.slices);
    assert_eq!(unpacked.items.len(), 40);
    assert!(unpacked.contents.slices > 1);
}
