//! Versions of packages: which one a dump lists, and whether it was settled before. Pure.

use model::{Declaration, PackageRecord, PackageState, SettledPackage};
use resourcesync::{Datetime, Entry, Metadata};

/// The dump's declaration of a package.
pub fn package_declaration(entry: &Entry) -> Declaration {
    let metadata = &entry.metadata;
    let hashes = metadata.hash.as_deref().map(fixity::parse_hashes).unwrap_or_default();
    Declaration {
        digests: hashes.known,
        unjudged: hashes.unjudged,
        length: metadata.length,
        media_type: metadata.media_type.clone(),
        encoding: metadata.encoding.clone(),
        lastmod: entry.lastmod.as_ref().map(Datetime::instant),
    }
}

/// Number of entries for a package so far, in the same reading of the same dump.
pub fn listings_before(known: Option<&PackageRecord>, fresh: &PackageRecord) -> u64 {
    let is_of_this_reading = |known: &&PackageRecord| {
        known.run == fresh.run && known.document == fresh.document && known.position < fresh.position
    };
    known.filter(is_of_this_reading).map_or(0, |known| known.named)
}

/// Updates a known package when a dump lists it again.
pub fn renewed(before: PackageRecord, fresh: PackageRecord) -> PackageRecord {
    if is_same_version(&before, &fresh.declaration, &fresh.metadata) {
        return PackageRecord { state: PackageState::Done, settled: before.settled, ..fresh };
    }
    let is_in_work = matches!(before.state, PackageState::Stored { .. } | PackageState::Opened { .. });
    if is_in_work && before.declaration == fresh.declaration && tells_versions(&fresh.declaration) {
        // Its upload and its slices are named by its plan.
        let PackageRecord { seq, manifest_copy, state, settled, job, .. } = before;
        return PackageRecord { seq, manifest_copy, state, settled, job, ..fresh };
    }
    // An interrupted download resumes where it stopped; a conditional request tells whether the version is the same.
    let is_begun = before.state == PackageState::Wanted || before.kept;
    let seq = if is_begun { before.seq } else { fresh.seq };
    PackageRecord { seq, kept: before.kept, settled: before.settled, ..fresh }
}

/// Whether an entry is about the settled version of a package.
pub fn is_settled_version(known: &PackageRecord, entry: &Entry) -> bool {
    is_same_version(known, &package_declaration(entry), &package_interval(entry))
}

/// Whether the dump's metadata is about the settled version of a package.
pub fn is_same_version(known: &PackageRecord, declaration: &Declaration, metadata: &Metadata) -> bool {
    let is_declared = |settled: &SettledPackage| settled.declaration == *declaration;
    tells_versions(declaration)
        && known.settled.as_ref().is_some_and(is_declared)
        && known.metadata == *metadata
}

/// The dump's times of a package.
pub fn package_interval(entry: &Entry) -> Metadata {
    let Metadata { at, completed, from, until, .. } = entry.metadata.clone();
    Metadata { at, completed, from, until, ..Metadata::default() }
}

/// Whether a declaration distinguishes versions.
fn tells_versions(declaration: &Declaration) -> bool {
    declaration.lastmod.is_some() || !declaration.digests.is_empty() || !declaration.unjudged.is_empty()
}

#[cfg(test)]
mod tests {
    use model::{RunId, Seq, SetId, StoredBitstream};
    use resourcesync::Capability;

    use super::*;

    fn package(seq: u64, lastmod: Option<i64>, state: PackageState) -> PackageRecord {
        let lastmod = lastmod.map(|second| jiff::Timestamp::from_second(second).unwrap());
        PackageRecord {
            seq: Seq::new(seq),
            run: RunId::fresh(),
            document: "http://h/dump.xml".to_owned(),
            set: SetId::new("http://h/caps.xml"),
            capability: Capability::ResourceDump,
            declaration: Declaration { lastmod, ..Declaration::default() },
            metadata: Metadata::default(),
            selection: None,
            position: 0,
            named: 1,
            contents: None,
            manifest_copy: None,
            state,
            settled: None,
            attempts: 3,
            next_attempt_at: None,
            job: None,
            kept: false,
        }
    }

    fn settled(lastmod: Option<i64>) -> PackageRecord {
        let done = package(1, lastmod, PackageState::Done);
        let settled = SettledPackage { declaration: done.declaration.clone(), ..SettledPackage::default() };
        PackageRecord { settled: Some(settled), ..done }
    }

    fn stored() -> PackageState {
        let computed = fixity::Computed::of(b"PK");
        let location = model::Location::Object { sha256: computed.sha256() };
        PackageState::Stored {
            stored: StoredBitstream {
                location,
                computed,
                media_type: None,
                encoding: None,
                validators: Default::default(),
                modified: None,
                final_url: None,
            },
        }
    }

    #[test]
    fn the_same_version_of_a_settled_package_is_done() {
        let again = renewed(settled(Some(5)), package(9, Some(5), PackageState::Wanted));
        assert_eq!(again.state, PackageState::Done);
        let newer = renewed(settled(Some(5)), package(9, Some(6), PackageState::Wanted));
        assert_eq!(newer.state, PackageState::Wanted);
        assert!(newer.settled.is_some(), "its validators may still save the download");
    }

    #[test]
    fn where_nothing_tells_versions_the_server_is_asked() {
        assert_eq!(
            renewed(settled(None), package(9, None, PackageState::Wanted)).state,
            PackageState::Wanted
        );
    }

    #[test]
    fn what_is_in_work_goes_on_unless_its_version_is_another_one() {
        let before = package(1, Some(5), stored());
        let same = renewed(before.clone(), package(9, Some(5), PackageState::Wanted));
        assert_eq!((same.state, same.seq, same.attempts), (stored(), Seq::new(1), 3));
        let other = renewed(before, package(9, Some(6), PackageState::Wanted));
        assert_eq!((other.state, other.seq), (PackageState::Wanted, Seq::new(9)));
    }

    #[test]
    fn entries_that_name_one_package_are_counted_within_one_reading_of_one_dump() {
        let first = package(1, None, PackageState::Wanted);
        let later = PackageRecord { position: 5, ..first.clone() };
        assert_eq!(listings_before(None, &later), 0);
        assert_eq!(listings_before(Some(&first), &later), 1);
        // After a crash the dump is read from its beginning again.
        assert_eq!(listings_before(Some(&PackageRecord { named: 2, ..later.clone() }), &first), 0);
        assert_eq!(listings_before(Some(&PackageRecord { run: RunId::fresh(), ..first.clone() }), &later), 0);
        let of_another = PackageRecord { document: "http://h/other.xml".to_owned(), ..first };
        assert_eq!(listings_before(Some(&of_another), &later), 0);
    }

    #[test]
    fn a_broken_download_keeps_its_name() {
        let broken = package(1, None, PackageState::Wanted);
        assert_eq!(renewed(broken, package(9, None, PackageState::Wanted)).seq, Seq::new(1));
        let given_up = |kept| PackageRecord { kept, ..package(1, None, PackageState::Failed) };
        let again = renewed(given_up(true), package(9, None, PackageState::Wanted));
        assert_eq!((again.seq, again.state), (Seq::new(1), PackageState::Wanted));
        assert_eq!(renewed(given_up(false), package(9, None, PackageState::Wanted)).seq, Seq::new(9));
    }
}
