//! Reads the headers of a repository's list: what it has now, and since when.

use std::sync::Arc;

use model::{OaiList, OaiOptions, SetId};
use oaipmh::{Item, RecordHeader};
use planning::Lists;

use super::Auditor;
use super::read::{Audited, SpooledLists};
use crate::error::HarvestError;
use crate::oai::{Headers, entry, entry_context};
use crate::run::RunContext;

impl Auditor {
    /// Reads all headers of a list. A record counts by its last header.
    pub(crate) async fn read_repository(
        &mut self,
        ctx: &mut RunContext,
        spooled: &mut SpooledLists,
        id: &SetId,
        list: &OaiList,
    ) -> Result<Audited, HarvestError> {
        let number = spooled.begin(id.as_str(), id);
        let known = ctx.sets.get(id).and_then(|set| set.oai.clone());
        let known = known.as_ref().map(|known| &known.progress);
        ctx.progress.show_document(id.as_str());
        let mut lists = Lists {
            set: id.clone(),
            document: id.as_str().to_owned(),
            at: None,
            uris: vec![id.as_str().to_owned()],
        };
        let mut is_whole = true;
        match Headers::of(ctx, id, list, known) {
            None => spooled.note_unread(|| format!("{id} was not read: {} is no base URL", list.base)),
            Some(mut headers) => {
                let context = entry_context(ctx, Arc::from(id.as_str()), id.clone());
                while let Some(items) = headers.next(ctx).await? {
                    for item in items {
                        let header: RecordHeader = match item {
                            Item::Header(header) => *header,
                            Item::Bad(bad) => {
                                is_whole = false;
                                spooled.note_unread(|| {
                                    format!("{id} has a header that cannot be read: {}", bad.reason)
                                });
                                continue;
                            }
                            Item::Record(_) | Item::Set(_) | Item::Format(_) => continue,
                        };
                        let entry = entry(headers.base(), headers.prefix(), header, true);
                        if !ctx.options.filter.takes(&entry.loc) {
                            continue;
                        }
                        ctx.run.counters.listed += 1;
                        match context.read(entry) {
                            Ok(entry) => spooled.entries.add(&entry, number)?,
                            Err(error) => spooled.note_unread(|| error.to_string()),
                        }
                    }
                    spooled.entries.make_room().await?;
                    ctx.show();
                }
                let read = headers.end();
                ctx.run.counters.add_quirks(&read.quirks);
                lists.at = read.started;
                if let Some(why) = read.unread {
                    is_whole = false;
                    spooled.note_unread(|| format!("{id} was not read to its end: {why}"));
                }
            }
        }
        let is_whole = is_whole && lists.at.is_some();
        let (at_latest, changes) = (lists.at, Vec::new());
        Ok(Audited { id: id.clone(), lists, at_latest, is_whole, changes, held: 0, to_delete: 0 })
    }
}

/// Which lists of a repository are audited: those that the options choose, or else those that were harvested last. None
/// if the Source is no repository.
pub(crate) fn chosen(ctx: &RunContext) -> Option<OaiOptions> {
    let lists = || ctx.sets.values().filter(|set| !set.left_out).filter_map(|set| set.oai.as_ref());
    let one = lists().next()?;
    if !ctx.options.oai.is_empty() {
        return Some(ctx.options.oai.clone());
    }
    let mut sets: Vec<String> = lists().filter_map(|list| list.set.clone()).collect();
    sets.sort_unstable();
    let encoding = ctx.options.oai.encoding;
    Some(OaiOptions { metadata_prefix: Some(one.prefix.clone()), sets, encoding })
}
