//! A Source whose resources have three versions each, written directly: harvesting it three times would take hours.

use catalog::{Batch, Catalog, CatalogConfig};
use control::{Config, Control, SourceSpec, Spec};
use fixity::Computed;
use jiff::{SignedDuration, Timestamp};
use model::{
    Assurance, Bitstream, Declaration, Listing, Location, ResourceRecord, ResourceUri, SetId, SourceId,
    Validators, Version, Versions,
};
use store::{Key, NewBitstream, SourceMarker, Store, StoreOptions};

use crate::place::Place;

/// Versions of each resource.
pub(super) const VERSIONS: usize = 3;
const ENTRY: &str = "https://versions.example.org/.well-known/resourcesync";
/// Records per batch.
const AT_ONCE: u64 = 5_000;
/// Resources with the same bytes, each version with bytes of its own: only their records are numerous.
const DIFFERENT: u64 = 50;

/// The written Source.
pub(super) struct Filled {
    source: SourceId,
    resources: u64,
}

/// Writes a Source, its catalog and its bitstreams.
pub(super) async fn fill(
    nats: &str,
    namespace: &str,
    place: &Place,
    resources: u64,
) -> anyhow::Result<Filled> {
    let config =
        Config { servers: vec![nats.to_owned()], namespace: namespace.to_owned(), ..Config::default() };
    let control = Control::connect(&config).await?;
    let spec = SourceSpec::from(Spec { keep_versions: Some(VERSIONS as u32), ..Spec::new(ENTRY.parse()?) });
    control.sources().create(&spec).await?;
    let source = spec.id;
    let variables = place.environment.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let store = Store::open_with(&place.into.parse()?, variables, StoreOptions::default()).await?;
    store.note_source(&SourceMarker::new(source.clone(), ENTRY)).await?;
    for number in 0..DIFFERENT.min(resources) {
        for version in 0..VERSIONS {
            let bytes = content(number, version);
            let sha256 = Computed::of(&bytes).sha256();
            store.put_bitstream(NewBitstream::Memory(sha256, bytes.into())).await?;
        }
    }
    let path = Key::Catalog(source.clone()).to_string();
    let catalog = Catalog::open(store.object_store(), &path, CatalogConfig::default()).await?;
    for first in (0..resources).step_by(AT_ONCE as usize) {
        let mut batch = Batch::new();
        for number in first..resources.min(first + AT_ONCE) {
            let uri: ResourceUri = uri(number).parse()?;
            batch.put_resource(&uri, &record(number));
            let kept = (0..VERSIONS - 1).map(|version| kept(number, version)).collect();
            batch.put_versions(&uri, &Versions { kept, since: None });
        }
        catalog.commit(batch).await?;
        if first % 500_000 == 0 {
            eprintln!("{first} of {resources} resources");
        }
    }
    catalog.close().await?;
    Ok(Filled { source, resources })
}

impl Filled {
    /// The resource and the version that a request is about, the same in each run.
    pub(super) fn chosen(&self, number: u64, round: usize) -> (u64, usize) {
        // Far from each other, so that few are in one block of the catalog.
        let resource = (number + round as u64 * 1_000_003).wrapping_mul(2_654_435_761) % self.resources;
        (resource, (number % VERSIONS as u64) as usize)
    }

    pub(super) fn uri(&self, resource: u64) -> String {
        uri(resource)
    }

    pub(super) fn gate(&self, resource: u64) -> String {
        format!("/v1/sources/{}/timegate/{}", self.source, uri(resource))
    }

    pub(super) fn map(&self, resource: u64) -> String {
        format!("/v1/sources/{}/timemap/{}", self.source, uri(resource))
    }

    /// When a version began.
    pub(super) fn begins(&self, version: usize) -> Timestamp {
        begins(version)
    }

    /// A moment at which a version was stored.
    pub(super) fn asked(&self, version: usize) -> Timestamp {
        begins(version) + SignedDuration::from_hours(12)
    }

    /// The same as HTTP writes it.
    pub(super) fn asked_http(&self, version: usize) -> String {
        self.asked(version).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }
}

fn uri(number: u64) -> String {
    format!("https://versions.example.org/objects/{:03}/{number:09}.txt", number % 1_000)
}

/// The first of January, and the days after it.
fn begins(version: usize) -> Timestamp {
    let first = Timestamp::from_second(1_767_225_600).expect("a moment of 2026");
    first + SignedDuration::from_hours(24 * version as i64)
}

fn content(number: u64, version: usize) -> Vec<u8> {
    format!("version {version} of text {}", number % DIFFERENT).into_bytes()
}

fn bitstream(number: u64, version: usize) -> Bitstream {
    let computed = Computed::of(&content(number, version));
    Bitstream {
        location: Location::Object { sha256: computed.sha256() },
        computed,
        assurance: Assurance::Digest,
        media_type: Some("text/plain".to_owned()),
        encoding: None,
        validators: Validators::default(),
        final_url: None,
        stored_at: begins(version),
    }
}

fn kept(number: u64, version: usize) -> Version {
    Version {
        bitstream: bitstream(number, version),
        declaration: Declaration::default(),
        listing: listing(),
        from: begins(version),
        until: begins(version + 1),
        source_from: None,
        lost: None,
    }
}

fn record(number: u64) -> ResourceRecord {
    ResourceRecord {
        bitstream: Some(bitstream(number, VERSIONS - 1)),
        declaration: Declaration::default(),
        sets: vec![listing().set],
        listing: listing(),
        deleted: None,
        collected: None,
        absent: None,
        settled_at: begins(VERSIONS - 1),
    }
}

fn listing() -> Listing {
    Listing {
        document: "https://versions.example.org/resourcelist.xml".into(),
        set: SetId::new("https://versions.example.org/capabilitylist.xml"),
        change: None,
        change_time: None,
        as_of: None,
        latest: None,
        links: None,
        linked: None,
    }
}
