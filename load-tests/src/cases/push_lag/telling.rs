//! A Source that changes ten times a second, and its hub, which delivers each change, or loses it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use simulated_source::{Change, ChangeKind, SimulatedSource};
use testkit::hub::SimulatedHub;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// The pause between two changes.
pub(super) const PACE: Duration = Duration::from_millis(100);
/// One of this many changes in a row has each fault.
const EACH_TROUBLE: usize = 20;

/// Faults between the hub and the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Each delivery arrives once, in the order of sending.
    Sound,
    /// Of a hundred, five are lost, five are duplicated, and five are overtaken by the next one.
    Troubled,
}

/// The fate of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Arrives,
    IsLost,
    ArrivesTwice,
    ArrivesLate,
}

/// A change that was made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Made {
    pub(super) change: Change,
    /// The time of the change, by this machine's clock.
    pub(super) at: Timestamp,
}

/// The changes, and the results of their deliveries.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) changes: Vec<Made>,
    /// Deliveries that were answered with 202.
    pub(super) taken: u64,
    /// Deliveries with another answer, or none.
    pub(super) refused: u64,
    /// Lost deliveries.
    pub(super) lost: u64,
}

impl Way {
    /// The fate of the delivery with this number, of `of`. The last one always arrives: later ones are not
    /// part of the case.
    fn fate(self, number: usize, of: usize) -> Fate {
        match (self, number % EACH_TROUBLE) {
            (Self::Troubled, 6) if number + 1 < of => Fate::IsLost,
            (Self::Troubled, 12) => Fate::ArrivesTwice,
            (Self::Troubled, 17) if number + 1 < of => Fate::ArrivesLate,
            _ => Fate::Arrives,
        }
    }
}

/// Makes this many changes, each of another resource, and delivers each through the hub.
pub(super) async fn tell(
    source: &SimulatedSource,
    hub: &Arc<SimulatedHub>,
    way: Way,
    changes: usize,
) -> Told {
    let mut told = Told::default();
    let mut pace = interval(PACE);
    let mut answers = JoinSet::new();
    let mut late = None;
    pace.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let present = source.len();
    for number in 0..changes {
        pace.tick().await;
        let before = source.now();
        // Of ten changes one is a new resource, and one a deletion; no resource changes twice.
        let (index, kind) = match number % 10 {
            3 => (present + number as u64 / 10, ChangeKind::Created),
            8 => (number as u64 % present, ChangeKind::Deleted),
            _ => (number as u64 % present, ChangeKind::Updated),
        };
        // The Source's clock has whole seconds. A notification that begins with the second after the last one
        // counts as adjacent, so there has to be more than one second between two.
        source.advance(1);
        let change = source.change_one(index, kind);
        let at = Timestamp::now();
        told.changes.push(Made { change, at });
        let payload = source.notification(before, source.now(), &[change]);
        let mut sent = Vec::new();
        match way.fate(number, changes) {
            Fate::IsLost => told.lost += 1,
            Fate::ArrivesTwice => sent = vec![payload.clone(), payload],
            Fate::ArrivesLate => late = Some(payload),
            Fate::Arrives => {
                sent.push(payload);
                sent.extend(late.take());
            }
        }
        let hub = Arc::clone(hub);
        answers.spawn(async move {
            let mut statuses = Vec::new();
            for payload in sent {
                statuses.extend(hub.deliver(&payload).await);
            }
            statuses
        });
    }
    for status in answers.join_all().await.into_iter().flatten() {
        match status {
            202 => told.taken += 1,
            _ => told.refused += 1,
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_hundred_deliveries_five_meet_each_trouble_and_the_last_one_none() {
        let fates: Vec<Fate> = (0..100).map(|number| Way::Troubled.fate(number, 100)).collect();
        for trouble in [Fate::IsLost, Fate::ArrivesTwice, Fate::ArrivesLate] {
            assert_eq!(fates.iter().filter(|fate| **fate == trouble).count(), 5, "{trouble:?}");
        }
        assert_eq!(Way::Troubled.fate(6, 7), Fate::Arrives);
        assert!((0..100).all(|number| Way::Sound.fate(number, 100) == Fate::Arrives));
    }
}
