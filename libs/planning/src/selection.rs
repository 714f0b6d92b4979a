//! Whether what was read before holds for the options of this run. Pure.

use model::{RunRecord, SelectionId};

use crate::HarvestOptions;

/// The entries that a run selects. A document, package or baseline that was read with another selection is read
/// again: it may list resources that are selected only now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selection {
    id: SelectionId,
    /// Whether it covers records of an earlier version, which state no selection.
    covers_unmarked: bool,
}

impl Selection {
    /// The selection of these options. `last` is the last run, also if it was interrupted.
    pub fn of(options: &HarvestOptions, last: Option<&RunRecord>) -> Self {
        let fingerprint = options.fingerprint();
        let covers_unmarked = last.is_some_and(|run| run.options == fingerprint);
        Self { id: SelectionId::of(&fingerprint), covers_unmarked }
    }

    /// Its id, for the records of what is read now.
    pub fn id(&self) -> SelectionId {
        self.id
    }

    /// Whether what was read with `before` need not be read again for this selection.
    pub fn covers(&self, before: Option<SelectionId>) -> bool {
        before.map_or(self.covers_unmarked, |before| before == self.id)
    }

    /// The selection of something that was begun with `before`, and goes on with this one.
    pub fn after(&self, before: Option<SelectionId>) -> SelectionId {
        if self.covers(before) { self.id } else { SelectionId::SEVERAL }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_read_with_the_same_options_counts() {
        let strict = HarvestOptions { strict: true, ..HarvestOptions::default() };
        let selection = Selection::of(&HarvestOptions::default(), None);
        assert!(selection.covers(Some(selection.id())));
        assert!(!selection.covers(Some(Selection::of(&strict, None).id())));
        assert!(!selection.covers(Some(SelectionId::SEVERAL)));
        assert_eq!(selection.after(Some(selection.id())), selection.id());
        assert_eq!(selection.after(Some(Selection::of(&strict, None).id())), SelectionId::SEVERAL);
        assert!(!selection.covers(None), "without a last run nothing is known of an unmarked record");
    }
}
