//! What of a Source's runs tells that its catalog may have changed. Looking at it costs no request to the store.

use control::Run;
use model::RunId;

/// What a run has changed so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    run: RunId,
    stored: u64,
    healed: u64,
    deleted: u64,
    is_over: bool,
}

impl Mark {
    pub(crate) fn of(run: &Run) -> Self {
        let counters = &run.progress.counters;
        Self {
            run: run.spec.id,
            stored: counters.stored,
            healed: counters.healed,
            deleted: counters.deleted,
            is_over: run.state.is_over(),
        }
    }

    /// Whether the run has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether the run has changed the catalog since `published` was looked at. A run that changed nothing asks for no
    /// look; where nothing was published yet, each run asks for one.
    pub(crate) fn is_news(&self, published: Option<&Self>) -> bool {
        let Some(published) = published else { return true };
        self != published && (self.stored, self.healed, self.deleted) != (0, 0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_without_changes_is_no_news() {
        let run = RunId::fresh();
        let mark = |stored, is_over| Mark { run, stored, healed: 0, deleted: 0, is_over };
        let idle = Mark { run: RunId::fresh(), ..mark(0, true) };
        assert!(mark(0, false).is_news(None), "nothing was published yet");
        assert!(mark(1, false).is_news(Some(&mark(0, false))));
        assert!(mark(1, true).is_news(Some(&mark(1, false))), "its last changes may be behind what was seen");
        assert!(!mark(1, true).is_news(Some(&mark(1, true))));
        assert!(!idle.is_news(Some(&mark(1, true))));
    }
}
