//! What `get-all --keep` does beside getting: bitstreams go into packs, and of each resource the catalog holds a plan before it is asked for
//! and a record when its pack is stored. It is what Thresher writes, by the same libraries, with nothing else around it: no list is read, nothing is judged, and
//! who is killed begins anew.

use anyhow::Context as _;
use catalog::{Batch, Catalog, CatalogConfig};
use fixity::{Computed, Sha256};
use jiff::Timestamp;
use model::{
    Account, Action, Assurance, Bitstream, ChangeEvent, ChangeLogEntry, Declaration, Lane, Listing, Location,
    PendingRecord, ResourceRecord, ResourceUri, RunId, Seq, SetId, SourceId, Validators,
};
use store::{Key, PackMember, Packer, SourceNote, Store, StoreOptions, StoreTarget};
use tokio::sync::mpsc;
use url::Url;

/// Resources whose plans are committed together, as many as Thresher takes.
const PLANNED_TOGETHER: usize = 500;
/// Bitstreams of a pack: a job of Thresher's, with 20,000 resources and 16 requests at once.
pub(crate) const PACKED_TOGETHER: usize = 40;
/// Packs that are settled by one commit, at most.
const SETTLED_TOGETHER: usize = 8;

/// A body that was received.
pub(crate) struct Received {
    pub(crate) uri: ResourceUri,
    pub(crate) bytes: Vec<u8>,
    pub(crate) sha256: [u8; 32],
}

/// What lies in a pack that is stored.
type Packed = Vec<(ResourceUri, Computed, Location)>;

/// Keeps what is received.
pub(crate) struct Keeper {
    store: Store,
    source: SourceId,
    packed: mpsc::Sender<Packed>,
}

/// Settles what is kept, until nobody keeps anything more.
pub(crate) struct Settling {
    catalog: Catalog,
    packed: mpsc::Receiver<Packed>,
    run: RunId,
    list: String,
}

/// Opens a harvest where there is nothing yet, and plans all of `uris`.
pub(crate) async fn open(place: &StoreTarget, uris: &[ResourceUri]) -> anyhow::Result<(Keeper, Settling)> {
    let first = uris.first().context("there is nothing to get")?;
    let (lane, entry) = (first.lane().context("it has no origin")?, Url::parse(first.as_str())?);
    let source = SourceId::of_entry(&entry);
    let store = Store::open(place, StoreOptions::default()).await?;
    store.note_source(&SourceNote { source: source.clone(), url: entry.to_string() }).await?;
    let path = Key::Catalog(source.clone()).to_string();
    let catalog = Catalog::open(store.object_store(), &path, CatalogConfig::default()).await?;
    let (sender, packed) = mpsc::channel(SETTLED_TOGETHER);
    let settling = Settling { catalog, packed, run: RunId::fresh(), list: entry.to_string() };
    for (portion, first) in uris.chunks(PLANNED_TOGETHER).zip((0..).step_by(PLANNED_TOGETHER)) {
        let mut batch = Batch::new();
        for (uri, seq) in portion.iter().zip(first..) {
            batch.put_pending(uri, &settling.plan(&lane, uri, seq));
        }
        settling.catalog.commit(batch).await?;
    }
    Ok((Keeper { store, source, packed: sender }, settling))
}

impl Keeper {
    /// Keeps what was received in one pack.
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
    /// Settles what comes, and closes the catalog when nothing more does.
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
        let (at, listing) = (Timestamp::now(), self.listing());
        let event = ChangeEvent::Created { sha256: computed.sha256() };
        let declaration = declaration(&computed);
        let bitstream = Bitstream {
            location,
            computed,
            assurance: Assurance::Digest,
            media_type: None,
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
            account: Account::default(),
        });
    }

    /// A plan. What the list declares is not known here: a digest of something else takes as much room.
    fn plan(&self, lane: &Lane, uri: &ResourceUri, seq: u64) -> PendingRecord {
        PendingRecord {
            seq: Seq::new(seq),
            action: Action::Fetch { lane: lane.clone() },
            declaration: declaration(&Computed::of(uri.as_str().as_bytes())),
            listing: self.listing(),
            attempts: 0,
            next_attempt_at: None,
            candidate: None,
            mend: false,
            account: Account::default(),
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
        }
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
