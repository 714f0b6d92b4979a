//! What `get-all --keep` does beside getting: it writes bitstreams into packs, a pending record into the
//! catalog before each request, and a resource record when its pack is stored. Thresher writes the same, with
//! the same libraries; everything else is left out. Nothing is handed to other services, and a killed process
//! starts anew.

use anyhow::Context as _;
use catalog::{Batch, Catalog, CatalogConfig};
use fixity::{Computed, Sha256};
use jiff::Timestamp;
use model::{
    Action, Assurance, Bitstream, ChangeEvent, ChangeLogEntry, Declaration, Listing, Location, Origin,
    PendingRecord, Provenance, ResourceRecord, ResourceUri, RunId, Seq, SetId, SourceId, Validators,
};
use store::{Key, PackMember, Packer, SourceMarker, Store, StoreOptions, StoreTarget};
use tokio::sync::mpsc;
use url::Url;

/// Pending records per commit, as many as Thresher's.
pub(crate) const PLANNED_TOGETHER: usize = 4_000;
/// Bitstreams per pack: as in a job of Thresher's, with 20,000 resources and 16 concurrent requests.
pub(crate) const PACKED_TOGETHER: usize = 40;
/// The most packs settled by one commit.
const SETTLED_TOGETHER: usize = 8;

/// A resource to get, and its declaration.
pub(crate) struct Wanted {
    pub(crate) uri: ResourceUri,
    pub(crate) declaration: Declaration,
}

/// A body that was received.
pub(crate) struct Received {
    pub(crate) uri: ResourceUri,
    pub(crate) bytes: Vec<u8>,
    pub(crate) sha256: [u8; 32],
}

/// The members of a stored pack.
type Packed = Vec<(ResourceUri, Computed, Location)>;

/// Stores received bodies.
pub(crate) struct Keeper {
    store: Store,
    source: SourceId,
    packed: mpsc::Sender<Packed>,
}

/// Settles stored packs, until the last sender is gone.
pub(crate) struct Settling {
    catalog: Catalog,
    packed: mpsc::Receiver<Packed>,
    run: RunId,
    list: String,
    origin: Origin,
    planned: u64,
}

/// Opens an empty harvest.
pub(crate) async fn open(place: &StoreTarget, entry: &ResourceUri) -> anyhow::Result<(Keeper, Settling)> {
    let origin = entry.origin().context("it has no origin")?;
    let entry = Url::parse(entry.as_str())?;
    let source = SourceId::of_entry(&entry);
    let store = Store::open(place, StoreOptions::default()).await?;
    store.note_source(&SourceMarker::new(source.clone(), entry.to_string())).await?;
    let path = Key::Catalog(source.clone()).to_string();
    let catalog = Catalog::open(store.object_store(), &path, CatalogConfig::default()).await?;
    let (sender, packed) = mpsc::channel(SETTLED_TOGETHER);
    let run = RunId::fresh();
    let list = entry.to_string();
    let settling = Settling { catalog, packed, run, list, origin, planned: 0 };
    Ok((Keeper { store, source, packed: sender }, settling))
}

impl Keeper {
    /// Stores received bodies in one pack.
    pub(crate) async fn keep(&self, received: Vec<Received>) -> anyhow::Result<()> {
        let mut packer = Packer::new(&self.store, &self.source, Timestamp::now());
        for Received { uri, bytes, sha256 } in received {
            let computed = Computed::new(bytes.len() as u64, [Sha256::from_bytes(sha256).into()])?;
            let member = PackMember {
                uri: &uri,
                bytes: &bytes,
                computed: &computed,
                media_type: None,
                last_modified: None,
            };
            packer.add(member, (uri.clone(), computed.clone())).await?;
        }
        let packed = packer.finish().await?.into_iter().map(|((uri, computed), at)| (uri, computed, at));
        self.packed.send(packed.collect()).await.context("nobody settles any more")
    }
}

impl Settling {
    /// Plans a batch of resources.
    pub(crate) async fn plan(&mut self, portion: &[Wanted]) -> anyhow::Result<()> {
        let mut batch = Batch::new();
        for wanted in portion {
            batch.put_pending(&wanted.uri, &self.pending(wanted.declaration.clone()));
            self.planned += 1;
        }
        Ok(self.catalog.commit(batch).await?)
    }

    /// Settles stored packs, and closes the catalog after the last one.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let mut packs = Vec::with_capacity(SETTLED_TOGETHER);
        while self.packed.recv_many(&mut packs, SETTLED_TOGETHER).await > 0 {
            let mut batch = Batch::new();
            for (uri, computed, location) in packs.drain(..).flatten() {
                self.settle(&mut batch, uri, computed, location);
            }
            self.catalog.commit(batch).await?;
        }
        Ok(self.catalog.close().await?)
    }

    fn settle(&self, batch: &mut Batch, uri: ResourceUri, computed: Computed, location: Location) {
        let at = Timestamp::now();
        let listing = self.listing();
        let event = ChangeEvent::Created { sha256: computed.sha256() };
        let declaration = declaration(&computed);
        let bitstream = Bitstream {
            location,
            computed,
            assurance: Assurance::Digest,
            media_type: None,
            encoding: None,
            validators: Validators::default(),
            final_url: None,
            stored_at: at,
        };
        let record = ResourceRecord {
            bitstream: Some(bitstream),
            declaration,
            sets: vec![listing.set.clone()],
            listing,
            deleted: None,
            collected: None,
            absent: None,
            settled_at: at,
        };
        batch.put_resource(&uri, &record);
        batch.delete_pending(&uri);
        batch.append_change(&ChangeLogEntry {
            uri,
            event,
            at,
            run: self.run,
            document: self.list.as_str().into(),
            freed: None,
            freed_versions: Vec::new(),
            account: Provenance::default(),
        });
    }

    fn pending(&self, declaration: Declaration) -> PendingRecord {
        PendingRecord {
            seq: Seq::new(self.planned),
            action: Action::Fetch { origin: self.origin.clone() },
            declaration,
            listing: self.listing(),
            attempts: 0,
            next_attempt_at: None,
            candidate: None,
            repair: false,
            mirror: None,
            patch: None,
            account: Provenance::default(),
        }
    }

    fn listing(&self) -> Listing {
        Listing {
            document: self.list.as_str().into(),
            set: SetId::new(self.list.as_str()),
            change: None,
            change_time: None,
            as_of: Some(Timestamp::UNIX_EPOCH),
            latest: Some(Timestamp::UNIX_EPOCH),
            links: None,
            linked: None,
        }
    }
}

impl Wanted {
    /// One without a list: any digest takes as much space as the declared one.
    pub(crate) fn unlisted(uri: ResourceUri) -> Self {
        let declaration = declaration(&Computed::of(uri.as_str().as_bytes()));
        Self { uri, declaration }
    }
}

fn declaration(computed: &Computed) -> Declaration {
    Declaration {
        digests: computed.digests().to_vec(),
        length: Some(computed.length()),
        lastmod: Some(Timestamp::UNIX_EPOCH),
        ..Declaration::default()
    }
}
