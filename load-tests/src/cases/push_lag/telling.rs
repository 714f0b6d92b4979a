//! A Source that changes ten times a second, and its hub, which tells of each change, or loses it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use testkit::hub::SimulatedHub;
use testkit::source::{Change, ChangeKind, SimulatedSource};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// The pause between two changes.
pub(super) const PACE: Duration = Duration::from_millis(100);
/// Of so many changes in a row one meets each trouble.
const EACH_TROUBLE: usize = 20;

/// What the way from the hub to the fleet does to deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Each arrives once, in the order in which it was sent.
    Sound,
    /// Of a hundred, five get lost, five arrive twice, and five after the one that was sent after them.
    Troubled,
}

/// What becomes of one delivery.
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
    /// When it was made, by the clock of this machine.
    pub(super) at: Timestamp,
}

/// What was made, and how it went with telling of it.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) changes: Vec<Made>,
    /// Deliveries that were answered with 202.
    pub(super) taken: u64,
    /// Deliveries that were answered otherwise, or not at all.
    pub(super) refused: u64,
    /// Deliveries that were lost on the way.
    pub(super) lost: u64,
}

impl Way {
    /// The fate of the delivery with this number, of so many. The last one always arrives: what comes after the end of the case is not its
    /// business.
    fn fate(self, number: usize, of: usize) -> Fate {
        match (self, number % EACH_TROUBLE) {
            (Self::Troubled, 6) if number + 1 < of => Fate::IsLost,
            (Self::Troubled, 12) => Fate::ArrivesTwice,
            (Self::Troubled, 17) if number + 1 < of => Fate::ArrivesLate,
            _ => Fate::Arrives,
        }
    }
}

/// Makes so many changes, each of another resource, and lets the hub tell of each.
pub(super) async fn tell(
    source: &SimulatedSource,
    hub: &Arc<SimulatedHub>,
    way: Way,
    changes: usize,
) -> Told {
    let mut told = Told::default();
    let (mut pace, mut answers, mut late) = (interval(PACE), JoinSet::new(), None);
    pace.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let present = source.len();
    for number in 0..changes {
        pace.tick().await;
        let before = source.now();
        // Of ten changes one is a new resource, and one a deletion; none meets a resource that was changed before.
        let (index, kind) = match number % 10 {
            3 => (present + number as u64 / 10, ChangeKind::Created),
            8 => (number as u64 % present, ChangeKind::Deleted),
            _ => (number as u64 % present, ChangeKind::Updated),
        };
        // The Source's clock has whole seconds. A notification that begins with the second after the last one is taken to join on to it, so
        // more than one has to lie between two.
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
