//! Where bodies go: small ones together into packs, large ones each into an object of its own.

use bytes::Bytes;
use fixity::Computed;
use jiff::Timestamp;
use model::{Location, ResourceUri, SourceId, StoredBitstream};
use store::{PackBuilder, PackLimits, PackMember, Store, StoreError};

use crate::FetcherConfig;
use crate::body::Body;
use crate::resource::Fresh;

/// The bodies of one job. An item is told by its place in the job.
pub(crate) struct Sink<'a> {
    store: &'a Store,
    source: &'a SourceId,
    packs: bool,
    now: Timestamp,
    pack: Option<PackBuilder>,
    /// What is in the open pack, in the order of its members; where they lie is known when the pack is stored.
    waiting: Vec<(usize, Fresh<Computed>)>,
    stored: Vec<(usize, StoredBitstream)>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(
        store: &'a Store,
        source: &'a SourceId,
        config: &FetcherConfig,
        now: Timestamp,
    ) -> Self {
        let packs = config.small_bytes > 0;
        Self { store, source, packs, now, pack: None, waiting: Vec::new(), stored: Vec::new() }
    }

    /// Takes the body of item `n`.
    pub(crate) async fn take(
        &mut self,
        n: usize,
        uri: &ResourceUri,
        fresh: Fresh<Body>,
    ) -> Result<(), StoreError> {
        let Fresh { body, media_type, validators, modified, final_url } = fresh;
        match body {
            Body::Small { bytes, computed } if self.packs => {
                let fresh = Fresh { body: computed, media_type, validators, modified, final_url };
                self.pack(n, uri, bytes, fresh).await
            }
            Body::Small { bytes, computed } => {
                let location = self.store.put_small_bitstream(computed.sha256(), bytes).await?;
                self.stored.push((
                    n,
                    Fresh { body: computed, media_type, validators, modified, final_url }.at(location),
                ));
                Ok(())
            }
            Body::Large(spooled) => {
                let computed = spooled.computed().clone();
                let location = self.store.put_bitstream(spooled).await?;
                self.stored.push((
                    n,
                    Fresh { body: computed, media_type, validators, modified, final_url }.at(location),
                ));
                Ok(())
            }
        }
    }

    async fn pack(
        &mut self,
        n: usize,
        uri: &ResourceUri,
        bytes: Bytes,
        fresh: Fresh<Computed>,
    ) -> Result<(), StoreError> {
        let member = PackMember {
            uri,
            bytes: &bytes,
            computed: &fresh.body,
            media_type: fresh.media_type.as_deref(),
            last_modified: None,
        };
        if self.pack.as_ref().is_some_and(|pack| !pack.fits(&member)) {
            self.store_pack().await?;
        }
        let pack = match &mut self.pack {
            Some(pack) => pack,
            none => none.insert(PackBuilder::new(self.source.clone(), self.now, PackLimits::default())?),
        };
        pack.add(member)?;
        self.waiting.push((n, fresh));
        Ok(())
    }

    async fn store_pack(&mut self) -> Result<(), StoreError> {
        let Some(pack) = self.pack.take() else { return Ok(()) };
        let locations = self.store.put_pack(&pack.finish()?).await?;
        let waiting = std::mem::take(&mut self.waiting);
        self.stored
            .extend(waiting.into_iter().zip(locations).map(|((n, fresh), location)| (n, fresh.at(location))));
        Ok(())
    }

    /// Stores what is still open, and gives what was stored of each item.
    pub(crate) async fn finish(mut self) -> Result<Vec<(usize, StoredBitstream)>, StoreError> {
        self.store_pack().await?;
        Ok(self.stored)
    }
}

impl Fresh<Computed> {
    fn at(self, location: Location) -> StoredBitstream {
        StoredBitstream {
            location,
            computed: self.body,
            media_type: self.media_type,
            validators: self.validators,
            modified: self.modified,
            final_url: self.final_url,
        }
    }
}
