//! The resources for `get-all --list`: the entries of a Resource List, with their declarations. Thresher's
//! own parser reads it, on a thread of its own.

use anyhow::{Context as _, ensure};
use fixity::Algorithm;
use model::Declaration;
use resourcesync::{Datetime, Entry, Item, Options, Reader};
use tokio::sync::mpsc;

use crate::keep::{PLANNED_TOGETHER, Wanted};

/// Batches that may wait to be planned.
const AHEAD: usize = 2;

/// The entries of the list, in batches and in its order.
pub(crate) fn read(list: Vec<u8>) -> mpsc::Receiver<anyhow::Result<Vec<Wanted>>> {
    let (sender, portions) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        if let Err(error) = send(&list, &sender) {
            let _ = sender.blocking_send(Err(error));
        }
    });
    portions
}

fn send(list: &[u8], portions: &mpsc::Sender<anyhow::Result<Vec<Wanted>>>) -> anyhow::Result<()> {
    let mut reader = Reader::new(list, Options::default())?;
    let mut portion = Vec::with_capacity(PLANNED_TOGETHER);
    while let Some(item) = reader.next()? {
        let Item::Entry(entry) = item else { continue };
        portion.push(wanted(*entry)?);
        if portion.len() == PLANNED_TOGETHER {
            let full = std::mem::replace(&mut portion, Vec::with_capacity(PLANNED_TOGETHER));
            portions.blocking_send(Ok(full)).context("nobody plans any more")?;
        }
    }
    let summary = reader.summary();
    ensure!(summary.complete && summary.bad == 0, "the list is not as it should be: {summary:?}");
    portions.blocking_send(Ok(portion)).context("nobody plans any more")
}

fn wanted(entry: Entry) -> anyhow::Result<Wanted> {
    let metadata = entry.metadata;
    let hashes = metadata.hash.as_deref().map(fixity::parse_hashes).unwrap_or_default();
    let declaration = Declaration {
        digests: hashes.known,
        length: metadata.length,
        lastmod: entry.lastmod.as_ref().map(Datetime::instant),
        ..Declaration::default()
    };
    Ok(Wanted { uri: entry.loc.try_into()?, declaration })
}

/// The declared sha-256.
pub(crate) fn sha256(wanted: &Wanted) -> anyhow::Result<[u8; 32]> {
    let digests = &wanted.declaration.digests;
    let found = digests.iter().find(|digest| digest.algorithm() == Algorithm::Sha256);
    let found = found.with_context(|| format!("{} is listed without sha-256", wanted.uri))?;
    Ok(found.bytes().try_into()?)
}
