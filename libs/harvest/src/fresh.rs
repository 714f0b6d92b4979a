//! Recent pending records in memory, so that dispatch need not scan the catalog for what was just written.

use std::collections::VecDeque;

use model::{PendingRecord, ResourceUri};

/// Plans kept, of some hundred bytes each.
const MOST_KEPT: usize = 16_384;

/// The first pending records in the order of their URIs, as written to the catalog. Most lists are in that order. If
/// one is not, or if pending records changed otherwise, none is kept, and all are read from the catalog.
#[derive(Debug)]
pub(crate) struct Fresh {
    /// Pending records after the last of these are in the catalog only.
    kept: VecDeque<(ResourceUri, Box<PendingRecord>)>,
    /// How many times pending records were [written](catalog::Catalog::pending_written), if every write was for these
    /// plans.
    written: u64,
    /// Whether other pending records may precede these.
    is_spoilt: bool,
}

impl Fresh {
    /// Start without pending records, after `written` writes of pending records.
    pub(crate) fn since(written: u64) -> Self {
        Self { kept: VecDeque::new(), written, is_spoilt: false }
    }

    /// Start with unknown pending records.
    pub(crate) fn spoilt() -> Self {
        Self { is_spoilt: true, ..Self::since(0) }
    }

    /// Adds a plan that is being written.
    pub(crate) fn note(&mut self, uri: ResourceUri, plan: Box<PendingRecord>) {
        self.written += 1;
        if self.kept.back().is_some_and(|(last, _)| uri <= *last) {
            *self = Self::spoilt();
        }
        if !self.is_spoilt && self.kept.len() < MOST_KEPT {
            self.kept.push_back((uri, plan));
        }
    }

    /// Returns the kept plans in order, if pending records were written `written` times. After the last plan, the
    /// catalog must be read. Works once.
    pub(crate) fn take(&mut self, written: u64) -> VecDeque<(ResourceUri, Box<PendingRecord>)> {
        let Self { kept, written: own, is_spoilt } = std::mem::replace(self, Self::spoilt());
        if is_spoilt || own != written { VecDeque::new() } else { kept }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use model::{Account, Action, Declaration, Listing, Seq, SetId, Why};

    use super::*;

    pub(crate) fn plan(n: u64) -> (ResourceUri, Box<PendingRecord>) {
        let uri: ResourceUri = format!("http://h/{n:06}").parse().unwrap();
        let lane = uri.lane().unwrap();
        let listing = Listing {
            document: "http://h/list.xml".into(),
            set: SetId::new("http://h/caps.xml"),
            change: None,
            change_time: None,
            as_of: None,
            latest: None,
        };
        let record = PendingRecord {
            seq: Seq::new(n),
            action: Action::Fetch { lane },
            declaration: Declaration::default(),
            listing,
            attempts: 0,
            next_attempt_at: None,
            candidate: None,
            mend: false,
            account: Account::of(Why::New),
        };
        (uri, Box::new(record))
    }

    fn noted(numbers: impl IntoIterator<Item = u64>) -> Fresh {
        let mut fresh = Fresh::since(7);
        for (uri, record) in numbers.into_iter().map(plan) {
            fresh.note(uri, record);
        }
        fresh
    }

    #[test]
    fn what_came_in_order_is_given_once() {
        let mut fresh = noted(0..3);
        assert_eq!(fresh.take(7 + 3), (0..3).map(plan).collect::<VecDeque<_>>());
        assert_eq!(fresh.take(7 + 3), VecDeque::new());
    }

    #[test]
    fn what_is_too_much_to_be_kept_follows_the_last_that_is() {
        let most = MOST_KEPT as u64;
        let kept = noted(0..most + 5).take(7 + most + 5);
        assert_eq!((kept.len(), kept.back()), (MOST_KEPT, Some(&plan(most - 1))));
    }

    #[test]
    fn what_came_out_of_order_or_twice_or_beside_others_is_not_known_to_be_all() {
        let nothing = VecDeque::new;
        assert_eq!(noted([1, 3, 2]).take(7 + 3), nothing());
        assert_eq!(noted([1, 2, 2]).take(7 + 3), nothing());
        assert_eq!(noted([1, 2, 3]).take(7 + 4), nothing(), "somebody else wrote or removed one");
        assert_eq!(Fresh::spoilt().take(0), nothing());
    }
}
