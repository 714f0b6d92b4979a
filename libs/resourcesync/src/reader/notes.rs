use crate::limits::Mode;
use crate::quirk::{Quirk, QuirkSet, Quirks};

/// The quirks so far, and whether strict mode must end the reading.
pub(super) struct Notes {
    quirks: Quirks,
    mode: Mode,
    refused: Option<Quirk>,
}

impl Notes {
    pub(super) fn new(mode: Mode) -> Self {
        Self { quirks: Quirks::default(), mode, refused: None }
    }

    pub(super) fn add(&mut self, quirk: Quirk) {
        self.add_many(quirk, 1);
    }

    pub(super) fn add_many(&mut self, quirk: Quirk, times: u64) {
        if times == 0 {
            return;
        }
        self.quirks.add_many(quirk, times);
        if self.mode == Mode::Strict && quirk.is_refused_when_strict() {
            self.refused.get_or_insert(quirk);
        }
    }

    pub(super) fn add_set(&mut self, quirks: QuirkSet) {
        if !quirks.is_empty() {
            quirks.iter().for_each(|quirk| self.add(quirk));
        }
    }

    pub(super) fn quirks(&self) -> &Quirks {
        &self.quirks
    }

    /// The first quirk that strict mode refuses.
    pub(super) fn refused(&self) -> Option<Quirk> {
        self.refused
    }
}
