//! The harvest, written directly: harvesting it would take half an hour.

use catalog::{Batch, Catalog, CatalogConfig};
use fixity::Computed;
use jiff::{SignedDuration, Timestamp};
use model::{
    Assurance, Bitstream, ChangeEvent, ChangeLogEntry, Declaration, Listing, Location, ResourceRecord,
    ResourceUri, RunId, SetId, SourceId, Validators,
};
use store::{Key, SourceMarker, Store, StoreOptions};

use crate::place::Place;

const ENTRY: &str = "https://held.example.org/.well-known/resourcesync";
/// Records per batch.
const AT_ONCE: u64 = 5_000;

/// A harvest of which each resource is stored, as its catalog says.
pub(in crate::cases) struct Held {
    catalog_path: String,
    store: Store,
    resources: u64,
    /// How often something was changed.
    edition: i64,
    /// The next resource to change.
    next: u64,
}

impl Held {
    /// Writes the catalog of a new harvest, as of the first of January.
    pub(in crate::cases) async fn fill(place: &Place, resources: u64) -> anyhow::Result<Self> {
        Self::fill_at(place, resources, settled(0)).await
    }

    /// The same, as of this time.
    pub(in crate::cases) async fn fill_at(
        place: &Place,
        resources: u64,
        at: Timestamp,
    ) -> anyhow::Result<Self> {
        let target = place.into.parse()?;
        let settings = place.environment.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let store = Store::open_with(&target, settings, StoreOptions::default()).await?;
        let source = SourceId::of_entry(&ENTRY.parse()?);
        store.note_source(&SourceMarker::new(source.clone(), ENTRY)).await?;
        let catalog_path = Key::Catalog(source).to_string();
        let held = Self { catalog_path, store, resources, edition: 0, next: 0 };
        let writer = held.writer().await?;
        for first in (0..resources).step_by(AT_ONCE as usize) {
            writer.write(first..resources.min(first + AT_ONCE), 0, at).await?;
            if first % 1_000_000 == 0 {
                eprintln!("{first} of {resources} resources");
            }
        }
        writer.close().await?;
        Ok(held)
    }

    pub(in crate::cases) fn resources(&self) -> u64 {
        self.resources
    }

    /// Gives resources other bytes, spread over all. Returns their number.
    pub(in crate::cases) async fn change(&mut self, count: u64) -> anyhow::Result<u64> {
        if count > 0 {
            self.edition += 1;
            let (edition, at) = (self.edition, settled(self.edition));
            let numbers: Vec<u64> = self.spread(count).collect();
            let writer = self.writer().await?;
            for some in numbers.chunks(AT_ONCE as usize) {
                writer.write(some.iter().copied(), edition, at).await?;
            }
            writer.close().await?;
        }
        Ok(count)
    }

    /// The next resources to change, each far from the one before.
    fn spread(&mut self, count: u64) -> impl Iterator<Item = u64> + use<> {
        // A prime that divides no number of resources of these cases: each comes once.
        const STEP: u64 = 1_000_003;
        let (next, resources) = (self.next, self.resources);
        self.next = (next + count * STEP) % resources;
        (0..count).map(move |n| (next + n * STEP) % resources)
    }

    /// The writer of its catalog.
    pub(in crate::cases) async fn writer(&self) -> anyhow::Result<HeldWriter> {
        let config = CatalogConfig::default();
        let catalog = Catalog::open(self.store.object_store(), &self.catalog_path, config).await?;
        Ok(HeldWriter { catalog, run: RunId::fresh() })
    }
}

/// Writes resources and changes into the catalog, as a run does.
pub(in crate::cases) struct HeldWriter {
    catalog: Catalog,
    run: RunId,
}

impl HeldWriter {
    /// Gives resources the bytes of an edition, in one commit. Edition 0 creates them.
    pub(in crate::cases) async fn write(
        &self,
        numbers: impl Iterator<Item = u64>,
        edition: i64,
        at: Timestamp,
    ) -> anyhow::Result<()> {
        let mut batch = Batch::new();
        for number in numbers {
            let uri = uri(number).parse::<ResourceUri>()?;
            let record = record(number, edition, at);
            let sha256 = bytes_of(number, edition).sha256();
            let event = match edition {
                0 => ChangeEvent::Created { sha256 },
                _ => ChangeEvent::Updated { sha256, before: bytes_of(number, edition - 1).sha256() },
            };
            let document = record.listing.document.clone();
            batch.put_resource(&uri, &record);
            batch.append_change(&ChangeLogEntry::new(uri, event, at, self.run, document));
        }
        self.catalog.commit(batch).await?;
        Ok(())
    }

    pub(in crate::cases) async fn close(self) -> anyhow::Result<()> {
        Ok(self.catalog.close().await?)
    }
}

fn uri(number: u64) -> String {
    format!("https://held.example.org/objects/{:03}/{number:09}.pdf", number % 1_000)
}

fn settled(edition: i64) -> Timestamp {
    let first = Timestamp::from_second(1_767_225_600).expect("a moment of 2026");
    first + SignedDuration::from_hours(24 * edition)
}

/// What is known of the bytes of a resource.
fn bytes_of(number: u64, edition: i64) -> Computed {
    Computed::of(format!("edition {edition} of {number}").as_bytes())
}

fn record(number: u64, edition: i64, at: Timestamp) -> ResourceRecord {
    let computed = bytes_of(number, edition);
    let listing = Listing {
        document: "https://held.example.org/resourcelist.xml".into(),
        set: SetId::new("https://held.example.org/capabilitylist.xml"),
        change: None,
        change_time: None,
        as_of: None,
        latest: None,
        links: None,
        linked: None,
    };
    ResourceRecord {
        bitstream: Some(Bitstream {
            location: Location::Object { sha256: computed.sha256() },
            computed,
            assurance: Assurance::Digest,
            media_type: Some("application/pdf".to_owned()),
            encoding: None,
            validators: Validators::default(),
            final_url: None,
            stored_at: at,
        }),
        declaration: Declaration::default(),
        sets: vec![listing.set.clone()],
        listing,
        deleted: None,
        collected: None,
        absent: None,
        settled_at: at,
    }
}
