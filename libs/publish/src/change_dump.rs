//! The Change Dump (§13): a package of each closed Change List, with the bytes of each change.

use std::collections::HashSet;
use std::io::BufWriter;
use std::ops::ControlFlow;

use resourcesync::{Change, Writer};

use crate::PublishError;
use crate::archive::{Archive, PackageFiles, member};
use crate::change_record::{ChangeListRecord, ChangePackage};
use crate::documents::put_fixed;
use crate::dump_documents::{change_dump, change_manifest};
use crate::paths::{CHANGE_DUMP, CHANGE_DUMP_PARTS};
use crate::place::xml;
use crate::published::{copy, each_entry};
use crate::state::{Retired, State};
use crate::work::Work;

/// The most packages: those of one document. Earlier ones are not named any more.
const MOST_PACKAGES: usize = 50_000;

/// Makes the packages of lists that were closed, and then the document that names them. Done again after a crash.
pub(crate) async fn settle(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    if !work.dumps {
        return Ok(());
    }
    let mut is_new = false;
    for at in 0..state.lists.len() {
        if state.lists[at].is_to_be_packed() {
            let list = state.lists[at].clone();
            state.lists[at].package = Some(pack(work, &list).await?);
            is_new = true;
        }
    }
    if is_new {
        // The segments go when the state knows the packages.
        state.save(work.place).await?;
    }
    for list in state.lists.iter_mut().filter(|list| list.package.is_some()) {
        for segment in std::mem::take(&mut list.segments) {
            work.place.remove(&segment).await?;
        }
    }
    let lists: Vec<_> = state.lists.iter().filter(|list| list.dumped).collect();
    let packed: Vec<_> = lists.iter().filter_map(|list| Some((*list, list.package.as_ref()?))).collect();
    let packed = &packed[packed.len().saturating_sub(MOST_PACKAGES)..];
    let first = packed.first().map(|(list, _)| list.from).or(lists.first().map(|list| list.from));
    let Some(from) = first else { return Ok(()) };
    let document = change_dump(work.base, from, packed.iter().copied())?;
    work.place.flush().await?;
    work.done.documents += put_fixed(work.place, &mut state.fixed, CHANGE_DUMP, document, &xml()).await?;
    // One that was given up may be taken up again.
    state.retired.retain(|file| file.path != CHANGE_DUMP);
    Ok(())
}

/// Makes the package of a closed list, of the bytes in its segments.
async fn pack(work: &mut Work<'_>, list: &ChangeListRecord) -> Result<ChangePackage, PublishError> {
    let mut archive = Archive::begin(work.place)?;
    let mut members = HashSet::new();
    for segment in &list.segments {
        let (joined, names) = archive.join(copy(work, segment).await?).await?;
        archive = joined;
        members.extend(names);
    }
    let header = change_manifest(work.base, list);
    let mut manifest = Writer::new(BufWriter::new(work.place.temporary()?), &header)?;
    let mut number = 0;
    each_entry(&list.path, copy(work, &list.path).await?, |mut entry| {
        let name = member(number);
        number += 1;
        // Bytes that could not be read then are not there: readers request the resource itself.
        if entry.metadata.change != Some(Change::Deleted) && members.contains(&name) {
            entry.metadata.path = Some(format!("/{name}"));
        }
        manifest.write(&entry)?;
        Ok(ControlFlow::Continue(()))
    })?;
    let files = archive.package(work, manifest.finish()?, CHANGE_DUMP_PARTS, list.from, 0).await?;
    let PackageFiles { path, contents, sha256, length } = files;
    work.done.change_packages += 1;
    Ok(ChangePackage { path, contents, sha256, length })
}

/// Gives up the Change Dump: readers may use it for a while.
pub(crate) fn give_up(work: &Work<'_>, state: &mut State) {
    let files: Vec<_> = state.lists.iter_mut().flat_map(ChangeListRecord::give_up_package).collect();
    let document = state.fixed.remove(CHANGE_DUMP).map(|_| CHANGE_DUMP.to_owned());
    let gone = files.into_iter().chain(document).map(|path| Retired { path, since: work.now });
    state.retired.extend(gone);
}
