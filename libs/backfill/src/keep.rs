//! Stores bytes, and adds versions to the history.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{Batch, Catalog};
use fixity::Computed;
use model::{
    Assurance, BackfillCounts, Bitstream, Clock, Declaration, Listing, Location, ResourceUri, SourceId,
    Validators, Version,
};
use store::{PackMember, Packer, Store};

use crate::candidate::Candidate;
use crate::error::BackfillError;
use crate::fetch::Fetched;
use crate::receive::Body;
use crate::resource::Resource;

/// Versions in one commit. A crash costs their requests at most.
const VERSIONS_PER_COMMIT: usize = 50;

/// A fetched version without its location.
struct Unplaced {
    resource: Arc<Resource>,
    candidate: Candidate,
    computed: Computed,
    assurance: Assurance,
    media_type: Option<String>,
    encoding: Option<String>,
    final_url: Option<String>,
}

/// Collects versions, and commits them together.
pub(crate) struct Keeper<'a> {
    store: &'a Store,
    catalog: &'a Catalog,
    source: &'a SourceId,
    clock: &'a dyn Clock,
    /// How many versions of a resource the catalog keeps.
    keep: u32,
    packer: Packer<'a, Unplaced>,
    placed: Vec<(Unplaced, Location)>,
    collected: usize,
}

impl<'a> Keeper<'a> {
    pub(crate) fn new(
        store: &'a Store,
        catalog: &'a Catalog,
        source: &'a SourceId,
        clock: &'a dyn Clock,
        keep: u32,
    ) -> Self {
        let packer = Packer::new(store, source, clock.now());
        Self { store, catalog, source, clock, keep, packer, placed: Vec::new(), collected: 0 }
    }

    /// Whether all that was taken is committed.
    pub(crate) fn is_empty(&self) -> bool {
        self.collected == 0
    }

    /// Takes a version, and commits what was collected when that is enough.
    pub(crate) async fn take(
        &mut self,
        resource: Arc<Resource>,
        candidate: Candidate,
        fetched: Fetched,
        report: &mut BackfillCounts,
    ) -> Result<(), BackfillError> {
        let Fetched { body, assurance, media_type, encoding, final_url } = fetched;
        let computed = body.computed().clone();
        let version = Unplaced {
            resource: Arc::clone(&resource),
            candidate,
            computed: computed.clone(),
            assurance,
            media_type: media_type.clone(),
            encoding,
            final_url: Some(final_url),
        };
        match body {
            Body::Small(bytes, _) => {
                let member = PackMember {
                    uri: &resource.uri,
                    bytes: &bytes,
                    computed: &computed,
                    media_type: media_type.as_deref(),
                    last_modified: Some(version.candidate.time),
                };
                self.packer.add(member, version).await?;
            }
            Body::Large(spooled) => {
                let location = self.store.put_bitstream(spooled).await?;
                self.placed.push((version, location));
            }
        }
        self.commit_if_enough(report).await
    }

    /// Takes a version whose bytes are those of another one that is held. Both have the same location.
    pub(crate) async fn take_held(
        &mut self,
        resource: Arc<Resource>,
        candidate: Candidate,
        held: Bitstream,
        report: &mut BackfillCounts,
    ) -> Result<(), BackfillError> {
        let Bitstream { location, computed, media_type, encoding, final_url, .. } = held;
        let assurance = Assurance::Digest;
        let version = Unplaced { resource, candidate, computed, assurance, media_type, encoding, final_url };
        self.placed.push((version, location));
        self.commit_if_enough(report).await
    }

    async fn commit_if_enough(&mut self, report: &mut BackfillCounts) -> Result<(), BackfillError> {
        self.collected += 1;
        if self.collected >= VERSIONS_PER_COMMIT { self.commit(report).await } else { Ok(()) }
    }

    /// Stores the open pack, then adds the collected versions to the history in one batch. A crash in between leaves a
    /// pack without a record, which gc removes.
    pub(crate) async fn commit(&mut self, report: &mut BackfillCounts) -> Result<(), BackfillError> {
        let next = Packer::new(self.store, self.source, self.clock.now());
        let packed = std::mem::replace(&mut self.packer, next).finish().await?;
        let mut by_uri: BTreeMap<ResourceUri, Vec<Version>> = BTreeMap::new();
        for (version, location) in self.placed.drain(..).chain(packed) {
            let uri = version.resource.uri.clone();
            by_uri.entry(uri).or_default().push(version.at(location, self.clock));
        }
        self.collected = 0;
        let uris: Vec<ResourceUri> = by_uri.keys().cloned().collect();
        let kept = self.catalog.versions_many(&uris).await?;
        let mut batch = Batch::new();
        for ((uri, versions), kept) in by_uri.into_iter().zip(kept) {
            let mut kept = kept.unwrap_or_default();
            let mut is_changed = false;
            for version in versions {
                let length = version.bitstream.computed.length();
                if kept.add_earlier(version, self.keep) {
                    is_changed = true;
                    report.stored += 1;
                    report.bytes += length;
                }
            }
            if is_changed {
                batch.put_versions(&uri, &kept);
            }
        }
        if !batch.is_empty() {
            self.catalog.commit(batch).await?;
        }
        Ok(())
    }
}

impl Unplaced {
    /// The version. It was never the stored one, so its time as such is a moment.
    fn at(self, location: Location, clock: &dyn Clock) -> Version {
        let now = clock.now();
        let time = Some(self.candidate.time);
        let bitstream = Bitstream {
            location,
            computed: self.computed,
            assurance: self.assurance,
            media_type: self.media_type,
            encoding: self.encoding,
            // They are those of the version's own URL.
            validators: Validators::default(),
            final_url: self.final_url,
            stored_at: now,
        };
        let listing = Listing {
            document: self.candidate.named_by,
            set: self.resource.set.clone(),
            change: None,
            change_time: None,
            as_of: time,
            latest: None,
            links: None,
            linked: None,
        };
        let declaration = Declaration { lastmod: time, ..self.candidate.declared };
        Version { bitstream, declaration, listing, from: now, until: now, source_from: time, lost: None }
    }
}
