//! Stores bodies: small ones together in packs, which jobs that end at about the same time share; each large one in
//! an object of its own.

use fixity::Computed;
use jiff::Timestamp;
use model::{FetchItem, Location, SourceId, StoredBitstream};
use store::{NewBitstream, PackBatch, PackMember, SharedPacks, Store, StoreError};

use crate::FetcherConfig;
use crate::body::Body;
use crate::resource::Fresh;

/// The bodies of one job. An item is identified by its position in the job.
pub(crate) struct Sink<'a> {
    store: &'a Store,
    source: &'a SourceId,
    packs: &'a SharedPacks,
    now: Timestamp,
    has_packs: bool,
    batch: PackBatch,
    /// Bodies in the batch, in order.
    waiting: Vec<(usize, Fresh<Computed>)>,
    stored: Vec<(usize, StoredBitstream)>,
    /// The objects that were put, each as the location of a whole object.
    put: Vec<Location>,
}

/// What was stored of a job.
pub(crate) struct Stored {
    /// The bitstream of each item that has one.
    pub(crate) items: Vec<(usize, StoredBitstream)>,
    /// The objects that were put, each as the location of a whole object.
    pub(crate) put: Vec<Location>,
}

/// Maximum number of small bodies of a job, and their total bytes as far as declared.
fn declared(items: &[FetchItem], config: &FetcherConfig) -> (usize, usize) {
    let lengths = items.iter().filter_map(|item| usize::try_from(item.declaration.length?).ok());
    (items.len(), lengths.filter(|length| *length <= config.pack_threshold_bytes).sum())
}

impl<'a> Sink<'a> {
    pub(crate) fn new(
        store: &'a Store,
        packs: &'a SharedPacks,
        source: &'a SourceId,
        config: &FetcherConfig,
        now: Timestamp,
        items: &[FetchItem],
    ) -> Self {
        let has_packs = config.pack_threshold_bytes > 0;
        let (members, bytes) = declared(items, config);
        let batch = packs.batch(now).expecting(members, bytes);
        let waiting = Vec::with_capacity(members);
        let (stored, put) = (Vec::new(), Vec::new());
        Self { store, source, packs, now, has_packs, batch, waiting, stored, put }
    }

    /// Takes the body of the job's item `n`.
    pub(crate) async fn take(
        &mut self,
        n: usize,
        item: &FetchItem,
        fresh: Fresh<Body>,
    ) -> Result<(), StoreError> {
        let Fresh { body, media_type, encoding, validators, modified, final_url } = fresh;
        let received = |body| Fresh { body, media_type, encoding, validators, modified, final_url };
        let (location, fresh) = match body {
            Body::Small { bytes, computed } if self.has_packs => {
                let fresh = received(computed.clone());
                let media_type = fresh.media_type.clone();
                let member = PackMember {
                    uri: &item.uri,
                    bytes: &bytes,
                    computed: &computed,
                    media_type: media_type.as_deref(),
                    last_modified: None,
                };
                if !self.batch.fits(&member) {
                    self.store_batch().await?;
                }
                self.batch.add(member)?;
                self.waiting.push((n, fresh));
                return Ok(());
            }
            Body::Small { bytes, computed } => {
                let location = self.put(item, NewBitstream::Memory(computed.sha256(), bytes)).await?;
                (location, received(computed))
            }
            Body::Large(spooled) => {
                let computed = spooled.computed().clone();
                (self.put(item, NewBitstream::Spooled(spooled)).await?, received(computed))
            }
        };
        self.stored.push((n, fresh.at(location)));
        Ok(())
    }

    /// Records an object that was put elsewhere, by the location of the whole of it.
    pub(crate) fn note_put(&mut self, object: Location) {
        self.put.push(object);
    }

    /// Stores the waiting bodies.
    pub(crate) async fn finish(mut self) -> Result<Stored, StoreError> {
        self.store_batch().await?;
        Ok(Stored { items: self.stored, put: self.put })
    }

    async fn put(&mut self, item: &FetchItem, body: NewBitstream) -> Result<Location, StoreError> {
        let location = if item.repair {
            self.store.put_bitstream_anew(body).await?
        } else {
            self.store.put_bitstream(body).await?
        };
        self.put.push(location.clone());
        Ok(location)
    }

    async fn store_batch(&mut self) -> Result<(), StoreError> {
        let batch = std::mem::replace(&mut self.batch, self.packs.batch(self.now));
        let packed = self.packs.store(self.source, batch).await?;
        self.put.extend(packed.pack);
        let located = self.waiting.drain(..).zip(packed.members);
        self.stored.extend(located.map(|((n, fresh), location)| (n, fresh.at(location))));
        Ok(())
    }
}

impl Fresh<Computed> {
    fn at(self, location: Location) -> StoredBitstream {
        StoredBitstream {
            location,
            computed: self.body,
            media_type: self.media_type,
            encoding: self.encoding,
            validators: self.validators,
            modified: self.modified,
            final_url: self.final_url,
        }
    }
}
