//! Parallel ranges: the current part is received in several pieces at a time, if the server and its origin's limit
//! allow it. Never more than one part is in transit. So a crash costs no more than with one range, and memory is the
//! same.

use std::sync::Arc;

use bytes::Bytes;
use store::StoreError;
use tokio::time::Instant;

use super::piece::{Asking, Piece};
use super::receive::Receiving;
use super::version::condition;
use crate::range_permits::LONGEST_SPACE;

/// Number of parts from which several ranges are worth it.
const SEVERAL: u64 = 2;
/// Minimum size of a piece, in bytes: the cost of a request is small compared with it.
const SMALLEST: u64 = 1024 * 1024;

impl Receiving<'_> {
    /// Acquires spare permits, if any, and requests the pieces of the current part after its front. The front ends at
    /// `leading_to` if that was already requested. Does nothing while pieces are out.
    pub(super) async fn spread(&mut self, leading_to: Option<u64>) {
        if !self.pieces.is_empty() {
            return;
        }
        if !self.may_spread() {
            // A job without parallel ranges takes no permit from others, however long it runs.
            self.company.part();
            return;
        }
        if self.company.wants_more() && self.is_unspaced().await {
            self.company.gather().await;
        }
        let head = self.upload.head();
        let (Some(length), Some(if_range)) = (head.length, condition(&head.validators)) else { return };
        let from = self.upload.received();
        let part = self.upload.part_bytes();
        let end = ((from / part + 1) * part).min(length);
        let ranges = self.company.len() as u64 + 1;
        let to = leading_to.unwrap_or_else(|| (from + piece_bytes(end - from, ranges)).min(end));
        let asking = Asking {
            client: self.client.clone(),
            url: self.job.uri.to_url(),
            if_range,
            head: head.clone(),
            is_judged: self.is_judged(),
            requests: Arc::clone(&self.requests),
        };
        let pieces = divide(to, end, ranges - 1);
        self.by_parts |= !pieces.is_empty();
        self.pieces.extend(pieces.into_iter().map(|(from, to)| Piece::ask(asking.clone(), from, to)));
    }

    /// Whether several ranges are useful and allowed.
    fn may_spread(&self) -> bool {
        let received = self.upload.received();
        let part = self.upload.part_bytes();
        let head = self.upload.head();
        let expected = head.length.or(self.job.declaration.length).unwrap_or(0);
        let left = expected.saturating_sub(received);
        let is_long = if self.by_parts { left >= 2 * SMALLEST } else { left >= SEVERAL * part };
        is_long
            && expected <= self.fetcher.config.max_package_bytes
            && self.limited
            && !self.is_plain
            // After a redirect to another origin, the job has no permits there.
            && head.final_url.is_none()
            && Instant::now() < self.deadline
            && !self.fetcher.loners.contains(&self.job.origin)
    }

    async fn is_unspaced(&self) -> bool {
        let Some((space, requests)) = self.in_time(self.client.space_between(&self.job.origin)).await else {
            return false;
        };
        self.count(requests);
        space <= LONGEST_SPACE
    }

    /// End of the first range of a package, if only the declared length is known; none if it is received alone.
    pub(super) fn first_end(&self) -> Option<u64> {
        let has_company = self.company.len() > 0 && self.may_spread();
        has_company.then(|| piece_bytes(self.upload.part_bytes(), self.company.len() as u64 + 1))
    }

    /// End of the leading range: before the pieces that others receive, or at the end of the part if parts are
    /// requested one by one.
    pub(super) fn leading_end(&self) -> Option<u64> {
        let part = self.upload.part_bytes();
        let part_end = (self.upload.received() / part + 1) * part;
        let part_end =
            self.by_parts.then(|| self.upload.head().length.map_or(part_end, |all| all.min(part_end)));
        self.pieces.front().map(|piece| piece.from).or(part_end)
    }

    /// The piece that is next.
    pub(super) fn next_piece(&mut self) -> Option<Piece> {
        let received = self.upload.received();
        match self.pieces.front() {
            Some(piece) if piece.from == received => self.pieces.pop_front(),
            _ => None,
        }
    }

    pub(super) async fn take_piece(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        self.fetcher.metrics.count_range("accepted", 1);
        self.upload.append(bytes).await
    }

    /// The next piece was not received. The leading range receives it, once no other range is open. None if there is
    /// no time for that.
    pub(super) async fn lose_piece(&mut self, why: &str) -> Option<()> {
        self.fetcher.metrics.count_range("dropped", 1);
        self.go_alone(why).await
    }

    /// The next piece will not arrive. The leading range, which is open, receives it and all after it.
    pub(super) async fn give_up_pieces(&mut self) {
        let Some(mut piece) = self.pieces.pop_front() else { return };
        self.leave_origin_alone(&piece.come().await.err().unwrap_or_default());
        self.fetcher.metrics.count_range("dropped", 1 + self.pieces.len() as u64);
        self.pieces.clear();
        self.company.part();
    }

    /// Whether a response in parallel with the leading range may still be open.
    pub(super) fn has_open_pieces(&self) -> bool {
        self.pieces.iter().any(Piece::is_coming)
    }

    /// A range is not available in parallel. From now on there is only the leading one, which also finds out whether
    /// the package has changed. It waits for the others to end: an origin that refuses several requests would refuse
    /// it, too, while it still counts a dropped one as open. The bytes of the others are not requested again. None if
    /// there is no time for that.
    pub(super) async fn go_alone(&mut self, why: &str) -> Option<()> {
        self.leave_origin_alone(why);
        for mut piece in std::mem::take(&mut self.pieces) {
            if self.in_more_time(piece.has_come()).await? {
                self.pieces.push_back(piece)
            } else {
                self.fetcher.metrics.count_range("dropped", 1)
            }
        }
        self.company.part();
        Some(())
    }

    /// Excludes the origin from several ranges for a while.
    fn leave_origin_alone(&mut self, why: &str) {
        tracing::info!(
            uri = %self.job.uri, origin = %self.job.origin, why,
            "a range beside another did not bring what was asked for; packages of this origin are received in one for a while"
        );
        self.by_parts = false;
        self.fetcher.loners.add(&self.job.origin);
    }
}

/// Bytes of each of `ranges` ranges, which together have `bytes`.
fn piece_bytes(bytes: u64, ranges: u64) -> u64 {
    bytes.div_ceil(ranges.max(1)).max(SMALLEST)
}

/// The pieces between two bytes, `ranges` at most and none too small.
fn divide(from: u64, to: u64, ranges: u64) -> Vec<(u64, u64)> {
    if from >= to || ranges == 0 {
        return Vec::new();
    }
    let bytes = piece_bytes(to - from, ranges);
    (0..ranges)
        .map(|n| (from + n * bytes, (from + (n + 1) * bytes).min(to)))
        .take_while(|(from, _)| *from < to)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_divided_without_gap_or_overlap_into_pieces_of_some_size() {
        const MIB: u64 = SMALLEST;
        assert_eq!(divide(3 * MIB, 8 * MIB, 0), []);
        assert_eq!(divide(8 * MIB, 8 * MIB, 2), []);
        assert_eq!(divide(4 * MIB, 8 * MIB, 2), [(4 * MIB, 6 * MIB), (6 * MIB, 8 * MIB)]);
        assert_eq!(divide(7, 8, 3), [(7, 8)]);
        assert_eq!(divide(0, 2 * MIB + 1, 3), [(0, MIB), (MIB, 2 * MIB), (2 * MIB, 2 * MIB + 1)]);
        for ranges in 1..6 {
            let pieces = divide(5, 8 * MIB, ranges);
            assert_eq!((pieces[0].0, pieces.last().unwrap().1), (5, 8 * MIB));
            assert!(pieces.windows(2).all(|pair| pair[0].1 == pair[1].0), "{pieces:?}");
            assert!(pieces.len() as u64 == ranges);
        }
    }
}
