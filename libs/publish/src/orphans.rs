//! Finds files that nothing names: a run that was killed may have written them, and the next run others in their place.

use std::time::Duration;

use jiff::Timestamp;

use crate::PublishError;
use crate::paths::{CHANGE_DUMP_PARTS, CHANGE_PARTS, DUMP_PARTS, RESOURCE_PARTS, is_package};
use crate::place::OWN;
use crate::state::{Retired, State};
use crate::work::Work;

/// How long after a run that wrote something its folders are listed.
const AFTER: Duration = Duration::from_secs(24 * 3_600);
/// The most that are found at a time. Others are found a day later.
const MOST: usize = 10_000;

/// A run has written something: files are looked for later, if they are not to be already.
pub(crate) fn look_later(work: &Work<'_>, state: &mut State) {
    state.orphans_due.get_or_insert(after(work.now));
}

/// Packages that nothing names may have bytes that were withdrawn: they are looked for in this run, and go with it.
pub(crate) fn look_now(state: &mut State) {
    state.orphans_due = Some(Timestamp::MIN);
}

/// Whether they are to be looked for in this run, and go with it.
pub(crate) fn is_now(state: &State) -> bool {
    state.orphans_due == Some(Timestamp::MIN)
}

/// Retires the files that nothing names, if they are to be looked for now. So each stays for the time of a replaced
/// document, since a document of before may have named it.
pub(crate) async fn retire(work: &Work<'_>, state: &mut State) -> Result<(), PublishError> {
    let Some(due) = state.orphans_due.filter(|due| *due <= work.now) else { return Ok(()) };
    let mut found: Vec<String> = Vec::new();
    // Whether files with bytes filled the list: there may be more of them.
    let mut is_cut = false;
    {
        let mut known = state.named();
        known.extend(state.retired.iter().map(|file| file.path.as_str()));
        let segments = format!("{OWN}/changes");
        // Files with bytes come first: they may have to go at once.
        for folder in [DUMP_PARTS, CHANGE_DUMP_PARTS, &segments, RESOURCE_PARTS, CHANGE_PARTS] {
            let look = |path: String| {
                if found.len() < MOST && !known.contains(path.as_str()) {
                    found.push(path);
                }
            };
            work.place.each(folder, look).await?;
            is_cut |= folder == segments && found.len() == MOST;
        }
    }
    let is_now = due == Timestamp::MIN;
    let has_bytes = |path: &str| is_package(path) || path.starts_with(OWN);
    state.orphans_due = (found.len() == MOST).then(|| if is_now && is_cut { due } else { after(work.now) });
    state.retired.extend(found.into_iter().map(|path| {
        let since = if is_now && has_bytes(&path) { due } else { work.now };
        Retired { path, since }
    }));
    Ok(())
}

fn after(now: Timestamp) -> Timestamp {
    now.checked_add(AFTER).unwrap_or(Timestamp::MAX)
}
