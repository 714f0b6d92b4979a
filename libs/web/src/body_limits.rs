//! What is demanded of every body: that it ends, and that it comes fast enough.

use std::time::Duration;

use crate::ErrorKind;

/// A body may take a second more for each so many of its bytes.
const BYTES_PER_SECOND: u64 = 16 * 1024;

/// What is demanded of every body that a client receives. Only time spent waiting for the server counts:
/// a reader that is slow itself does the server no wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyLimits {
    /// The most bytes of one body, those before a requested range included. A request may say otherwise
    /// ([`GetRequest::largest`](crate::GetRequest::largest)). Default: 16 GiB.
    pub largest: u64,
    /// The fewest bytes that must come within each [`window`](Self::window), unless the body ends; 0 = no such limit.
    /// Default: 64 KiB.
    pub least: u64,
    /// The time within which the fewest bytes must come. Default: 1 min.
    pub window: Duration,
    /// The longest time for a whole body; a second more for each 16 KiB of its announced length, or else of what has
    /// come. Default: 1 h.
    pub time: Duration,
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self {
            largest: 16 * 1024 * 1024 * 1024,
            least: 64 * 1024,
            window: Duration::from_secs(60),
            time: Duration::from_secs(3600),
        }
    }
}

/// One body, held to its limits.
#[derive(Debug)]
pub(crate) struct Watch {
    limits: BodyLimits,
    /// The longest time for the whole body, whatever its length.
    time: Option<Duration>,
    /// The longest time without any byte.
    stall: Duration,
    /// The bytes before the range that was asked for.
    before: u64,
    /// The bytes that are announced for this body.
    announced: Option<u64>,
    received: u64,
    waited: Duration,
    /// The time waited since the last byte.
    quiet: Duration,
    window_received: u64,
    window_waited: Duration,
}

impl Watch {
    pub(crate) fn new(limits: BodyLimits, stall: Duration) -> Self {
        Self {
            limits,
            time: None,
            stall,
            before: 0,
            announced: None,
            received: 0,
            waited: Duration::ZERO,
            quiet: Duration::ZERO,
            window_received: 0,
            window_waited: Duration::ZERO,
        }
    }

    /// The same for a body that begins behind so many bytes, of which so many are announced.
    pub(crate) fn expecting(self, before: u64, announced: Option<u64>) -> Self {
        Self { before, announced, ..self }
    }

    /// Allows the whole body no more than this time, however long it is.
    pub(crate) fn within(&mut self, time: Duration) {
        self.time = Some(time);
    }

    /// How long the next piece may be waited for.
    pub(crate) fn patience(&self) -> Duration {
        let whole = self.allowed().saturating_sub(self.waited);
        let patience = self.stall.saturating_sub(self.quiet).min(whole);
        match self.limits.least {
            0 => patience,
            _ => patience.min(self.limits.window.saturating_sub(self.window_waited)),
        }
    }

    /// Notes a piece for which it was waited so long; of no bytes, where the wait is not over.
    pub(crate) fn note(&mut self, bytes: u64, waited: Duration) {
        self.received += bytes;
        self.waited += waited;
        self.quiet = if bytes == 0 { self.quiet + waited } else { Duration::ZERO };
        self.window_received += bytes;
        self.window_waited += waited;
        if self.window_received >= self.limits.least {
            self.window_received = 0;
            self.window_waited = Duration::ZERO;
        }
    }

    /// What is wrong with the size, once so many more bytes have come than are noted.
    ///
    /// # Errors
    /// In words, by how much it is too large.
    pub(crate) fn check_size(&self, more: u64) -> Result<(), String> {
        let limit = self.limits.largest;
        let come = self.before.saturating_add(self.received).saturating_add(more);
        let all = self.announced.map_or(come, |all| self.before.saturating_add(all).max(come));
        if all <= limit {
            return Ok(());
        }
        Err(match all > come {
            true => format!("{all} bytes are announced, and {limit} bytes are the most that is taken"),
            false => format!("more than {limit} bytes came, which are the most that is taken"),
        })
    }

    /// The largest body, in words for those who look at a problem.
    pub(crate) fn expected(&self) -> String {
        format!("{} bytes at most", self.limits.largest)
    }

    /// What is wrong with a body of which nothing more came for so long, and how slow it was.
    pub(crate) fn fault(&self, waited: Duration) -> (ErrorKind, String) {
        let all = self.waited + waited;
        if self.quiet + waited >= self.stall {
            return (ErrorKind::Timeout(crate::Phase::Body), format!("then none for {:?}", self.stall));
        }
        let slow = match all >= self.allowed() {
            true => format!("within {:?}, all the time that such a body may take", self.allowed()),
            false => format!(
                "of these {} within {:?}, where {} are the least",
                self.window_received, self.limits.window, self.limits.least
            ),
        };
        (ErrorKind::TooSlow, slow)
    }

    fn allowed(&self) -> Duration {
        let bytes = self.announced.unwrap_or(self.received);
        let grown = self.limits.time.saturating_add(Duration::from_secs(bytes / BYTES_PER_SECOND));
        self.time.map_or(grown, |time| time.min(grown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn watch(limits: BodyLimits) -> Watch {
        Watch::new(limits, 30 * SECOND)
    }

    #[test]
    fn each_minute_is_to_bring_its_bytes() {
        let mut watch = watch(BodyLimits { least: 100, ..BodyLimits::default() });
        watch.note(1, 29 * SECOND);
        watch.note(98, 29 * SECOND);
        assert_eq!(watch.patience(), 2 * SECOND);
        assert_eq!(watch.fault(2 * SECOND).0, ErrorKind::TooSlow);
        watch.note(1, SECOND);
        assert_eq!(watch.patience(), 30 * SECOND, "the next minute begins");
    }

    #[test]
    fn the_time_of_a_whole_body_grows_with_its_length() {
        let limits = BodyLimits { least: 0, time: 10 * SECOND, ..BodyLimits::default() };
        let announced = watch(limits.clone()).expecting(0, Some(5 * BYTES_PER_SECOND));
        assert_eq!(announced.allowed(), 15 * SECOND);
        let mut unannounced = watch(limits);
        assert_eq!(unannounced.allowed(), 10 * SECOND);
        unannounced.note(3 * BYTES_PER_SECOND, SECOND);
        assert_eq!((unannounced.allowed(), unannounced.patience()), (13 * SECOND, 12 * SECOND));
        assert_eq!(unannounced.fault(12 * SECOND).0, ErrorKind::TooSlow);
    }

    #[test]
    fn a_body_counts_with_what_came_before_its_range() {
        let limits = BodyLimits { largest: 100, ..BodyLimits::default() };
        assert!(watch(limits.clone()).expecting(60, Some(40)).check_size(0).is_ok());
        let told = watch(limits.clone()).expecting(60, Some(41)).check_size(0).unwrap_err();
        assert!(told.starts_with("101 bytes are announced"), "{told}");
        let mut endless = watch(limits);
        endless.note(100, SECOND);
        assert!(endless.check_size(0).is_ok());
        assert!(endless.check_size(1).unwrap_err().contains("more than 100 bytes came"));
    }
}
