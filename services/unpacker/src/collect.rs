//! Collects the entries of a manifest one by one: spools them, compares them, and leaves overtaken ones out.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use documents::{DocumentError, Part};
use fixity::Hasher;
use jiff::Timestamp;
use model::{Links, ManifestEntry, ManifestHeader, ProblemReason, ResourceUri, packaged_patch};
use packages::PackageError;
use resourcesync::{
    BadEntry, Datetime, Entry, Header, Interval, Item, Link, Mode, Options, Quirks, relation,
};
use store::{Spool, Store};
use tokio::io::AsyncRead;

use crate::entries::{Entries, Kind, Line, Row, digest_of};
use crate::error::UnpackError;

/// Reads the manifest from `source`. Calls `named` with the number and the path of each entry that names a member, or
/// whose link to a patch does; without a number where such a link names another member beside that of the entry.
/// With `keep_earlier`, entries that a later one supersedes count, too, if they name a member.
///
/// # Errors
/// When the manifest cannot be read to its end, or has more entries than the limit.
pub(crate) async fn read_manifest(
    store: &Store,
    package: &ResourceUri,
    source: impl AsyncRead + Send + Unpin,
    limit: u64,
    keep_earlier: bool,
    now: Timestamp,
    named: impl FnMut(Option<u32>, &str) + Send,
) -> Result<Entries, UnpackError> {
    let options = documents::read_options(Mode::Tolerant, now);
    let mut collector =
        Collector::new(store.spool(Hasher::new([])).await?, limit, options.latest.unwrap_or(now), named);
    collector.keep_earlier = keep_earlier;
    let options = Options { base: Some(package.to_url()), ..options };
    let (mut parts, moving) = documents::parse_member(source, options);
    let taking = async move {
        while let Some(part) = parts.recv().await {
            match part {
                Part::Header(header) => collector.begin(&header)?,
                Part::Items(items) => collector.take(items).await?,
                Part::End(summary) => return collector.finish(&summary.quirks).await,
                Part::Broken(DocumentError::Read(error), _) => return Err(error.into()),
                Part::Broken(error, _) => return Err(UnpackError::Ours(error.to_string())),
            }
        }
        Err(UnpackError::Ours("the reader of a manifest stopped without a word".to_owned()))
    };
    let (moved, taken) = tokio::join!(moving, taking);
    moved.map_err(PackageError::from_io)?;
    taken
}

/// Collects entries while they are read.
struct Collector<F> {
    spool: Spool,
    limit: u64,
    latest: Timestamp,
    keep_earlier: bool,
    named: F,
    header: ManifestHeader,
    tells_changes: bool,
    at: u64,
    rows: Vec<Row>,
    /// The entry that counts so far, for each resource.
    counts: HashMap<[u8; 16], u32>,
    /// Interval of the changes, if the manifest gives one.
    interval: Interval,
    /// The earliest possible time of each entry's change, if known.
    firsts: Vec<Option<Timestamp>>,
    overtaken: u64,
}

impl<F: FnMut(Option<u32>, &str)> Collector<F> {
    fn new(spool: Spool, limit: u64, latest: Timestamp, named: F) -> Self {
        Self {
            spool,
            limit: limit.min(u32::MAX.into()),
            latest,
            keep_earlier: false,
            named,
            header: ManifestHeader::default(),
            tells_changes: false,
            at: 0,
            rows: Vec::new(),
            counts: HashMap::new(),
            interval: Interval::OPEN,
            firsts: Vec::new(),
            overtaken: 0,
        }
    }

    fn begin(&mut self, header: &Header) -> Result<(), UnpackError> {
        if header.is_index() {
            let message =
                "its manifest is an index (sitemapindex), which names no members; tell the Source".to_owned();
            return Err(UnpackError::Refused { reason: ProblemReason::WrongKind, message });
        }
        self.tells_changes = header.capability.as_ref().is_some_and(|capability| capability.tells_changes());
        let is_possible = |time: &&Datetime| time.instant() <= self.latest;
        let from = header.from.as_ref().filter(is_possible);
        let until = header.until.as_ref().filter(is_possible);
        self.interval = Interval::between(from, until);
        self.header = ManifestHeader::from(header);
        Ok(())
    }

    async fn take(&mut self, items: Vec<Item>) -> Result<(), UnpackError> {
        let mut bytes = Vec::new();
        for item in items {
            let number = self.rows.len() as u32;
            if u64::from(number) >= self.limit {
                let members = u64::from(number) + 1;
                let limit = self.limit;
                return Err(PackageError::TooManyMembers { members, limit }.into());
            }
            let start = bytes.len();
            let (line, kind) = match item {
                Item::Entry(entry) => self.entry(number, *entry),
                Item::Bad(bad) => bad_line(bad),
            };
            serde_json::to_writer(&mut bytes, &line).map_err(|error| UnpackError::Ours(error.to_string()))?;
            let length = (bytes.len() - start) as u32;
            self.rows.push(Row { at: self.at + start as u64, length, kind });
        }
        self.at += bytes.len() as u64;
        self.spool.append(bytes.into()).await?;
        Ok(())
    }

    fn entry(&mut self, number: u32, entry: Entry) -> (Line, Kind) {
        let moment = if self.tells_changes {
            Interval::of_change(&entry, self.interval, self.latest)
        } else {
            Interval::OPEN
        };
        self.firsts.resize(number as usize, None);
        self.firsts.push(moment.first());
        let mut kind = match &entry.metadata.path {
            Some(path) => {
                (self.named)(Some(number), path);
                Kind::Named
            }
            None if packaged_patch(&entry.metadata, &entry.links).is_some() => Kind::Patch,
            None => Kind::NoMember,
        };
        if let Some(path) = entry.links.iter().find_map(patch_path) {
            (self.named)((kind == Kind::Patch).then_some(number), path);
        }
        match self.counts.entry(digest_of(&entry.loc)) {
            Slot::Vacant(slot) => drop(slot.insert(number)),
            Slot::Occupied(mut slot) => {
                let before = *slot.get();
                // The later one in the manifest counts, unless its change certainly happened earlier: some Sources
                // list the newest first.
                let first_before = self.firsts[before as usize];
                let is_older = moment.last().zip(first_before).is_some_and(|(last, before)| last < before);
                let older = if is_older {
                    &mut kind
                } else {
                    slot.insert(number);
                    &mut self.rows[before as usize].kind
                };
                *older =
                    if self.keep_earlier && *older == Kind::Named { Kind::Earlier } else { Kind::Overtaken };
                self.overtaken += u64::from(*older == Kind::Overtaken);
            }
        }
        let Entry { loc, lastmod, metadata, links, position, .. } = entry;
        let links = Links::of(&links);
        let line = position.line;
        let column = position.column;
        let entry = ManifestEntry { loc, lastmod, metadata, links, line, column, earlier: false };
        (Line { entry, bad: None }, kind)
    }

    async fn finish(self, quirks: &Quirks) -> Result<Entries, UnpackError> {
        let spooled = self.spool.finish().await?;
        let mut header = self.header;
        header.quirks = quirks.iter().map(|(quirk, times)| (quirk.to_string(), times)).collect();
        let live = self.rows.iter().filter(|row| row.kind != Kind::Overtaken);
        let longest = live.map(|row| row.length.into()).max().unwrap_or_default();
        Ok(Entries { spooled, rows: self.rows, header, overtaken: self.overtaken, longest })
    }
}

/// Where a patch lies in the package.
fn patch_path(link: &Link) -> Option<&str> {
    link.path.as_deref().filter(|_| link.rel == relation::PATCH)
}

fn bad_line(bad: BadEntry) -> (Line, Kind) {
    let BadEntry { position, loc, reason } = bad;
    let entry = ManifestEntry {
        loc: loc.unwrap_or_default(),
        lastmod: None,
        metadata: Default::default(),
        links: None,
        line: position.line,
        column: position.column,
        earlier: false,
    };
    (Line { entry, bad: Some(reason.to_string()) }, Kind::Bad)
}
