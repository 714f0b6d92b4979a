//! Manifests of dump packages. Their dump completes what they do not say.

use model::SetId;
use planning::{EntryContext, Horizon};
use resourcesync::{Capability, Datetime, Header, Metadata};

/// What a manifest states about itself, as far as its entries depend on it.
pub struct ManifestTimes {
    /// `at` of the manifest.
    pub at: Option<Datetime>,
    /// `completed` of the manifest.
    pub completed: Option<Datetime>,
    /// Its kind.
    pub kind: Option<Capability>,
}

/// The same for a package that may have no record; `declared` are its times from the dump.
pub fn manifest_context(
    package: &str,
    set: &SetId,
    dump: &Capability,
    declared: &Metadata,
    manifest: ManifestTimes,
    horizon: Horizon,
) -> EntryContext {
    EntryContext {
        document: package.into(),
        set: set.clone(),
        changes: dump.tells_changes(),
        at: manifest.at.or(declared.at),
        completed: manifest.completed.or(declared.completed),
        interval: horizon.interval(declared.from.as_ref(), declared.until.as_ref()),
        kind: manifest.kind,
        horizon,
    }
}

/// The kind of manifest in the packages of a dump.
pub fn manifest_of(dump: &Capability) -> Capability {
    if dump.tells_changes() { Capability::ChangeDumpManifest } else { Capability::ResourceDumpManifest }
}

/// Whether a document is the manifest of a package of such a dump, unless it does not say.
pub fn is_manifest_of(header: &Header, dump: &Capability) -> bool {
    header.capability.as_ref().is_none_or(|found| *found == manifest_of(dump))
}
