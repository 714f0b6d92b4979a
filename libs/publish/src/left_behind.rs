//! Files of resources that records lack which were made anew: no Change List tells their deletion. They are found by a
//! listing, and go when no reader uses an older list any more.

use std::io::{BufRead as _, BufReader, BufWriter, Write as _};

use futures::TryStreamExt as _;
use jiff::Timestamp;

use crate::PublishError;
use crate::bytes::uri_spelled;
use crate::names::Named;
use crate::place::{About, Place};
use crate::records::Records;
use crate::state::{LeftBehind, State};
use crate::work::Work;

/// The publisher's own list of them: a path in each line. There may be as many as there are resources.
const LIST: &str = ".thresher/left-behind.txt";
/// The folders of resources, of a harvest and of a directory.
const FOLDERS: [&str; 2] = ["resources", "files"];

/// Lists them, if there may be some. All that the records have is at the place by then.
pub(crate) async fn look(work: &Work<'_>, state: &mut State) -> Result<(), PublishError> {
    if state.left_behind != Some(LeftBehind::Possible) {
        return Ok(());
    }
    let (records, place) = (work.records, work.place);
    let mut list = BufWriter::new(place.temporary()?);
    let mut is_any = false;
    for folder in FOLDERS {
        let mut paths = place.paths(folder);
        while let Some(path) = paths.try_next().await? {
            if is_left_behind(records, place, &path).await? {
                writeln!(list, "{path}")?;
                is_any = true;
            }
        }
    }
    if is_any {
        let list = list.into_inner().map_err(|error| error.into_error())?;
        place.put_file(LIST, list, &About { is_private: true, ..About::default() }).await?;
    }
    state.left_behind = is_any.then(|| LeftBehind::Listed(work.time()));
    Ok(())
}

/// Whether they are listed since then, or longer.
pub(crate) fn are_due(state: &State, over: Timestamp) -> bool {
    matches!(state.left_behind, Some(LeftBehind::Listed(since)) if since <= over)
}

/// Removes those that are listed. One whose resource is back stays.
pub(crate) async fn remove(work: &mut Work<'_>, state: &mut State) -> Result<(), PublishError> {
    // A run that was killed behind the last removal has removed the list.
    if let Some(list) = work.place.copy(LIST).await? {
        for path in BufReader::new(list).lines() {
            let path = path?;
            if is_left_behind(work.records, work.place, &path).await? {
                work.place.remove(&path).await?;
                work.done.removed += 1;
            }
        }
        work.place.remove(LIST).await?;
    }
    state.left_behind = None;
    Ok(())
}

/// Whether a path is that of a resource which is not there.
async fn is_left_behind(records: &dyn Records, place: &Place, path: &str) -> Result<bool, PublishError> {
    let uri = match records.at(path) {
        Some(Named::Resource(uri)) => Some(uri),
        Some(Named::Long(sha256)) => uri_spelled(place, sha256).await?,
        None => None,
    };
    match uri {
        Some(uri) => Ok(!records.is_present(&uri).await?),
        None => Ok(false),
    }
}
