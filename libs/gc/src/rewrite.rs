//! Rewrites sparse packs: their live members move into new packs. The old packs are removed when no reader can be
//! reading them any more.
//!
//! The new pack is stored and read back before a record points into it. The old one stays until a later collection
//! finds no record that points into it.

use std::collections::HashSet;

use catalog::{Batch, Catalog};
use futures::TryStreamExt as _;
use jiff::Timestamp;
use model::{Bitstream, Clock, CompactedPack, Location, PackId, ResourceUri, SourceId};
use store::{Key, Listed, PackMember, Packer, Store, StoreError};

use crate::error::GcError;
use crate::marks::{LiveMembers, Needed, SourceMarks};
use crate::report::Rewritten;

/// The overhead of a member in a pack: headers, and its entry in the manifest.
const OVERHEAD: u64 = 400;
/// Bitstreams read at a time.
const READ: usize = 64;
/// The most packs to rewrite in one collection. The next collection continues.
const MOST: usize = 10_000;

/// A sparse pack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SparsePack {
    pack: PackId,
    size: u64,
    alive: LiveMembers,
}

/// The sparse packs of a Source.
pub(crate) async fn sparse_packs(
    store: &Store,
    source_marks: &SourceMarks,
    needed: &Needed,
) -> Result<Vec<SparsePack>, GcError> {
    let mut found = Vec::new();
    let mut packs = store.list_packs(&source_marks.source);
    while let Some(Listed { key, size, modified }) = packs.try_next().await? {
        let Key::Pack { source, pack } = key else { continue };
        let Some(&alive) = needed.packs.get(&pack) else { continue };
        let may_be = alive.members > 0 && alive.others == 0 && modified < source_marks.young;
        if !may_be || 2 * weight(alive.members, alive.bytes) >= size {
            continue;
        }
        // An estimate so far, because long URIs take more room.
        match store.pack_contents(&source, pack, size).await {
            Ok(all) if 2 * weight(alive.members, alive.bytes) < weight(all.members, all.bytes) => {
                found.push(SparsePack { pack, size, alive });
            }
            Ok(_) => {}
            Err(error @ (StoreError::Damaged { .. } | StoreError::NotFound { .. })) => {
                tracing::warn!(%error, "a pack cannot be rewritten");
            }
            Err(error) => return Err(error.into()),
        }
        if found.len() >= MOST {
            break;
        }
    }
    Ok(found)
}

/// The expected result of rewriting these packs.
pub(crate) fn count(packs: &[SparsePack]) -> Rewritten {
    Rewritten {
        packs: packs.len() as u64,
        bitstreams: packs.iter().map(|pack| pack.alive.members).sum(),
        bytes: packs.iter().map(|pack| pack.size).sum(),
        left: 0,
    }
}

/// Moves the live members of these packs into others. Packs that were rewritten `since` stay recorded.
///
/// The retention of the packs begins anew when all members are moved: until then a reader may have looked up a location
/// in them.
pub(crate) async fn rewrite(
    store: &Store,
    catalog: &Catalog,
    source: &SourceId,
    packs: &[SparsePack],
    since: Timestamp,
    clock: &dyn Clock,
) -> Result<(), GcError> {
    if packs.is_empty() {
        return Ok(());
    }
    let moving = Moving { store, catalog, source };
    let mut packer = Packer::new(store, source, clock.now());
    let dead: HashSet<PackId> = packs.iter().map(|pack| pack.pack).collect();
    // First of all, so that no pack is removed before its retention is over, even if this fails halfway.
    moving.note(&dead, since, clock.now()).await?;

    let mut next = Vec::with_capacity(READ);
    let mut resources = catalog.scan_resources(None, None).await.map_err(|error| moving.failed(error))?;
    while let Some((uri, record)) = resources.try_next().await.map_err(|error| moving.failed(error))? {
        for held in [record.bitstream, record.deleted].into_iter().flatten() {
            if matches!(&held.location, Location::Pack { pack, .. } if dead.contains(pack)) {
                next.push((uri.clone(), held));
            }
        }
        if next.len() >= READ {
            moving.take(&mut packer, std::mem::take(&mut next)).await?;
        }
    }
    drop(resources);
    moving.take(&mut packer, next).await?;
    moving.point(packer.finish().await?).await?;
    moving.note(&dead, since, clock.now()).await
}

/// Moves the live members of packs into others.
struct Moving<'a> {
    store: &'a Store,
    catalog: &'a Catalog,
    source: &'a SourceId,
}

/// A bitstream that moves, with its old location.
type Held = (ResourceUri, Bitstream);

impl Moving<'_> {
    /// Records when packs were rewritten, in addition to those that were rewritten `since`.
    async fn note(&self, packs: &HashSet<PackId>, since: Timestamp, at: Timestamp) -> Result<(), GcError> {
        let noted = self.catalog.rewritten_packs().await.map_err(|error| self.failed(error))?;
        let mut noted: Vec<_> =
            noted.into_iter().filter(|noted| noted.at >= since && !packs.contains(&noted.pack)).collect();
        noted.extend(packs.iter().map(|&pack| CompactedPack { pack, at }));
        let mut batch = Batch::new();
        batch.put_rewritten_packs(&noted);
        self.catalog.commit(batch).await.map_err(|error| self.failed(error))
    }

    async fn take(&self, packer: &mut Packer<'_, Held>, held: Vec<Held>) -> Result<(), GcError> {
        let bitstreams: Vec<&Bitstream> = held.iter().map(|(_, bitstream)| bitstream).collect();
        let bodies = self.store.read_batch(&bitstreams).await;
        for ((uri, bitstream), body) in held.into_iter().zip(bodies) {
            let bytes = match body {
                Ok(bytes) => bytes,
                // Its record still points there, so the pack stays.
                Err(error @ (StoreError::Damaged { .. } | StoreError::NotFound { .. })) => {
                    tracing::warn!(resource.uri = %uri, %error, "a bitstream cannot be moved out of a sparse pack");
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let member = PackMember {
                uri: &uri,
                bytes: &bytes,
                computed: &bitstream.computed,
                media_type: bitstream.media_type.as_deref(),
                last_modified: None,
            };
            packer.add(member, (uri.clone(), bitstream.clone())).await?;
            self.point(packer.take_stored()).await?;
        }
        Ok(())
    }

    /// Reads the stored bitstreams back, and updates the records that still point to the old location.
    async fn point(&self, stored: Vec<(Held, Location)>) -> Result<(), GcError> {
        if stored.is_empty() {
            return Ok(());
        }
        let moved: Vec<(ResourceUri, Location, Bitstream)> = stored
            .into_iter()
            .map(|((uri, before), location)| {
                let old = before.location.clone();
                (uri, old, Bitstream { location, ..before })
            })
            .collect();
        for some in moved.chunks(READ) {
            let bitstreams: Vec<&Bitstream> = some.iter().map(|(_, _, bitstream)| bitstream).collect();
            for body in self.store.read_batch(&bitstreams).await {
                body?;
            }
        }
        let uris: Vec<ResourceUri> = moved.iter().map(|(uri, _, _)| uri.clone()).collect();
        let records = self.catalog.resources_many(&uris).await.map_err(|error| self.failed(error))?;
        let mut batch = Batch::new();
        for ((uri, old, moved), record) in moved.into_iter().zip(records) {
            let Some(mut record) = record else { continue };
            let held = [&mut record.bitstream, &mut record.deleted].into_iter().flatten();
            let mut is_there = false;
            for held in held.filter(|held| held.location == old) {
                held.location = moved.location.clone();
                is_there = true;
            }
            if is_there {
                batch.put_resource(&uri, &record);
            }
        }
        self.catalog.commit(batch).await.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: catalog::CatalogError) -> GcError {
        GcError::NotOwner { source_id: self.source.clone(), error }
    }
}

fn weight(members: u64, bytes: u64) -> u64 {
    bytes + members * OVERHEAD
}
