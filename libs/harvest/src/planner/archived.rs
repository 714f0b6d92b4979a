//! Closes gaps by archived changes (ResourceSync Archives): Change Lists and Change Dumps that the Source no longer
//! offers, and still has. They are read before the lists are, because they are a part of the set's past only.

use std::collections::{HashSet, VecDeque};

use catalog::Batch;
use documents::{DocumentError, Part};
use model::{DocumentState, SetId, Validators};
use planning::continuity::{self, Closed, Gap};
use planning::{Horizon, queued_document};
use resourcesync::{Capability, Item};
use url::Url;

use crate::error::HarvestError;
use crate::planner::Planner;
use crate::planner::gaps::SetWithGaps;
use crate::run::RunContext;

/// Maximum documents of the Archives of a set that are read for its gaps: themselves, and the parts of an index.
const MOST_DOCUMENTS: usize = 100;
/// Maximum nesting of their indexes.
const MOST_LEVELS: usize = 3;
/// Maximum change documents that they may name.
const MOST_PIECES: usize = 10_000;

/// What is archived, and as what it is read.
const KINDS: [(Capability, Capability); 2] = [
    (Capability::ChangeListArchive, Capability::ChangeList),
    (Capability::ChangeDumpArchive, Capability::ChangeDump),
];

/// A change document that an Archive names.
struct Piece {
    uri: String,
    archive: String,
    times: Closed,
}

impl Planner {
    /// Queues the archived change documents that cover gaps, as far as their Archives say so. An Archive that covers
    /// only a part of a gap is of no use: the lists must be read anyway. Returns the URIs of what was queued.
    pub(crate) async fn queue_archived(
        &mut self,
        ctx: &mut RunContext,
        gaps: &[SetWithGaps],
    ) -> Result<Vec<String>, HarvestError> {
        let mut batch = Batch::new();
        let mut queued = Vec::new();
        for SetWithGaps { id, set, gaps } in gaps {
            let mut open: Vec<Gap> = gaps.clone();
            for (archive, kind) in KINDS {
                let archives: Vec<String> = set.documents(&archive).map(str::to_owned).collect();
                if open.is_empty() || archives.is_empty() {
                    continue;
                }
                let pieces = self.pieces(ctx, &archives, &archive).await?;
                let mut chosen = HashSet::new();
                open.retain(|gap| match continuity::covering(*gap, pieces.iter().map(|piece| piece.times)) {
                    Some(covering) => {
                        chosen.extend(covering);
                        false
                    }
                    None => true,
                });
                for (_, piece) in pieces.iter().enumerate().filter(|(n, _)| chosen.contains(n)) {
                    self.queue_piece(ctx, &mut batch, id, &kind, piece).await?;
                    queued.push(piece.uri.clone());
                }
            }
        }
        ctx.commit(batch).await?;
        Ok(queued)
    }

    async fn queue_piece(
        &mut self,
        ctx: &mut RunContext,
        batch: &mut Batch,
        set: &SetId,
        kind: &Capability,
        piece: &Piece,
    ) -> Result<(), HarvestError> {
        tracing::info!(set.id = %set, document.uri = piece.uri, "an archived change document closes a gap");
        let before = ctx.catalog().await?.document(&piece.uri).await?;
        let mut document = queued_document(ctx.run.id, set, kind, before);
        document.validators = Validators::default();
        document.parent = Some(piece.archive.clone());
        document.from = Some(piece.times.from);
        document.archived_until = Some(piece.times.until);
        batch.put_document(&piece.uri, &document);
        self.reading.budget.queue(1);
        Ok(())
    }

    /// Forgets those of these archived documents that could not be read: the lists are read in their place, so nothing
    /// is missing.
    pub(crate) async fn forget_unread_archived(
        &mut self,
        ctx: &mut RunContext,
        uris: &[String],
    ) -> Result<(), HarvestError> {
        for uri in uris {
            let record = ctx.catalog().await?.document(uri).await?;
            if record.is_some_and(|record| record.state == DocumentState::Failed) {
                self.forget_document(ctx, uri).await?;
            }
        }
        Ok(())
    }

    /// The change documents that Archives name, with certain times. Left out are those that this run has read already:
    /// they did not close the gap. An Archive that cannot be read names none.
    async fn pieces(
        &mut self,
        ctx: &mut RunContext,
        archives: &[String],
        kind: &Capability,
    ) -> Result<Vec<Piece>, HarvestError> {
        let mut named = Vec::new();
        let mut seen = HashSet::new();
        let mut next: VecDeque<(String, usize)> = archives.iter().map(|uri| (uri.clone(), 0)).collect();
        while let Some((uri, level)) = next.pop_front() {
            if level > MOST_LEVELS || seen.len() >= MOST_DOCUMENTS {
                tracing::warn!(document.uri = uri, "an Archive is too long to be read to its end");
                break;
            }
            if !seen.insert(uri.clone()) || self.reading.budget.begin_document(&ctx.options.limits).is_some()
            {
                continue;
            }
            match read_archive(ctx, &uri, kind, &mut named).await {
                Ok(parts) => next.extend(parts.into_iter().map(|uri| (uri, level + 1))),
                Err(why) => tracing::warn!(document.uri = uri, %why, "an Archive was not read"),
            }
        }
        let mut pieces = Vec::with_capacity(named.len());
        for piece in named {
            let known = ctx.catalog().await?.document(&piece.uri).await?;
            match known.filter(|known| known.run == ctx.run.id) {
                None => pieces.push(piece),
                Some(known) if known.state == DocumentState::Failed && known.archived_until.is_some() => {
                    self.forget_document(ctx, &piece.uri).await?;
                }
                Some(_) => {}
            }
        }
        Ok(pieces)
    }
}

/// Reads one document of an Archive. Adds what it names to `pieces`, and returns the parts of an index.
async fn read_archive(
    ctx: &mut RunContext,
    uri: &str,
    kind: &Capability,
    pieces: &mut Vec<Piece>,
) -> Result<Vec<String>, String> {
    let url = Url::parse(uri).map_err(|error| error.to_string())?;
    let horizon = Horizon::at(ctx.clock.now());
    let (requests, opened) = documents::open_anew(&ctx.client, &url, horizon.options(ctx.read_mode())).await;
    ctx.run.counters.requests += requests;
    let mut stream = opened.map_err(|error: DocumentError| error.to_string())?;
    let mut parts = Vec::new();
    let mut has_parts = false;
    while let Some(part) = stream.next().await {
        let items = match part {
            Part::Header(header) => {
                has_parts = if kind.is_archive() {
                    documents::expect_archive(&header, kind)?
                } else {
                    documents::expect_kind(&header, kind)?;
                    header.is_index()
                };
                continue;
            }
            Part::Items(items) => items,
            Part::Broken(error, _) => return Err(error.to_string()),
            Part::End(_) => break,
        };
        for item in items {
            let Item::Entry(entry) = item else { continue };
            if has_parts && parts.len() < MOST_DOCUMENTS {
                parts.push(entry.loc);
                continue;
            }
            let from = entry.metadata.from.and_then(|from| horizon.certain_instant(&from));
            let until = entry.metadata.until.and_then(|until| horizon.latest_instant(&until));
            if let (false, Some(from), Some(until)) = (has_parts, from, until)
                && pieces.len() < MOST_PIECES
            {
                let times = Closed { from, until };
                pieces.push(Piece { uri: entry.loc, archive: uri.to_owned(), times });
            }
        }
    }
    Ok(parts)
}
