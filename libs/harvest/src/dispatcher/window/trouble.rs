//! Origins that do not answer, or request a cooldown. Their state outlasts their turn in the window.

use std::collections::HashMap;

use jiff::Timestamp;
use model::Origin;

use crate::settler::failures::Down;

/// Consecutive attempts without a connection after which an origin counts as down.
pub(super) const UNREACHABLE_IS_DOWN: u32 = 12;
/// Maximum number of origins whose attempts without a connection are counted. Further ones never count as down: each
/// of their resources gets all attempts of a run.
const MOST_COUNTED: usize = 16_384;

/// The origins with failures.
#[derive(Debug, Default)]
pub(super) struct Troubles(HashMap<Origin, Trouble>);

#[derive(Debug, Default)]
struct Trouble {
    unreachable_in_a_row: u32,
    resting: Option<Timestamp>,
}

impl Troubles {
    /// Records whether an origin answered.
    pub(super) fn reached(&mut self, origin: &Origin, answered: bool) {
        if !answered && (self.0.len() < MOST_COUNTED || self.0.contains_key(origin)) {
            self.0.entry(origin.clone()).or_default().unreachable_in_a_row += 1;
        }
        if answered && let Some(trouble) = self.0.get_mut(origin) {
            trouble.unreachable_in_a_row = 0;
            if trouble.resting.is_none() {
                self.0.remove(origin);
            }
        }
    }

    /// Records that an origin requested a longer cooldown than a run allows.
    pub(super) fn rest(&mut self, origin: &Origin, until: Timestamp) {
        let trouble = self.0.entry(origin.clone()).or_default();
        trouble.resting = trouble.resting.max(Some(until));
    }

    /// Why an origin is skipped, if it is.
    pub(super) fn down(&self, origin: &Origin) -> Option<Down> {
        self.0.get(origin).and_then(Trouble::down)
    }

    /// The skipped origins. They are forgotten here.
    pub(super) fn take_down(&mut self) -> HashMap<Origin, Down> {
        let down =
            self.0.iter().filter_map(|(origin, trouble)| Some((origin.clone(), trouble.down()?))).collect();
        self.0.retain(|_, trouble| trouble.down().is_none());
        down
    }
}

impl Trouble {
    fn down(&self) -> Option<Down> {
        match self {
            Self { resting: Some(until), .. } => Some(Down::Resting { until: *until }),
            Self { unreachable_in_a_row: UNREACHABLE_IS_DOWN.., .. } => Some(Down::Silent),
            _ => None,
        }
    }
}
