//! Limits of every body: its size, and its speed.

use std::time::Duration;

use crate::error_kind::{ErrorKind, Phase};

/// A body may take a second more for each of this many bytes.
const BYTES_PER_SECOND: u64 = 16 * 1024;

/// Limits of every body that a client receives. Only time spent waiting for the server counts: a slow reader
/// is not the server's fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyLimits {
    /// The most bytes of one body, including those before a requested range. A request may override it
    /// ([`GetRequest::largest`](crate::GetRequest::largest)). Default: 16 GiB.
    pub largest: u64,
    /// The fewest bytes within each [`window`](Self::window), unless the body ends; 0 = no such limit.
    /// Default: 64 KiB.
    pub least: u64,
    /// The time within which the fewest bytes must arrive. Default: 1 min.
    pub window: Duration,
    /// The longest time for a whole body, plus a second for each 16 KiB of its announced length, or else of
    /// its received bytes. Default: 1 h.
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

/// Enforces the limits of one body.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    limits: BodyLimits,
    /// The longest time for the whole body, whatever its length.
    time: Option<Duration>,
    /// The longest time without any byte.
    stall: Duration,
    /// The bytes before the requested range.
    before: u64,
    /// The announced bytes of this body.
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
        Self { limits, stall, ..Self::default() }
    }

    /// Enforces them for a body that starts at an offset, and of which this many bytes are announced.
    pub(crate) fn expecting(self, before: u64, announced: Option<u64>) -> Self {
        Self { before, announced, ..self }
    }

    /// Limits the whole body to this time, whatever its length.
    pub(crate) fn within(&mut self, time: Duration) {
        self.time = Some(time);
    }

    /// How long to wait for the next piece.
    pub(crate) fn patience(&self) -> Duration {
        let whole = self.allowed().saturating_sub(self.waited);
        let patience = self.stall.saturating_sub(self.quiet).min(whole);
        match self.limits.least {
            0 => patience,
            _ => patience.min(self.limits.window.saturating_sub(self.window_waited)),
        }
    }

    /// Records a piece and the wait for it; no bytes, if the wait is not over.
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

    /// Checks the size of the body with this many more bytes.
    ///
    /// # Errors
    /// A text that says by how much it is too large.
    pub(crate) fn check_size(&self, more: u64) -> Result<(), String> {
        let limit = self.limits.largest;
        let come = self.before.saturating_add(self.received).saturating_add(more);
        let all = self.announced.map_or(come, |all| self.before.saturating_add(all).max(come));
        if all <= limit {
            return Ok(());
        }
        Err(if all > come {
            format!("{all} bytes are announced, and {limit} bytes are the most that is taken")
        } else {
            format!("more than {limit} bytes came, which are the most that is taken")
        })
    }

    /// The largest body, as text of a problem.
    pub(crate) fn expected(&self) -> String {
        format!("{} bytes at most", self.limits.largest)
    }

    /// The error of a body of which nothing more arrived for this long: stalled or too slow.
    pub(crate) fn fault(&self, waited: Duration) -> (ErrorKind, String) {
        let all = self.waited + waited;
        if self.quiet + waited >= self.stall {
            return (ErrorKind::Timeout(Phase::Body), format!("then none for {:?}", self.stall));
        }
        let slow = if all >= self.allowed() {
            format!("within {:?}, all the time that such a body may take", self.allowed())
        } else {
            format!(
                "of these {} within {:?}, where {} are the least",
                self.window_received, self.limits.window, self.limits.least
            )
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
