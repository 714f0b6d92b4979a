//! Removes the files of resources whose deletion readers were told of long ago.

use std::ops::ControlFlow;

use jiff::Timestamp;
use resourcesync::Change;

use crate::bytes::uri_spelled;
use crate::change_record::ChangeListRecord;
use crate::names::Named;
use crate::published::{copy, each_entry};
use crate::state::State;
use crate::work::{Work, before, later};
use crate::{PublishError, paths};

/// Deletions of some time whose files are to go, by the Change Lists that tell them.
pub(crate) struct Sweep {
    from: Timestamp,
    over: Timestamp,
    lists: Vec<String>,
}

impl Sweep {
    /// The one that is due, if any. Its time moves on about once an hour, so Change Lists are not read more often.
    pub(crate) fn due(work: &Work<'_>, state: &State) -> Option<Self> {
        let told = state.told.by(before(work.now, work.policy.keep_replaced))?;
        // Readers of an older list were told long ago.
        let over = later(told, 1);
        let from = state.swept_to.unwrap_or(Timestamp::MIN);
        if !state.with_bytes || over <= from {
            return None;
        }
        let end = state.last;
        let is_due = |list: &&ChangeListRecord| list.from < over && list.until.unwrap_or(end) >= from;
        let lists: Vec<String> = state.lists.iter().filter(is_due).map(|list| list.path.clone()).collect();
        (!lists.is_empty()).then_some(Self { from, over, lists })
    }

    /// Removes the files of those that are not back.
    pub(crate) async fn remove(self, work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
        let Self { from, over, lists } = self;
        for list in lists {
            let mut gone: Vec<String> = Vec::new();
            each_entry(&list, copy(work, &list).await?, |entry| {
                let at = entry.metadata.datetime.map(|at| at.instant());
                let is_due = at.is_some_and(|at| at >= from && at < over);
                if is_due && entry.metadata.change == Some(Change::Deleted) {
                    gone.push(entry.loc);
                }
                Ok(ControlFlow::Continue(()))
            })?;
            for url in gone {
                remove_if_gone(work, state, &url, over).await?;
            }
        }
        state.swept_to = Some(over);
        Ok(())
    }
}

async fn remove_if_gone(
    work: &mut Work<'_>,
    state: &State,
    url: &str,
    over: Timestamp,
) -> Result<(), PublishError> {
    let uri = match work.records.named(work.base, url) {
        Some(Named::Resource(uri)) => uri,
        Some(Named::Long(sha256)) => match uri_spelled(work.place, sha256).await? {
            Some(uri) => uri,
            None => return Ok(()),
        },
        None => return Err(PublishError::changed(url, "it is not the URL of a resource")),
    };
    let path = work.records.path(&uri);
    debug_assert!(!paths::is_document(path.as_str()));
    // The file of a damaged one is of an earlier version. Who has the list before its damage may ask for it.
    if state.is_missing_before(&uri, over) || !work.records.is_present(&uri).await? {
        work.place.remove(path.as_str()).await?;
        work.done.removed += 1;
    }
    Ok(())
}
