//! Counters of documents that are not recorded as read yet.

use model::RunRecord;

/// Counters of documents that are not recorded as read yet. After a crash they are counted again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HeldBack {
    pub(crate) listed: u64,
    pub(crate) unchanged: u64,
    pub(crate) ignored: u64,
    pub(crate) failed: u64,
    pub(crate) out_of_scope: u64,
    pub(crate) by_rule: u64,
    pub(crate) loops: u64,
    pub(crate) linked: u64,
}

impl HeldBack {
    /// The run's record without these counters, for use after a crash.
    pub(crate) fn taken_from(self, run: &RunRecord) -> RunRecord {
        let mut run = run.clone();
        let counters = &mut run.counters;
        counters.listed = counters.listed.saturating_sub(self.listed);
        counters.unchanged = counters.unchanged.saturating_sub(self.unchanged);
        counters.ignored = counters.ignored.saturating_sub(self.ignored);
        counters.failed = counters.failed.saturating_sub(self.failed);
        counters.out_of_scope = counters.out_of_scope.saturating_sub(self.out_of_scope);
        counters.by_rule = counters.by_rule.saturating_sub(self.by_rule);
        counters.loops = counters.loops.saturating_sub(self.loops);
        counters.linked = counters.linked.saturating_sub(self.linked);
        run
    }

    pub(crate) fn of(run: &RunRecord) -> Self {
        let counters = &run.counters;
        Self {
            listed: counters.listed,
            unchanged: counters.unchanged,
            ignored: counters.ignored,
            failed: counters.failed,
            out_of_scope: counters.out_of_scope,
            by_rule: counters.by_rule,
            loops: counters.loops,
            linked: counters.linked,
        }
    }

    /// Adds what was counted between `before` and `now`.
    pub(crate) fn with(self, before: Self, now: Self) -> Self {
        Self {
            listed: self.listed + now.listed.saturating_sub(before.listed),
            unchanged: self.unchanged + now.unchanged.saturating_sub(before.unchanged),
            ignored: self.ignored + now.ignored.saturating_sub(before.ignored),
            failed: self.failed + now.failed.saturating_sub(before.failed),
            out_of_scope: self.out_of_scope + now.out_of_scope.saturating_sub(before.out_of_scope),
            by_rule: self.by_rule + now.by_rule.saturating_sub(before.by_rule),
            loops: self.loops + now.loops.saturating_sub(before.loops),
            linked: self.linked + now.linked.saturating_sub(before.linked),
        }
    }
}
