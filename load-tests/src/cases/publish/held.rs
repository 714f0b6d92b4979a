//! The harvest, written directly: harvesting it would take half an hour.

use std::path::Path;

use catalog::{Batch, Catalog, CatalogConfig};
use fixity::{Computed, Sha256};
use jiff::{SignedDuration, Timestamp};
use model::{
    Assurance, Bitstream, ChangeEvent, ChangeLogEntry, Declaration, Listing, Location, ResourceRecord,
    ResourceUri, RunId, SetId, SourceId, Validators,
};
use store::{Key, SourceMarker, Store, StoreOptions};

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
    /// Writes the catalog of a new harvest in a directory.
    pub(in crate::cases) async fn fill(into: &Path, resources: u64) -> anyhow::Result<Self> {
        let target = into.display().to_string().parse()?;
        let store = Store::open_with(&target, [], StoreOptions::default()).await?;
        let source = SourceId::of_entry(&ENTRY.parse()?);
        store.note_source(&SourceMarker::new(source.clone(), ENTRY)).await?;
        let catalog_path = Key::Catalog(source).to_string();
        let mut held = Self { catalog_path, store, resources, edition: 0, next: 0 };
        held.write(resources, true).await?;
        Ok(held)
    }

    pub(in crate::cases) fn resources(&self) -> u64 {
        self.resources
    }

    /// Gives resources other bytes, spread over all. Returns their number.
    pub(in crate::cases) async fn change(&mut self, count: u64) -> anyhow::Result<u64> {
        if count > 0 {
            self.edition += 1;
            self.write(count, false).await?;
        }
        Ok(count)
    }

    async fn write(&mut self, count: u64, is_first: bool) -> anyhow::Result<()> {
        let config = CatalogConfig::default();
        let catalog = Catalog::open(self.store.object_store(), &self.catalog_path, config).await?;
        let run = RunId::fresh();
        // A prime that divides no number of resources of this case: each comes once, far from the one before.
        let step = if is_first { 1 } else { 1_000_003 };
        for first in (0..count).step_by(AT_ONCE as usize) {
            let mut batch = Batch::new();
            for n in first..count.min(first + AT_ONCE) {
                let number = (self.next + n * step) % self.resources;
                let uri = uri(number).parse::<ResourceUri>()?;
                let record = record(number, self.edition);
                let sha256 = record.bitstream.as_ref().map(|stored| stored.computed.sha256());
                let sha256 = sha256.unwrap_or_else(|| Sha256::of(b""));
                let event = if is_first {
                    ChangeEvent::Created { sha256 }
                } else {
                    ChangeEvent::Updated { sha256, before: Sha256::of(b"before") }
                };
                let at = settled(self.edition);
                let document = record.listing.document.clone();
                batch.put_resource(&uri, &record);
                batch.append_change(&ChangeLogEntry::new(uri, event, at, run, document));
            }
            catalog.commit(batch).await?;
            if is_first && first % 1_000_000 == 0 {
                eprintln!("{first} of {count} resources");
            }
        }
        self.next = (self.next + count * step) % self.resources;
        Ok(catalog.close().await?)
    }
}

fn uri(number: u64) -> String {
    format!("https://held.example.org/objects/{:03}/{number:09}.pdf", number % 1_000)
}

fn settled(edition: i64) -> Timestamp {
    let first = Timestamp::from_second(1_767_225_600).expect("a moment of 2026");
    first + SignedDuration::from_hours(24 * edition)
}

fn record(number: u64, edition: i64) -> ResourceRecord {
    let computed = Computed::of(format!("edition {edition} of {number}").as_bytes());
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
            stored_at: settled(edition),
        }),
        declaration: Declaration::default(),
        sets: vec![listing.set.clone()],
        listing,
        deleted: None,
        collected: None,
        absent: None,
        settled_at: settled(edition),
    }
}
