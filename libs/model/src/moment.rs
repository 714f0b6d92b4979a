//! The version of a resource at a moment in the past, as far as versions are kept.

use jiff::Timestamp;

use crate::{Bitstream, Declaration, Listing, ResourceRecord, Versions};

/// The state of a resource at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At<'a> {
    /// This version was stored.
    Stored(&'a Bitstream, &'a Listing, &'a Declaration),
    /// The version was kept, but its bytes were found damaged.
    Lost {
        /// When its bytes were discarded.
        lost: Timestamp,
    },
    /// It was deleted at that time, or not known yet.
    NotHeld,
    /// The version is not kept any more.
    Gone {
        /// The start of the kept versions without a gap.
        kept_from: Timestamp,
    },
}

/// A version that is stored, and since when it was the stored one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held<'a> {
    /// Its bytes.
    pub bitstream: &'a Bitstream,
    /// The start of its time as the stored version.
    pub from: Timestamp,
}

/// All versions of a resource that were stored and whose bytes are there, the oldest first. [`at`] gives each of them at its `from`.
pub fn held<'a>(record: &'a ResourceRecord, versions: &'a Versions) -> Vec<Held<'a>> {
    let present =
        record.bitstream.as_ref().map(|bitstream| Held { bitstream, from: versions.since(bitstream) });
    let deleted = record.deleted.as_ref().filter(|_| versions.kept.is_empty());
    let deleted = deleted.map(|bitstream| Held { bitstream, from: bitstream.stored_at });
    let kept = versions.kept.iter().filter(|version| version.lost.is_none() && version.was_stored());
    let mut held: Vec<_> = kept
        .map(|version| Held { bitstream: &version.bitstream, from: version.from })
        // The record may have been read before a change, and the versions after it.
        .filter(|version| present.is_none_or(|present| version.from < present.from))
        .chain(deleted)
        .chain(present)
        .collect();
    held.sort_by_key(|version| version.from);
    held
}

/// The version of a resource at a moment.
pub fn at<'a>(record: &'a ResourceRecord, versions: &'a Versions, moment: Timestamp) -> At<'a> {
    if let Some(held) = &record.bitstream
        && versions.since(held) <= moment
    {
        return At::Stored(held, &record.listing, &record.declaration);
    }
    if let Some(version) = versions.at(moment) {
        if let Some(lost) = version.lost {
            return At::Lost { lost };
        }
        return At::Stored(&version.bitstream, &version.listing, &version.declaration);
    }
    // The version before the deletion is known even if no versions are kept.
    if let Some(deleted) = &record.deleted
        && versions.kept.is_empty()
        && deleted.stored_at <= moment
        && moment < record.settled_at
    {
        return At::Stored(deleted, &record.listing, &record.declaration);
    }
    let present = record.bitstream.as_ref().map(|held| versions.since(held));
    let oldest = versions.kept.first().map(|version| version.from).or(present);
    match oldest {
        // There may have been others before the oldest kept one.
        Some(kept_from) if moment < kept_from => At::Gone { kept_from },
        _ => At::NotHeld,
    }
}

/// The version that the Source had at a moment, as far as its documents say, and versions are kept.
pub fn at_source<'a>(record: &'a ResourceRecord, versions: &'a Versions, moment: Timestamp) -> At<'a> {
    let present = record.bitstream.as_ref().map(|held| {
        let time = source_time(&record.listing, &record.declaration);
        (time.unwrap_or_else(|| versions.since(held)), At::Stored(held, &record.listing, &record.declaration))
    });
    let kept = versions.kept.iter().map(|version| {
        let time = version.source_from.or_else(|| source_time(&version.listing, &version.declaration));
        let state = match version.lost {
            Some(lost) => At::Lost { lost },
            None => At::Stored(&version.bitstream, &version.listing, &version.declaration),
        };
        (time.unwrap_or(version.from), state)
    });
    // The Source said so, or a list of that time omitted it.
    let deletion = record.listing.as_of.filter(|_| !record.is_present()).map(|time| (time, At::NotHeld));
    let mut known: Vec<_> = kept.chain(present).chain(deletion).collect();
    // A later one of the same time wins.
    known.sort_by_key(|(time, _)| *time);
    let oldest = known.first().map(|(time, _)| *time);
    match (known.into_iter().rev().find(|(time, _)| *time <= moment), oldest) {
        (Some((_, state)), _) => state,
        (None, Some(kept_from)) => At::Gone { kept_from },
        (None, None) => At::NotHeld,
    }
}

/// Since when the Source had a version, as far as the entry says: the time of the change or of the last modification, or
/// that of the list.
pub fn source_time(listing: &Listing, declaration: &Declaration) -> Option<Timestamp> {
    listing.change_time.or(declaration.lastmod).or(listing.as_of)
}

#[cfg(test)]
mod tests {
    use fixity::Computed;
    use resourcesync::Change;

    use super::*;
    use crate::{Assurance, Location, SetId, Validators, Version};

    fn second(number: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + number).unwrap()
    }

    fn bitstream(stored_at: i64) -> Bitstream {
        let computed = Computed::of(stored_at.to_string().as_bytes());
        Bitstream {
            location: Location::Object { sha256: computed.sha256() },
            computed,
            assurance: Assurance::Digest,
            media_type: None,
            encoding: None,
            validators: Validators::default(),
            final_url: None,
            stored_at: second(stored_at),
        }
    }

    fn listing() -> Listing {
        let document = "http://e.org/list".to_owned().into();
        let set = SetId::new("set");
        Listing {
            document,
            set,
            change: None,
            change_time: None,
            as_of: None,
            latest: None,
            links: None,
            linked: None,
        }
    }

    fn record(present: Option<i64>, deleted: Option<i64>, settled_at: i64) -> ResourceRecord {
        ResourceRecord {
            bitstream: present.map(bitstream),
            declaration: Declaration::default(),
            listing: listing(),
            sets: Vec::new(),
            deleted: deleted.map(bitstream),
            collected: None,
            absent: None,
            settled_at: second(settled_at),
        }
    }

    fn kept(versions: &[(i64, i64)], since: Option<i64>) -> Versions {
        let version = |&(from, until): &(i64, i64)| Version {
            bitstream: bitstream(from),
            declaration: Declaration::default(),
            listing: listing(),
            from: second(from),
            until: second(until),
            source_from: None,
            lost: None,
        };
        Versions { kept: versions.iter().map(version).collect(), since: since.map(second) }
    }

    /// When the version at each of these moments was stored.
    fn stored<const N: usize>(
        record: &ResourceRecord,
        versions: &Versions,
        moments: [i64; N],
    ) -> [Option<i64>; N] {
        moments.map(|moment| match at(record, versions, second(moment)) {
            At::Stored(bitstream, ..) => Some(bitstream.stored_at.as_second() - second(0).as_second()),
            At::NotHeld | At::Lost { .. } | At::Gone { .. } => None,
        })
    }

    #[test]
    fn each_moment_has_the_version_of_its_time() {
        let record = record(Some(30), None, 99);
        let versions = kept(&[(10, 20), (20, 30)], None);
        assert_eq!(stored(&record, &versions, [10, 19, 20, 29, 30, 500]), [10, 10, 20, 20, 30, 30].map(Some));
        let kept_from = second(10);
        assert_eq!(at(&record, &versions, second(9)), At::Gone { kept_from });
    }

    #[test]
    fn while_it_was_deleted_nothing_was_held_even_if_it_was_restored() {
        let restored = record(Some(10), None, 40);
        let versions = kept(&[(10, 20)], Some(40));
        assert_eq!(stored(&restored, &versions, [15, 20, 39, 40]), [Some(10), None, None, Some(10)]);
        assert_eq!(at(&restored, &versions, second(30)), At::NotHeld);
        let deleted = record(None, Some(10), 20);
        assert_eq!(stored(&deleted, &Versions::default(), [5, 10, 19, 20]), [None, Some(10), Some(10), None]);
    }

    #[test]
    fn the_sources_times_say_what_the_source_had() {
        let mut present = record(Some(100), None, 100);
        present.listing.change_time = Some(second(30));
        let mut versions = kept(&[(50, 100), (100, 100), (100, 100)], None);
        for (version, time) in versions.kept.iter_mut().zip([5, 10, 20]) {
            version.source_from = Some(second(time));
            version.bitstream.media_type = Some(format!("at/{time}"));
        }
        let had = |record: &ResourceRecord, moment: i64| match at_source(record, &versions, second(moment)) {
            At::Stored(bitstream, ..) => bitstream.media_type.clone().unwrap_or("present".to_owned()),
            At::NotHeld => "nothing".to_owned(),
            At::Gone { .. } => "gone".to_owned(),
            At::Lost { .. } => "lost".to_owned(),
        };
        for (moment, expected) in
            [(4, "gone"), (5, "at/5"), (19, "at/10"), (20, "at/20"), (30, "present"), (99, "present")]
        {
            assert_eq!(had(&present, moment), expected, "{moment}");
        }
        // By our own time, only the first of them was ever stored before.
        assert_eq!(stored(&present, &versions, [49, 50, 99, 100]), [None, Some(50), Some(50), Some(100)]);
        assert_eq!(held(&present, &versions).len(), 2);
        let mut deleted = record(None, Some(100), 200);
        deleted.listing = Listing { change: Some(Change::Deleted), as_of: Some(second(40)), ..listing() };
        assert_eq!((had(&deleted, 25), had(&deleted, 40)), ("at/20".to_owned(), "nothing".to_owned()));
        // A list of that time omitted it.
        let mut absent = record(None, Some(100), 200);
        absent.listing.as_of = Some(second(40));
        assert_eq!((had(&absent, 25), had(&absent, 40)), ("at/20".to_owned(), "nothing".to_owned()));
    }

    #[test]
    fn each_version_that_is_there_is_the_one_of_its_beginning() {
        let present = record(Some(30), None, 99);
        let mut some = kept(&[(10, 20), (20, 25), (25, 30)], None);
        some.kept[1].lost = Some(second(50));
        let restored = (record(Some(10), None, 40), kept(&[(10, 20)], Some(40)));
        let deleted = (record(None, Some(10), 20), Versions::default());
        // The record is of before a change that the versions tell of.
        let late = (record(Some(10), None, 10), kept(&[(10, 20)], None));
        for ((record, versions), expected) in [
            ((present, some), vec![10, 25, 30]),
            (restored, vec![10, 40]),
            (deleted, vec![10]),
            (late, vec![10]),
        ] {
            let held = held(&record, &versions);
            let from: Vec<_> = held.iter().map(|version| version.from).collect();
            assert_eq!(from, expected.into_iter().map(second).collect::<Vec<_>>());
            for version in held {
                let At::Stored(bitstream, ..) = at(&record, &versions, version.from) else {
                    panic!("{version:?}")
                };
                assert_eq!(bitstream, version.bitstream);
            }
        }
    }
}
