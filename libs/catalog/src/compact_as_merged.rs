//! Records that earlier versions wrote as JSON become compact when their files are merged.
//!
//! Merging reads and writes each record anyway. So a catalog of an earlier version shrinks as it is used, and no pass
//! of its own is needed. A record that cannot be read stays as it is: the damage is told when it is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use slatedb::{
    CompactionFilter, CompactionFilterDecision, CompactionFilterError, CompactionFilterSupplier,
    CompactionJobContext, RowEntry, ValueDeletable,
};

use crate::change_page::Changes;
use crate::keyspace::KeySpace;
use crate::pending::Pending;
use crate::resources::Resources;
use crate::stored::COMPACT;
use crate::versions::History;

/// Makes the filter of each merge. Until the catalog's schema is that of this version, all records stay as they are:
/// an earlier version would take compact ones for damage.
#[derive(Debug, Clone, Default)]
pub(crate) struct CompactAsMerged {
    is_allowed: Arc<AtomicBool>,
}

impl CompactAsMerged {
    /// The schema was written.
    pub(crate) fn allow(&self) {
        self.is_allowed.store(true, Ordering::Release);
    }
}

#[async_trait]
impl CompactionFilterSupplier for CompactAsMerged {
    async fn create_compaction_filter(
        &self,
        _context: &CompactionJobContext,
    ) -> Result<Box<dyn CompactionFilter>, CompactionFilterError> {
        Ok(Box::new(self.clone()))
    }
}

#[async_trait]
impl CompactionFilter for CompactAsMerged {
    /// Snapshots may see the new form: it says the same as the old one.
    async fn filter(&mut self, entry: &RowEntry) -> Result<CompactionFilterDecision, CompactionFilterError> {
        let ValueDeletable::Value(value) = &entry.value else { return Ok(CompactionFilterDecision::Keep) };
        if !self.is_allowed.load(Ordering::Acquire) {
            return Ok(CompactionFilterDecision::Keep);
        }
        Ok(match compacted(&entry.key, value) {
            Some(value) => CompactionFilterDecision::Modify(ValueDeletable::Value(value.into())),
            None => CompactionFilterDecision::Keep,
        })
    }

    async fn on_compaction_end(&mut self) -> Result<(), CompactionFilterError> {
        Ok(())
    }
}

/// A record of JSON in its compact form; none if it has none, or is compact already.
fn compacted(key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    if value.first() == Some(&COMPACT) {
        return None;
    }
    match *key.first()? {
        Resources::PREFIX => rewritten::<Resources>(value),
        Pending::PREFIX => rewritten::<Pending>(value),
        History::PREFIX => rewritten::<History>(value),
        Changes::PREFIX => rewritten::<Changes>(value),
        _ => None,
    }
}

fn rewritten<S: KeySpace>(value: &[u8]) -> Option<Vec<u8>> {
    let record = S::read(value).ok()?;
    let mut compact = Vec::with_capacity(value.len() / 2);
    S::write(&mut compact, &record);
    // A form that does not give the same record again must not replace it. Fields of JSON that this version does not
    // know are left out, as when the record is next written.
    let again = S::read(&compact).ok()?;
    let is_same = serde_json::to_vec(&again).ok()? == serde_json::to_vec(&record).ok()?;
    is_same.then_some(compact)
}

#[cfg(test)]
mod tests {
    use model::{ChangeEvent, ChangeLogEntry, RunId};

    use super::*;

    fn entry(name: &str) -> ChangeLogEntry {
        let uri = format!("http://h/{name}").parse().unwrap();
        let event = ChangeEvent::Created { sha256: fixity::Computed::of(b"x").sha256() };
        ChangeLogEntry::new(
            uri,
            event,
            jiff::Timestamp::UNIX_EPOCH,
            RunId::fresh(),
            "http://h/list.xml".into(),
        )
    }

    #[test]
    fn a_page_of_the_change_log_becomes_compact_and_says_the_same() {
        let old = serde_json::to_vec(&[entry("a"), entry("b")]).unwrap();
        let compact = compacted(b"c00000001", &old).unwrap();
        assert_eq!(compact[0], COMPACT);
        assert!(compact.len() < old.len() / 2, "{} of {}", compact.len(), old.len());
        assert_eq!(Changes::read(&compact), Changes::read(&old));
        assert_eq!(compacted(b"c00000001", &compact), None, "once is enough");
    }

    #[test]
    fn damage_and_records_that_stay_json_are_left_alone() {
        assert_eq!(compacted(b"rhttp://h/a", b"{\"cut off"), None);
        assert_eq!(compacted(b"rhttp://h/a", b""), None);
        assert_eq!(compacted(b"mschema", b"3"), None);
        assert_eq!(compacted(b"", b"{}"), None);
    }
}
