//! Fills one pack after another for a single caller.

use jiff::Timestamp;
use model::{Location, SourceId};

use crate::{PackBuilder, PackLimits, PackMember, Store, StoreError};

/// Fills packs and stores each when it is full. The caller attaches a value to each bitstream, and gets it
/// back with the location once the pack is stored.
#[derive(Debug)]
pub struct Packer<'a, T> {
    store: &'a Store,
    source: &'a SourceId,
    now: Timestamp,
    pack: Option<PackBuilder>,
    /// The values of the open pack's members, in order.
    waiting: Vec<T>,
    stored: Vec<(T, Location)>,
}

impl<'a, T> Packer<'a, T> {
    /// A packer for this Source; `now` is when collecting its bitstreams begins (RS-4).
    pub fn new(store: &'a Store, source: &'a SourceId, now: Timestamp) -> Self {
        Self { store, source, now, pack: None, waiting: Vec::new(), stored: Vec::new() }
    }

    /// Adds a bitstream. `told` is returned with its location later.
    ///
    /// # Errors
    /// The error of the store when it stores a full pack.
    pub async fn add(&mut self, member: PackMember<'_>, told: T) -> Result<(), StoreError> {
        if self.pack.as_ref().is_some_and(|pack| !pack.fits(&member)) {
            self.store_pack().await?;
        }
        let pack = match &mut self.pack {
            Some(pack) => pack,
            none => none.insert(PackBuilder::new(self.source.clone(), self.now, PackLimits::default())?),
        };
        pack.add(member)?;
        self.waiting.push(told);
        Ok(())
    }

    /// Takes the locations of stored packs that were not taken yet, in the order of the bitstreams.
    pub fn take_stored(&mut self) -> Vec<(T, Location)> {
        std::mem::take(&mut self.stored)
    }

    /// Stores the open pack, and returns the locations not taken yet, in the order of the bitstreams.
    ///
    /// # Errors
    /// The error of the store.
    pub async fn finish(mut self) -> Result<Vec<(T, Location)>, StoreError> {
        self.store_pack().await?;
        Ok(self.stored)
    }

    async fn store_pack(&mut self) -> Result<(), StoreError> {
        let Some(pack) = self.pack.take() else { return Ok(()) };
        let locations = self.store.put_pack(&pack.finish()?).await?;
        self.stored.extend(self.waiting.drain(..).zip(locations));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fixity::Computed;

    use super::*;

    #[tokio::test]
    async fn bitstreams_fill_as_many_packs_as_they_need_and_each_is_told_where_it_lies() {
        let store = Store::in_memory();
        let source = "s".parse().unwrap();
        let mut packer = Packer::new(&store, &source, "2026-01-01T00:00:00Z".parse().unwrap());
        let bodies: Vec<Vec<u8>> =
            (0..PackLimits::default().members as u32 + 1).map(|n| n.to_le_bytes().to_vec()).collect();
        for (n, bytes) in bodies.iter().enumerate() {
            let uri = format!("http://e.org/{n}").parse().unwrap();
            let computed = Computed::of(bytes);
            let member =
                PackMember { uri: &uri, bytes, computed: &computed, media_type: None, last_modified: None };
            packer.add(member, n).await.unwrap();
        }
        let told = packer.finish().await.unwrap();
        assert_eq!(told.len(), bodies.len());
        let mut packs = std::collections::BTreeSet::new();
        for (expected, (n, location)) in told.into_iter().enumerate() {
            assert_eq!(n, expected);
            assert_eq!(store.read_range(&location, 0..4).await.unwrap(), bodies[n]);
            let Location::Pack { pack, .. } = location else { panic!("{location:?}") };
            packs.insert(pack);
        }
        assert_eq!(packs.len(), 2);
    }

    #[tokio::test]
    async fn without_a_bitstream_nothing_is_stored() {
        let store = Store::in_memory();
        let source = "s".parse().unwrap();
        let packer = Packer::<()>::new(&store, &source, "2026-01-01T00:00:00Z".parse().unwrap());
        assert_eq!(packer.finish().await.unwrap(), []);
    }
}
