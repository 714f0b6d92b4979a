//! Sweeping: removes what is neither needed nor within the retention.

use fixity::Sha256;
use futures::TryStreamExt as _;
use jiff::Timestamp;
use store::{Growing, Key, Listed, Listing, OrphanUpload, Store};

use crate::error::GcError;
use crate::marks::{LiveMembers, Marks, Needed, SourceMarks};
use crate::report::Counted;

/// How many objects to remove at a time.
const AT_A_TIME: usize = 1_000;

/// The decision on an object.
enum Verdict {
    InUse,
    Young,
    Garbage,
}

/// Removes the remains of uploads that will not continue. Those that may continue are added to `growing`.
pub(crate) async fn uploads(
    store: &Store,
    source_marks: &SourceMarks,
    needed: &mut Needed,
    left: &[OrphanUpload],
    dry_run: bool,
    growing: &mut Growing,
) -> Result<Counted, GcError> {
    let mut counted = Counted::default();
    for upload in left {
        let kind = if needed.plans.contains(&upload.seq) {
            &mut counted.in_use
        } else if upload.modified >= source_marks.young {
            // Its record may not be written yet.
            needed.packages.extend(upload.package);
            &mut counted.young
        } else if dry_run || forget(store, source_marks, upload).await? {
            counted.removed += upload.amount;
            continue;
        } else {
            needed.packages.extend(upload.package);
            &mut counted.in_use
        };
        *kind += upload.amount;
        growing.add(upload);
    }
    Ok(counted)
}

/// Whether the upload was removed. False if another process is working on it.
async fn forget(store: &Store, source_marks: &SourceMarks, upload: &OrphanUpload) -> Result<bool, GcError> {
    match store.forget_upload(&source_marks.source, upload.seq).await {
        Ok(()) => Ok(true),
        Err(store::StoreError::Busy { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Removes the packs of a Source without references.
pub(crate) async fn packs(
    store: &Store,
    source_marks: &SourceMarks,
    needed: &Needed,
    dry_run: bool,
) -> Result<Counted, GcError> {
    let verdict = |key: &Key, modified| match key {
        Key::Pack { pack, .. } => match needed.packs.get(pack) {
            Some(LiveMembers { members: 0, others: 0, .. }) => Verdict::Young,
            Some(_) => Verdict::InUse,
            None => by_age(modified, source_marks.young),
        },
        _ => Verdict::InUse,
    };
    named_once(store, store.list_packs(&source_marks.source), verdict, dry_run).await
}

/// Removes the packages of a Source without references, and indexes that are not needed any more.
pub(crate) async fn packages(
    store: &Store,
    source_marks: &SourceMarks,
    needed: &Needed,
    dry_run: bool,
) -> Result<Counted, GcError> {
    let verdict = |key: &Key, modified| match key {
        Key::Package { package, .. } if needed.packages.contains(package) => Verdict::InUse,
        Key::Package { package, .. } if needed.freed.contains(package) => Verdict::Young,
        Key::Package { .. } => by_age(modified, source_marks.young),
        _ => Verdict::InUse,
    };
    named_once(store, store.list_packages(&source_marks.source), verdict, dry_run).await
}

/// Removes bitstreams without references in any catalog. `young`: the earliest time from which an object of any Source
/// is within the retention.
pub(crate) async fn bitstreams(
    store: &Store,
    marks: &mut Marks,
    young: Timestamp,
    dry_run: bool,
) -> Result<Counted, GcError> {
    let mut counted = Counted::default();
    for first in 0..=u8::MAX {
        let needed = marks.objects.take(first)?;
        let mut listed = store.list_bitstreams(first);
        let mut garbage: Vec<Sha256> = Vec::new();
        while let Some(Listed { key, size, modified }) = listed.try_next().await? {
            let Key::Bitstream(sha256) = key else { continue };
            if needed.contains(&sha256) {
                counted.in_use.add(size);
                continue;
            }
            match by_age(modified, young) {
                Verdict::Garbage if dry_run => counted.removed.add(size),
                Verdict::Garbage => garbage.push(sha256),
                _ => counted.young.add(size),
            }
            if garbage.len() >= AT_A_TIME {
                counted.removed += store.remove_bitstreams(std::mem::take(&mut garbage), young).await?;
            }
        }
        counted.removed += store.remove_bitstreams(garbage, young).await?;
    }
    Ok(counted)
}

async fn named_once(
    store: &Store,
    mut listed: Listing,
    verdict: impl Fn(&Key, Timestamp) -> Verdict,
    dry_run: bool,
) -> Result<Counted, GcError> {
    let mut counted = Counted::default();
    let mut garbage = Vec::new();
    while let Some(found) = listed.try_next().await? {
        match verdict(&found.key, found.modified) {
            Verdict::InUse => counted.in_use.add(found.size),
            Verdict::Young => counted.young.add(found.size),
            Verdict::Garbage => {
                counted.removed.add(found.size);
                if !dry_run {
                    garbage.push(found);
                }
            }
        }
        if garbage.len() >= AT_A_TIME {
            store.remove_unneeded(std::mem::take(&mut garbage)).await?;
        }
    }
    store.remove_unneeded(garbage).await?;
    Ok(counted)
}

fn by_age(modified: Timestamp, young: Timestamp) -> Verdict {
    if modified < young { Verdict::Garbage } else { Verdict::Young }
}
