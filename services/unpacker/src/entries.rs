//! The entries of a manifest, spooled to the disk as they are read. Only a few numbers per entry are in memory.

use fixity::Sha256;
use model::{ManifestEntry, ManifestHeader, MemberOutcome, MemberResult};
use resourcesync::Quirk;
use serde::{Deserialize, Serialize};
use store::Spooled;

use crate::error::UnpackError;

/// Maximum memory of an entry while its package is opened, in bytes: its row, its place among the URIs, its time.
pub(crate) const ENTRY_BYTES: u64 = 192;
/// Bytes of spooled entries per read, unless a single one is longer.
const READ: u64 = 1 << 20;

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It names a member.
    Named,
    /// It names none, and a link of it a patch.
    Patch,
    /// It names none, for example that of a deletion.
    NoMember,
    /// It is unusable.
    Bad,
    /// It names a member, and a later entry is about the same resource: an earlier version, which is unpacked.
    Earlier,
    /// A later entry of the same resource replaces it.
    Overtaken,
}

/// The part of an entry that stays in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) at: u64,
    pub(crate) length: u32,
    pub(crate) kind: Kind,
}

/// An entry in the spool.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) entry: ManifestEntry,
    /// Why it is unusable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bad: Option<String>,
}

/// All entries of a manifest.
#[derive(Debug)]
pub(crate) struct Entries {
    pub(crate) spooled: Spooled,
    pub(crate) rows: Vec<Row>,
    pub(crate) header: ManifestHeader,
    pub(crate) overtaken: u64,
    /// Bytes of the longest spooled entry that counts.
    pub(crate) longest: u64,
}

impl Kind {
    /// Whether the member that the entry, or its link, names is read.
    pub(crate) fn has_member(self) -> bool {
        matches!(self, Self::Named | Self::Earlier | Self::Patch)
    }
}

impl Entries {
    /// Number of entries of any kind.
    pub(crate) fn len(&self) -> u32 {
        self.rows.len() as u32
    }

    /// Kind of the entry with this number.
    pub(crate) fn kind(&self, number: u32) -> Kind {
        self.rows[number as usize].kind
    }

    /// Number of entries to report: all except the overtaken ones.
    pub(crate) fn live(&self) -> u64 {
        self.rows.len() as u64 - self.overtaken
    }

    /// Counts the quirk of a misplaced manifest.
    pub(crate) fn count_odd_place(&mut self) {
        *self.header.quirks.entry(Quirk::ManifestElsewhere.to_string()).or_default() += 1;
    }

    /// The entries from number `from` on, as many as one read returns. None at the end.
    pub(crate) async fn next(&self, from: u32) -> Result<Option<Vec<Line>>, UnpackError> {
        let rows = &self.rows[from as usize..];
        let Some(first) = rows.first() else { return Ok(None) };
        let fits = |row: &&Row| row.at + u64::from(row.length) - first.at <= READ;
        let count = rows.iter().take_while(fits).count().max(1);
        let end = rows[count - 1].at + u64::from(rows[count - 1].length);
        let bytes = self.spooled.read_range(first.at..end).await?;
        let lines = rows[..count].iter().map(|row| {
            let start = (row.at - first.at) as usize;
            line(&bytes[start..start + row.length as usize], row.kind)
        });
        lines.collect::<Result<_, _>>().map(Some)
    }

    /// The entry with this number.
    pub(crate) async fn get(&self, number: u32) -> Result<Line, UnpackError> {
        let Row { at, length, kind } = self.rows[number as usize];
        line(&self.spooled.read_range(at..at + u64::from(length)).await?, kind)
    }
}

impl Line {
    /// Outcome of an entry without a member.
    pub(crate) fn without_member(self) -> MemberOutcome {
        let result = self.bad.map_or(MemberResult::NoMember, MemberResult::BadEntry);
        MemberOutcome::new(self.entry, result)
    }
}

fn line(bytes: &[u8], kind: Kind) -> Result<Line, UnpackError> {
    let mut line: Line = serde_json::from_slice(bytes)
        .map_err(|error| UnpackError::Ours(format!("a spooled entry cannot be read: {error}")))?;
    // Known only after all entries were spooled.
    line.entry.earlier = kind == Kind::Earlier;
    Ok(line)
}

/// Sixteen bytes that identify a text: no two texts have the same.
pub(crate) fn digest_of(text: &str) -> [u8; 16] {
    let digest = Sha256::of(text.as_bytes());
    let (first, _) = digest.as_bytes().split_at(16);
    first.try_into().unwrap_or_default()
}
