//! Damaged kept versions: no Source can supply them again, so their bytes are discarded. Their records stay.

use std::collections::BTreeMap;

use catalog::Batch;
use jiff::Timestamp;
use model::{ChangeEvent, ChangeLogEntry, Location, ResourceUri, Version, Versions};
use verifier::scrub::Damaged;

use super::outcome;
use super::record::Recorder;
use crate::exit::Failed;

impl Recorder<'_> {
    /// Discards the bytes of damaged or missing versions. Objects of their own are quarantined, like those of
    /// stored versions.
    pub(super) async fn discard(&mut self, found: Vec<Damaged>) -> Result<(), Failed> {
        let mut batch = Batch::new();
        // Several may belong to one resource.
        let mut changed: BTreeMap<ResourceUri, Versions> = BTreeMap::new();
        for damaged in found {
            let uri = damaged.held.uri.clone();
            let record = self.catalog.resource(&uri).await?;
            let mut versions = match changed.get(&uri) {
                Some(versions) => versions.clone(),
                None => self.catalog.versions(&uri).await?.unwrap_or_default(),
            };
            let Some(place) = versions.kept.iter().position(|version| is_of(version, &damaged)) else {
                self.handled.settled += 1;
                continue;
            };
            let held = record.and_then(|record| record.bitstream).map(|held| held.location);
            if matches!(held, Some(Location::Object { .. })) && held == Some(damaged.held.location.clone()) {
                // The same object as the stored version's: repairing that one restores this one too.
                continue;
            }
            let damage = self.quarantine(&damaged).await?;
            let now = Timestamp::now();
            versions.kept[place].lost = Some(now);
            let Version { bitstream, from, until, listing, .. } = versions.kept[place].clone();
            let event = ChangeEvent::VersionLost {
                sha256: bitstream.computed.sha256(),
                from,
                until,
                message: outcome::text_of(&damage),
            };
            let change = ChangeLogEntry::new(uri.clone(), event, now, self.run, listing.document);
            batch.append_change(&ChangeLogEntry { freed_versions: vec![bitstream.location], ..change });
            changed.insert(uri, versions);
            self.handled.discarded += 1;
        }
        changed.iter().for_each(|(uri, versions)| batch.put_versions(uri, versions));
        Ok(self.catalog.commit(batch).await?)
    }
}

fn is_of(version: &Version, damaged: &Damaged) -> bool {
    Some(version.from) == damaged.held.version
        && version.bitstream.location == damaged.held.location
        && version.bitstream.computed.sha256() == damaged.held.computed.sha256()
}
