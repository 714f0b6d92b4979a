//! Settling: turns outcomes into records, in atomic batches.

use crate::run::RunContext;

pub(crate) mod candidate;
pub(crate) mod failures;
pub(crate) mod mementos;
pub(crate) mod mirror_trials;
pub(crate) mod mirrors;
pub(crate) mod one_outcome;
pub(crate) mod outcomes;
mod tombstone;
pub(crate) mod versions;
mod view;

use std::collections::HashSet;

use bus::Delivery;
use model::Origin;
use store::View;

use crate::settler::mirror_trials::MirrorTrials;
use crate::settler::versions::History;

/// State of the settling of a run.
pub(crate) struct Settler {
    /// The view of resources as files, if there is one.
    pub(crate) view: Option<View>,
    /// Number of versions to keep of each resource.
    pub(crate) history: History,
    /// Origins whose bot defence answered with a challenge in this run.
    pub(crate) challenged: HashSet<Origin>,
    /// What the mirrors of this run gave.
    pub(crate) trials: MirrorTrials,
    /// Messages whose outcomes are being written to the catalog.
    unacknowledged: Vec<Delivery>,
    /// Whether no resource was stored before this dispatch. Each resource is settled once in it, so lookups find
    /// nothing.
    pub(crate) is_first_dispatch: bool,
}

impl Settler {
    /// A settler that keeps `history` versions.
    pub(crate) fn new(view: Option<View>, history: History) -> Self {
        Self {
            view,
            history,
            challenged: HashSet::new(),
            trials: MirrorTrials::default(),
            unacknowledged: Vec::new(),
            is_first_dispatch: false,
        }
    }

    /// Prepares for the outcomes of a dispatch.
    pub(crate) fn begin_dispatch(&mut self, ctx: &RunContext) {
        self.is_first_dispatch = ctx.is_catalog_empty();
    }

    /// A dispatch is over: later outcomes may be about resources that it stored.
    pub(crate) fn end_dispatch(&mut self) {
        self.is_first_dispatch = false;
    }
}
