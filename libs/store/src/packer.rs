//! Pack after pack, filled as small bitstreams come, for one alone.

use jiff::Timestamp;
use model::{Location, SourceId};

use crate::{PackBuilder, PackLimits, PackMember, Store, StoreError};

/// Fills packs and stores each when it is full. A bitstream is told by whatever the caller gives with it; where it lies is known when its
/// pack is stored.
#[derive(Debug)]
pub struct Packer<'a, T> {
    store: &'a Store,
    source: &'a SourceId,
    now: Timestamp,
    pack: Option<PackBuilder>,
    /// What is in the open pack, in the order of its members.
    waiting: Vec<T>,
    stored: Vec<(T, Location)>,
}

impl<'a, T> Packer<'a, T> {
    /// Packs of this Source; `now` is when their bitstreams begin to be collected (RS-4).
    pub fn new(store: &'a Store, source: &'a SourceId, now: Timestamp) -> Self {
        Self { store, source, now, pack: None, waiting: Vec::new(), stored: Vec::new() }
    }

    /// Adds a bitstream, which is `told` with its location in the end.
    ///
    /// # Errors
    /// What the store says to a pack that was full.
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

    /// What was stored in packs that are full and was not taken yet, in the order it came.
    pub fn take_stored(&mut self) -> Vec<(T, Location)> {
        std::mem::take(&mut self.stored)
    }

    /// Stores what is still open, and gives where each bitstream lies that was not taken yet, in the order they came.
    ///
    /// # Errors
    /// What the store says.
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
        let (store, source) = (Store::in_memory(), "s".parse().unwrap());
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
        let (store, source) = (Store::in_memory(), "s".parse().unwrap());
        let packer = Packer::<()>::new(&store, &source, "2026-01-01T00:00:00Z".parse().unwrap());
        assert_eq!(packer.finish().await.unwrap(), []);
    }
}
