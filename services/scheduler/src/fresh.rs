//! Plans that were made a moment ago: dispatching takes them from memory, and does not read back from the catalog what was just written there.

use std::collections::VecDeque;

use model::{PendingRecord, ResourceUri};

/// Plans that are kept; of each some hundred bytes.
const MOST_KEPT: usize = 16_384;

/// The first of all pending records in the order of their URIs, as they are written in the catalog. Lists name resources in that order more often than not;
/// where they do not, or where anything else was done with pending records, nothing is kept, and all are read from the catalog.
#[derive(Debug)]
pub(crate) struct Fresh {
    /// Those that follow the last of them are in the catalog alone.
    kept: VecDeque<(ResourceUri, Box<PendingRecord>)>,
    /// How many times pending records were [written](catalog::Catalog::pending_written), if it was done for these plans alone.
    written: u64,
    /// Whether there may be other pending records among the first.
    is_spoilt: bool,
}

impl Fresh {
    /// While nothing is pending, and pending records were written so many times.
    pub(crate) fn since(written: u64) -> Self {
        Self { kept: VecDeque::new(), written, is_spoilt: false }
    }

    /// While nobody knows what is pending.
    pub(crate) fn spoilt() -> Self {
        Self { is_spoilt: true, ..Self::since(0) }
    }

    /// A plan that is being written.
    pub(crate) fn note(&mut self, uri: ResourceUri, plan: Box<PendingRecord>) {
        self.written += 1;
        if self.kept.back().is_some_and(|(last, _)| uri <= *last) {
            *self = Self::spoilt();
        }
        if !self.is_spoilt && self.kept.len() < MOST_KEPT {
            self.kept.push_back((uri, plan));
        }
    }

    /// What is kept, in its order, now that pending records were written so many times. Behind the last of it the catalog is to be read. Given once.
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
