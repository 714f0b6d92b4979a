//! Entries of a manifest, taken one by one: spooled, told from each other, and those that others overtake left out.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use jiff::{SignedDuration, Timestamp};
use model::{ManifestEntry, ManifestHeader, ProblemReason};
use packages::PackageError;
use resourcesync::{BadEntry, Datetime, Entry, Header, Item, Precision, Quirks, Zone};
use store::Spool;

use crate::entries::{Entries, Kind, Line, Row, digest_of};
use crate::trouble::Trouble;

/// How far a Source's clock may be ahead of ours.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_mins(10);
/// How far local time can be ahead of UTC, and behind it.
const EASTERNMOST: SignedDuration = SignedDuration::from_hours(14);
const WESTERNMOST: SignedDuration = SignedDuration::from_hours(12);

/// The latest moment that a time can truly mean when it is read.
pub(crate) fn horizon(now: Timestamp) -> Timestamp {
    now.saturating_add(CLOCKS_DIFFER).unwrap_or(Timestamp::MAX)
}

/// Takes entries as they are read.
pub(crate) struct Collector<F> {
    spool: Spool,
    limit: u64,
    latest: Timestamp,
    named: F,
    header: ManifestHeader,
    tells_changes: bool,
    at: u64,
    rows: Vec<Row>,
    /// For each resource, the entry that counts so far.
    counts: HashMap<[u8; 16], u32>,
    /// When each entry's change happened.
    moments: Vec<Moment>,
    overtaken: u64,
}

/// The first and the last instant that a time can mean, in milliseconds; nothing where that is not certain.
type Moment = Option<(i64, i64)>;

impl<F: FnMut(u32, &str)> Collector<F> {
    pub(crate) fn new(spool: Spool, limit: u64, latest: Timestamp, named: F) -> Self {
        Self {
            spool,
            limit: limit.min(u32::MAX.into()),
            latest,
            named,
            header: ManifestHeader::default(),
            tells_changes: false,
            at: 0,
            rows: Vec::new(),
            counts: HashMap::new(),
            moments: Vec::new(),
            overtaken: 0,
        }
    }

    pub(crate) fn begin(&mut self, header: &Header) -> Result<(), Trouble> {
        if header.is_index() {
            let message =
                "its manifest is an index (sitemapindex), which names no members; tell the Source".to_owned();
            return Err(Trouble::Refused { reason: ProblemReason::WrongKind, message });
        }
        self.tells_changes = header.capability.as_ref().is_some_and(|capability| capability.tells_changes());
        self.header = ManifestHeader {
            capability: header.capability.clone(),
            at: header.at,
            completed: header.completed,
            from: header.from,
            until: header.until,
            quirks: Default::default(),
        };
        Ok(())
    }

    pub(crate) async fn take(&mut self, items: Vec<Item>) -> Result<(), Trouble> {
        let mut bytes = Vec::new();
        for item in items {
            let number = self.rows.len() as u32;
            if u64::from(number) >= self.limit {
                let (members, limit) = (u64::from(number) + 1, self.limit);
                return Err(PackageError::TooManyMembers { members, limit }.into());
            }
            let start = bytes.len();
            let (line, kind) = match item {
                Item::Entry(entry) => self.entry(number, *entry),
                Item::Bad(bad) => bad_line(bad),
            };
            serde_json::to_writer(&mut bytes, &line).map_err(|error| Trouble::Ours(error.to_string()))?;
            let length = (bytes.len() - start) as u32;
            self.rows.push(Row { at: self.at + start as u64, length, kind });
        }
        self.at += bytes.len() as u64;
        self.spool.append(bytes.into()).await?;
        Ok(())
    }

    fn entry(&mut self, number: u32, entry: Entry) -> (Line, Kind) {
        let moment = entry.metadata.datetime.or(entry.lastmod).filter(|_| self.tells_changes);
        let moment = moment.and_then(|moment| certain(&moment, self.latest));
        self.moments.resize(number as usize, None);
        self.moments.push(moment);
        let mut kind = match &entry.metadata.path {
            Some(path) => {
                (self.named)(number, path);
                Kind::Named
            }
            None => Kind::NoMember,
        };
        match self.counts.entry(digest_of(&entry.loc)) {
            Slot::Vacant(slot) => drop(slot.insert(number)),
            Slot::Occupied(mut slot) => {
                self.overtaken += 1;
                let before = *slot.get();
                // The later in the manifest, unless its change certainly happened earlier: some write the newest first.
                match (self.moments[before as usize], moment) {
                    (Some((first_before, _)), Some((_, last))) if last < first_before => {
                        kind = Kind::Overtaken
                    }
                    _ => {
                        self.rows[before as usize].kind = Kind::Overtaken;
                        slot.insert(number);
                    }
                }
            }
        }
        let Entry { loc, lastmod, metadata, position, .. } = entry;
        let (line, column) = (position.line, position.column);
        (Line { entry: ManifestEntry { loc, lastmod, metadata, line, column }, bad: None }, kind)
    }

    pub(crate) async fn finish(self, quirks: &Quirks) -> Result<Entries, Trouble> {
        let spooled = self.spool.finish().await?;
        let mut header = self.header;
        header.quirks = quirks.iter().map(|(quirk, times)| (quirk.to_string(), times)).collect();
        let live = self.rows.iter().filter(|row| row.kind != Kind::Overtaken);
        let longest = live.map(|row| row.length.into()).max().unwrap_or_default();
        Ok(Entries { spooled, rows: self.rows, header, overtaken: self.overtaken, longest })
    }
}

fn bad_line(bad: BadEntry) -> (Line, Kind) {
    let BadEntry { position, loc, reason } = bad;
    let entry = ManifestEntry {
        loc: loc.unwrap_or_default(),
        lastmod: None,
        metadata: Default::default(),
        line: position.line,
        column: position.column,
    };
    (Line { entry, bad: Some(reason.to_string()) }, Kind::Bad)
}

/// The first and the last instant that a time can mean. One without zone is that of any place on Earth; one in the future is wrong
/// by nobody knows how much.
fn certain(time: &Datetime, latest: Timestamp) -> Moment {
    if time.instant() > latest {
        return None;
    }
    let (ahead, behind) = match time.zone() {
        Zone::Missing => (EASTERNMOST, WESTERNMOST),
        Zone::Utc | Zone::Offset(_) => (SignedDuration::ZERO, SignedDuration::ZERO),
    };
    let length = match time.precision() {
        Precision::Year => SignedDuration::from_hours(366 * 24),
        Precision::Month => SignedDuration::from_hours(31 * 24),
        Precision::Day => SignedDuration::from_hours(24),
        Precision::Minute => SignedDuration::from_mins(1),
        Precision::Second => SignedDuration::from_secs(1),
        Precision::Subsecond => SignedDuration::from_millis(1),
    };
    // A few years in all: no time that can be written is near the bounds of 64 bits.
    let milliseconds = |duration: SignedDuration| duration.as_millis() as i64;
    let start = time.instant().as_millisecond();
    Some((start - milliseconds(ahead), start + milliseconds(length) - 1 + milliseconds(behind)))
}
