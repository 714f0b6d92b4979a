//! The entries of a manifest, spooled to the disk as they are read: what is held of each in memory is a few numbers.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use fixity::{Hasher, Sha256};
use jiff::{SignedDuration, Timestamp};
use model::{ManifestEntry, ManifestHeader, MemberOutcome, MemberResult, ResourceUri};
use packages::PackageError;
use resourcesync::{BadEntry, Datetime, Entry, Header, Item, Mode, Options, Precision, Quirk, Quirks, Zone};
use serde::{Deserialize, Serialize};
use store::{Spool, Spooled, Store};
use tokio::io::AsyncRead;

use crate::manifest::{self, Part};
use crate::trouble::Trouble;

/// Bytes of memory that an entry takes while its package is opened, at most: its row, its place among the URIs, its moment.
pub(crate) const ENTRY_BYTES: u64 = 192;
/// Bytes of spooled entries that are read at once, if one alone is not longer.
const READ: u64 = 1 << 20;
/// How far a Source's clock may be ahead of ours.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_mins(10);

/// How far local time can be ahead of UTC, and behind it.
const EASTERNMOST: SignedDuration = SignedDuration::from_hours(14);
const WESTERNMOST: SignedDuration = SignedDuration::from_hours(12);

/// What kind of entry a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It names a member.
    Named,
    /// It names none, as that of a deletion does.
    NoMember,
    /// It cannot be used.
    Bad,
    /// A later one of the same resource counts.
    Overtaken,
}

/// What is held of an entry.
#[derive(Debug, Clone, Copy)]
struct Row {
    at: u64,
    length: u32,
    kind: Kind,
}

/// An entry as it is spooled.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) entry: ManifestEntry,
    /// Why it cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bad: Option<String>,
}

/// All entries of a manifest.
#[derive(Debug)]
pub(crate) struct Entries {
    spooled: Spooled,
    rows: Vec<Row>,
    pub(crate) header: ManifestHeader,
    pub(crate) overtaken: u64,
    /// Bytes of the longest one that is not overtaken, as spooled.
    pub(crate) longest: u64,
}

impl Entries {
    /// Reads the manifest that `source` gives. `named` is told the number and the path of each entry that names a member.
    ///
    /// # Errors
    /// Whatever keeps it from being read to its end; more entries than the limit.
    pub(crate) async fn read(
        store: &Store,
        package: &ResourceUri,
        source: impl AsyncRead + Send + Unpin,
        limit: u64,
        now: Timestamp,
        named: impl FnMut(u32, &str) + Send,
    ) -> Result<Self, Trouble> {
        let latest = now.saturating_add(CLOCKS_DIFFER).unwrap_or(Timestamp::MAX);
        let options = Options {
            mode: Mode::Tolerant,
            base: Some(package.to_url()),
            latest: Some(latest),
            ..Options::default()
        };
        let (mut parts, moving) = manifest::begin(source, options);
        let mut collector = Collector::new(store.spool(Hasher::new([])).await?, limit, latest, named);
        let taking = async move {
            while let Some(part) = parts.recv().await {
                match part {
                    Part::Header(header) => collector.begin(&header)?,
                    Part::Items(items) => collector.take(items).await?,
                    Part::End(summary) => return collector.finish(&summary.quirks).await,
                    Part::Broken(error) => return Err(error.into()),
                }
            }
            Err(Trouble::Ours("the reader of a manifest stopped without a word".to_owned()))
        };
        let (moved, taken) = tokio::join!(moving, taking);
        // Where the archive failed, that is the cause, not what the parser makes of the missing rest.
        moved.map_err(PackageError::from_io)?;
        taken
    }

    /// How many there are, whatever they are.
    pub(crate) fn len(&self) -> u32 {
        self.rows.len() as u32
    }

    /// What kind the entry of this number is.
    pub(crate) fn kind(&self, number: u32) -> Kind {
        self.rows[number as usize].kind
    }

    /// How many are to be reported: all but those that others overtake.
    pub(crate) fn live(&self) -> u64 {
        self.rows.len() as u64 - self.overtaken
    }

    /// Counts what is odd about where the manifest lies.
    pub(crate) fn count_odd_place(&mut self) {
        *self.header.quirks.entry(Quirk::ManifestElsewhere.to_string()).or_default() += 1;
    }

    /// The next entries from number `from` on: as many as one read gives. None at the end.
    pub(crate) async fn next(&self, from: u32) -> Result<Option<Vec<Line>>, Trouble> {
        let rows = &self.rows[from as usize..];
        let Some(first) = rows.first() else { return Ok(None) };
        let fits = |row: &&Row| row.at + u64::from(row.length) - first.at <= READ;
        let count = rows.iter().take_while(fits).count().max(1);
        let end = rows[count - 1].at + u64::from(rows[count - 1].length);
        let bytes = self.spooled.read_range(first.at..end).await?;
        let lines = rows[..count].iter().map(|row| {
            let start = (row.at - first.at) as usize;
            line(&bytes[start..start + row.length as usize])
        });
        lines.collect::<Result<_, _>>().map(Some)
    }

    /// The entry of this number.
    pub(crate) async fn get(&self, number: u32) -> Result<Line, Trouble> {
        let Row { at, length, .. } = self.rows[number as usize];
        line(&self.spooled.read_range(at..at + u64::from(length)).await?)
    }
}

impl Line {
    /// What an entry without a member comes to.
    pub(crate) fn without_member(self) -> MemberOutcome {
        let result = self.bad.map_or(MemberResult::NoMember, MemberResult::BadEntry);
        MemberOutcome { entry: self.entry, result }
    }
}

fn line(bytes: &[u8]) -> Result<Line, Trouble> {
    serde_json::from_slice(bytes)
        .map_err(|error| Trouble::Ours(format!("a spooled entry cannot be read: {error}")))
}

/// Sixteen bytes that stand for a text: no two texts have the same.
pub(crate) fn digest_of(text: &str) -> [u8; 16] {
    let digest = Sha256::of(text.as_bytes());
    let (first, _) = digest.as_bytes().split_at(16);
    first.try_into().unwrap_or_default()
}

struct Collector<F> {
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
    fn new(spool: Spool, limit: u64, latest: Timestamp, named: F) -> Self {
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

    fn begin(&mut self, header: &Header) -> Result<(), Trouble> {
        if header.is_index() {
            let message =
                "its manifest is an index (sitemapindex), which names no members; tell the Source".to_owned();
            return Err(Trouble::Refused { reason: model::ProblemReason::WrongKind, message });
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

    async fn take(&mut self, items: Vec<Item>) -> Result<(), Trouble> {
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

    async fn finish(self, quirks: &Quirks) -> Result<Entries, Trouble> {
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
