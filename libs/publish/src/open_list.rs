//! The open Change List: it has room for more changes, or the next one is begun (§12.1).

use jiff::Timestamp;
use model::ResourceUri;
use object_store::UpdateVersion;

use crate::PublishError;
use crate::change_list_file::{entries_to_replace, put_list};
use crate::change_record::ChangeListRecord;
use crate::documents::change_list;
use crate::entries::Entries;
use crate::paths::{CHANGE_PARTS, name_of};
use crate::records::Stored;
use crate::segment::Segment;
use crate::state::State;
use crate::work::{Seen, Work, before, later};

/// Microseconds between two changes, at least: lists are cut between them, never at one.
pub(crate) const STEP: i64 = 2;
/// The most lists of an index, as in a Sitemap. Where there are so many, a list is closed only when it is full.
const MOST_LISTS: usize = 49_000;

/// The open Change List, and its entries.
pub(crate) struct Open {
    pub(crate) record: ChangeListRecord,
    pub(crate) entries: Entries,
    /// The bytes of the changes that this run tells, for the Change Dump.
    segment: Option<Segment>,
    /// The version of its document that was read.
    version: Option<UpdateVersion>,
}

impl Open {
    fn is_full(&self, work: &Work<'_>) -> bool {
        let policy = &work.policy;
        let count = self.entries.count();
        let is_package_full = self.record.dumped
            && (count >= policy.package_entries || self.record.bytes >= policy.package_bytes);
        let most_bytes = if work.place.is_guarded() { policy.guarded_list_bytes } else { policy.most_bytes };
        count >= policy.most_entries || self.entries.bytes() >= most_bytes || is_package_full
    }

    /// Keeps the bytes of the next change for the Change Dump. Without them its entry has no path.
    pub(crate) async fn keep_bytes(
        &mut self,
        work: &mut Work<'_>,
        uri: &ResourceUri,
        stored: &Stored,
    ) -> Result<(), PublishError> {
        if !self.record.dumped {
            return Ok(());
        }
        let number = self.entries.count();
        let segment = match &mut self.segment {
            Some(segment) => segment,
            none => none.insert(Segment::begin(work, &self.record, number)?),
        };
        match segment.add(work, number, uri, stored).await? {
            Ok(()) => self.record.bytes += stored.length,
            Err(error) => {
                work.done.damaged += 1;
                (work.see)(Seen::Damaged(uri, &error));
            }
        }
        Ok(())
    }
}

/// The open Change List, with room for one more change.
pub(crate) async fn room<'o>(
    work: &mut Work<'_>,
    state: &mut State,
    open: &'o mut Option<Open>,
) -> Result<&'o mut Open, PublishError> {
    let list = match open.take() {
        Some(list) => list,
        None => match state.lists.last().filter(|list| list.until.is_none()).cloned() {
            Some(record) => {
                let (entries, version) = entries_to_replace(work, state, &record).await?;
                let list = Open { record, entries, segment: None, version };
                // Its age counts once: a list that begins in this run may begin with changes of long ago.
                if is_old(work, state.lists.len(), &list.record) {
                    next(work, state, list).await?
                } else {
                    list
                }
            }
            None => {
                let from = state.lists.last().and_then(|list| list.until);
                begin(work, from.unwrap_or(state.last))?
            }
        },
    };
    let list = if list.is_full(work) { next(work, state, list).await? } else { list };
    Ok(open.insert(list))
}

/// Writes a list that is complete, and begins the one behind it.
async fn next(work: &mut Work<'_>, state: &mut State, list: Open) -> Result<Open, PublishError> {
    let until = later(state.last, STEP / 2);
    put(work, state, list, Some(until)).await?;
    begin(work, until)
}

/// Whether an open list with changes is to be closed, since it was begun long ago. The index has so many `lists`.
pub(crate) fn is_old(work: &Work<'_>, lists: usize, list: &ChangeListRecord) -> bool {
    let policy = &work.policy;
    let age = if list.dumped { policy.dumped_list_age } else { policy.change_list_age };
    list.changes > 0 && list.from <= before(work.now, age) && lists < MOST_LISTS
}

/// A Change List without changes.
pub(crate) fn begin(work: &Work<'_>, from: Timestamp) -> Result<Open, PublishError> {
    let path = name_of(CHANGE_PARTS, from, 0);
    let record = ChangeListRecord::open(path, from, work.dumps);
    Ok(Open { record, entries: Entries::begin(work.place)?, segment: None, version: None })
}

/// Writes a Change List. One that readers know as open stays open in this step: it gets its `until` when the index
/// leads to the list behind it.
pub(crate) async fn put(
    work: &mut Work<'_>,
    state: &mut State,
    list: Open,
    until: Option<Timestamp>,
) -> Result<(), PublishError> {
    let Open { mut record, entries, segment, version } = list;
    let mut entries = entries.finish()?;
    if let Some(segment) = segment {
        record.segments.push(segment.put(work).await?);
    }
    let known = state.lists.iter().position(|known| known.path == record.path);
    record.changes = entries.count;
    record.until = until.filter(|_| known.is_none());
    let document = entries.document(work.place, &change_list(work.base, &record))?;
    put_list(work, state, &mut record, document, version).await?;
    record.until = until;
    record.closed = until.is_some() && known.is_none();
    if record.closed {
        record.tag = None;
    }
    match known {
        Some(at) => state.lists[at] = record,
        None => state.lists.push(record),
    }
    Ok(())
}
