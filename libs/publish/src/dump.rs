//! The Resource Dump: the packages of one pass over the records.

use std::collections::HashSet;

use bytes::Bytes;
use fixity::Sha256;
use jiff::Timestamp;

use crate::PublishError;
use crate::documents::put_fixed;
use crate::dump_documents::{resource_dump, resource_dump_index};
use crate::paths::{DUMP, DUMP_PARTS, name_with};
use crate::place::xml;
use crate::state::{Dump, Retired, State};
use crate::work::{Work, before};

/// Whether a new Resource Dump is due with the next Resource List.
pub(crate) fn is_due(work: &Work<'_>, state: &State) -> bool {
    let Some(dump) = state.dump.as_ref().filter(|_| work.dumps) else { return work.dumps };
    let resources: u64 = dump.packages.iter().map(|package| package.resources).sum();
    let many = state.changes_since_dump.saturating_mul(100)
        > work.policy.dump_changed_percent.saturating_mul(resources);
    let is_old = dump.completed <= before(work.now, work.policy.dump_age);
    state.purge || many || is_old && state.changes_since_dump > 0
}

/// Switches to a new Resource Dump by one document, and retires the packages that it does not have.
pub(crate) async fn switch(
    work: &mut Work<'_>,
    state: &mut State,
    mut dump: Dump,
    changes: u64,
) -> Result<(), PublishError> {
    let document = put_parts(work, &mut dump).await?;
    work.place.flush().await?;
    work.done.documents += put_fixed(work.place, &mut state.fixed, DUMP, document, &xml()).await?;
    let kept: HashSet<&str> = dump.paths().collect();
    let old = state.dump.iter().flat_map(Dump::paths).filter(|path| !kept.contains(path));
    // Those with bytes of what was withdrawn were removed before.
    let since = work.time();
    state.purge = false;
    let gone: Vec<_> = old.map(|path| Retired { path: path.to_owned(), since }).collect();
    // One that was given up may be taken up again with the same packages.
    state.retired.retain(|file| !kept.contains(file.path.as_str()) && file.path != DUMP);
    state.retired.extend(gone);
    if let Some(old) = state.dump.replace(dump) {
        state.note_replaced(&work.policy, old.oldest(), work.time());
    }
    // Those that came during the pass.
    state.changes_since_dump = state.changes.saturating_sub(changes);
    Ok(())
}

/// Writes the parts of a Resource Dump of more packages than one document has. Returns the document that leads to all.
async fn put_parts(work: &mut Work<'_>, dump: &mut Dump) -> Result<Bytes, PublishError> {
    let most = work.policy.most_packages.max(1);
    if dump.packages.len() <= most {
        return resource_dump(work.base, dump, &dump.packages, false);
    }
    for (number, packages) in (1..).zip(dump.packages.chunks(most)) {
        let document = resource_dump(work.base, dump, packages, true)?;
        // With its digest in the name, it replaces none of another dump of the same time.
        let short: String = Sha256::of(&document).to_string().chars().take(12).collect();
        let path = name_with(DUMP_PARTS, dump.at, number, &format!("-{short}.xml"));
        work.place.put(&path, document, &xml()).await?;
        work.done.documents += 1;
        dump.parts.push(path);
    }
    resource_dump_index(work.base, dump)
}

/// Gives up the Resource Dump: readers may use it for a while.
pub(crate) fn give_up(work: &Work<'_>, state: &mut State) {
    if let Some(draft) = &mut state.draft {
        draft.packages = None;
    }
    let Some(dump) = state.dump.take() else { return };
    // A run may have been killed before it removed those with bytes of what was withdrawn.
    let since = if std::mem::take(&mut state.purge) { Timestamp::MIN } else { work.now };
    let gone = dump.paths().chain([DUMP]).map(|path| Retired { path: path.to_owned(), since });
    let gone: Vec<_> = gone.collect();
    state.retired.extend(gone);
    state.note_replaced(&work.policy, dump.oldest(), work.now);
    state.fixed.remove(DUMP);
    state.changes_since_dump = 0;
}
