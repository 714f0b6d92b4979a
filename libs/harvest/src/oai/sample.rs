//! A sample of the records that seem unchanged when all identifiers are compared: one of a hundred in a month. A record
//! may change without a new datestamp, and no list of changes or identifiers tells that.

use std::hash::{BuildHasher, RandomState};

use catalog::Batch;
use jiff::{SignedDuration, Timestamp};
use model::{Action, OaiProgress, PendingRecord, Provenance, ResourceRecord, ResourceUri, SetId, Why};
use oaipmh::Quirk;
use planning::ListedEntry;
use planning::oai::sample_one_in;
use resourcesync::Datetime;

use crate::run::RunContext;

/// Records of one list that are asked for in a run at most.
const MOST: u64 = 1_000;
/// Time between a day and a change that must have another day as its datestamp.
const TWO_DAYS: SignedDuration = SignedDuration::from_hours(48);

/// Which records are drawn.
#[derive(Debug)]
pub(super) struct Sample {
    numbers: RandomState,
    one_in: u64,
    drawn: u64,
}

impl Sample {
    /// The sample of a list that was compared last at the time of its progress.
    pub(super) fn of(progress: &OaiProgress, now: Timestamp) -> Self {
        Self { numbers: RandomState::new(), one_in: sample_one_in(progress.swept_at, now), drawn: 0 }
    }

    /// Whether a stored record is drawn, whose header has this datestamp: that of the stored version.
    pub(super) fn draws(
        &mut self,
        record: &ResourceRecord,
        datestamp: Option<&Datetime>,
        uri: &ResourceUri,
    ) -> bool {
        let datestamp = datestamp.map(Datetime::instant);
        let is_open = record.is_present() && record.absent.is_none() && datestamp.is_some();
        let is_drawn = is_open
            && record.declaration.lastmod == datestamp
            && self.drawn < MOST
            && self.numbers.hash_one(uri.as_str()).is_multiple_of(self.one_in);
        self.drawn += u64::from(is_drawn);
        is_drawn
    }
}

/// Plans the request for a record of the sample.
pub(super) fn plan(ctx: &mut RunContext, batch: &mut Batch, entry: ListedEntry) {
    let ListedEntry { uri, declaration, listing, .. } = entry;
    let Ok(origin) = uri.origin() else { return };
    let account = Provenance::of(Why::Sample);
    let pending = PendingRecord::new(ctx.next_seq(), Action::Fetch { origin }, declaration, listing, account);
    ctx.put_pending(batch, &uri, &pending);
    let counters = &mut ctx.run.counters;
    (counters.listed, counters.planned, counters.sampled) =
        (counters.listed + 1, counters.planned + 1, counters.sampled + 1);
}

/// Whether a record was asked for as one of the sample.
pub(super) fn is_of_sample(pending: &PendingRecord) -> bool {
    pending.account.why == Some(Why::Sample)
}

/// Looks at a record whose metadata differs from what is stored. If its datestamp is the same, the next run lists all
/// records: others may have changed likewise.
pub(super) fn note_changed(
    ctx: &mut RunContext,
    batch: &mut Batch,
    set: &SetId,
    record: &ResourceRecord,
    datestamp: Option<&Datetime>,
) {
    let Some(stamped) = datestamp.map(Datetime::instant) else { return };
    let Some(known) = ctx.sets.get_mut(set) else { return };
    let Some(list) = &mut known.oai else { return };
    let stored_at = record.bitstream.as_ref().map(|held| held.stored_at);
    // Within one day, a record may change twice.
    let must_differ = list.by_seconds || stored_at.is_some_and(|at| at.duration_since(stamped) > TWO_DAYS);
    if record.declaration.lastmod != Some(stamped) || !must_differ {
        return;
    }
    list.progress.records_soon = true;
    batch.put_set(set, known);
    ctx.run.counters.add_quirk(Quirk::DatestampNotMoved.as_str(), 1);
}

#[cfg(test)]
mod tests {
    use fixity::Computed;
    use model::{Assurance, Bitstream, Declaration, Listing, Location, Validators};

    use super::*;

    fn record(lastmod: &str) -> ResourceRecord {
        let (at, computed): (Timestamp, _) = (lastmod.parse().unwrap(), Computed::of(b"x"));
        ResourceRecord {
            bitstream: Some(Bitstream {
                location: Location::Object { sha256: computed.sha256() },
                computed,
                assurance: Assurance::None,
                media_type: None,
                encoding: None,
                validators: Validators::default(),
                final_url: None,
                stored_at: at,
            }),
            declaration: Declaration { lastmod: Some(at), ..Declaration::default() },
            listing: Listing {
                document: "http://h/list".into(),
                set: SetId::new("http://h/list"),
                change: None,
                change_time: None,
                as_of: None,
                latest: None,
                links: None,
                linked: None,
            },
            sets: Vec::new(),
            deleted: None,
            collected: None,
            absent: None,
            settled_at: at,
        }
    }

    #[test]
    fn about_one_of_a_hundred_is_drawn_and_no_more_than_a_run_asks_for() {
        let day = "2026-01-01T00:00:00Z";
        let (held, stamped) = (record(day), Datetime::parse_lenient(day).unwrap().0);
        let mut sample = Sample::of(&OaiProgress::default(), held.settled_at);
        let uri = |n: u32| format!("http://h/{n}").parse::<ResourceUri>().unwrap();
        let drawn = (0..20_000).filter(|n| sample.draws(&held, Some(&stamped), &uri(*n))).count();
        assert!((120..=280).contains(&drawn), "{drawn}");
        let more = (20_000..200_000).filter(|n| sample.draws(&held, Some(&stamped), &uri(*n))).count();
        assert_eq!(drawn + more, 1_000);
    }

    #[test]
    fn what_a_header_shows_as_changed_is_not_of_the_sample() {
        let held = record("2026-01-01T00:00:00Z");
        let later = Datetime::parse_lenient("2026-01-02T00:00:00Z").unwrap().0;
        let mut sample = Sample { one_in: 1, ..Sample::of(&OaiProgress::default(), held.settled_at) };
        let uri: ResourceUri = "http://h/1".parse().unwrap();
        assert!(!sample.draws(&held, Some(&later), &uri) && !sample.draws(&held, None, &uri));
        let absent = model::Absence { document: "d".into(), at: None, seen_at: held.settled_at };
        let same = Datetime::parse_lenient("2026-01-01T00:00:00Z").unwrap().0;
        assert!(!sample.draws(&ResourceRecord { absent: Some(absent), ..held.clone() }, Some(&same), &uri));
        assert!(sample.draws(&held, Some(&same), &uri));
    }
}
