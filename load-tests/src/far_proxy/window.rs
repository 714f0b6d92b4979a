//! How many bytes of a connection may be on their way: it doubles with each round trip, until bytes are lost.

/// The bytes of a segment (Ethernet, without headers).
pub(super) const SEGMENT: u64 = 1460;
/// The first window: ten segments (RFC 6928).
pub(super) const INITIAL: u64 = 10 * SEGMENT;
/// After a stall, the share of the window that is added per round trip, as its divisor.
const GROWTH: u64 = 8;

/// The window of one direction of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    size: u64,
    most: u64,
    in_flight: u64,
    /// Where doubling ends.
    threshold: u64,
}

impl Window {
    /// The first window; it never exceeds `most`.
    pub(super) fn new(most: u64) -> Self {
        Self { size: INITIAL.min(most.max(SEGMENT)), most, in_flight: 0, threshold: u64::MAX }
    }

    /// How many bytes may be sent now; none if that is less than a segment.
    pub(super) fn room(&self) -> u64 {
        let room = self.size.saturating_sub(self.in_flight);
        if room < SEGMENT.min(self.size) { 0 } else { room }
    }

    pub(super) fn sent(&mut self, bytes: u64) {
        self.in_flight += bytes;
    }

    /// Bytes have arrived, and that is known here. The window grows if it is used, and if `may_grow`.
    pub(super) fn acknowledged(&mut self, bytes: u64, may_grow: bool) {
        let is_used = self.in_flight * 2 >= self.size;
        self.in_flight = self.in_flight.saturating_sub(bytes);
        if is_used && may_grow {
            let more = if self.size < self.threshold { bytes } else { bytes / GROWTH };
            self.size = (self.size + more).min(self.most.max(SEGMENT));
        }
    }

    /// Bytes were lost: half of the window is left.
    pub(super) fn stalled(&mut self) {
        self.size = (self.size / 2).max(INITIAL).min(self.most.max(SEGMENT));
        self.threshold = self.size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends all that may be sent, and receives it: one round trip.
    fn trip(window: &mut Window) -> u64 {
        let room = window.room();
        window.sent(room);
        assert_eq!(window.room(), 0);
        window.acknowledged(room, true);
        room
    }

    #[test]
    fn it_doubles_with_each_round_trip_up_to_the_most() {
        let mut window = Window::new(100_000);
        let sent: Vec<u64> = (0..6).map(|_| trip(&mut window)).collect();
        assert_eq!(sent, [14_600, 29_200, 58_400, 100_000, 100_000, 100_000]);
    }

    #[test]
    fn after_a_stall_it_halves_and_grows_slowly() {
        let mut window = Window::new(1 << 30);
        for _ in 0..4 {
            trip(&mut window);
        }
        let before = window.room();
        window.stalled();
        assert_eq!(trip(&mut window), before / 2);
        assert_eq!(trip(&mut window), before / 2 + before / 2 / GROWTH);
        for _ in 0..100 {
            window.stalled();
        }
        assert_eq!(window.room(), INITIAL, "it is never smaller than the first one");
    }

    #[test]
    fn it_does_not_grow_where_it_is_not_used_or_the_link_is_full() {
        let mut window = Window::new(1 << 30);
        window.sent(1000);
        window.acknowledged(1000, true);
        assert_eq!(window.room(), INITIAL);
        window.sent(INITIAL);
        window.acknowledged(INITIAL, false);
        assert_eq!(window.room(), INITIAL);
    }

    #[test]
    fn less_than_a_segment_is_no_room() {
        let mut window = Window::new(1 << 30);
        window.sent(INITIAL - 1);
        assert_eq!(window.room(), 0);
    }
}
