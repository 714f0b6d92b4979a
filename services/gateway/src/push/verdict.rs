//! What became of a delivery.

/// What became of a delivery. The first three were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Verdict {
    /// It is queued for the owner of its Source.
    Queued,
    /// The very same was queued a short while before.
    Doubled,
    /// It has no signature, and its Source admits such ones: its Source is looked at.
    Hinted,
    /// It has no signature: dropped.
    Unsigned,
    /// It has one that nobody can read: dropped.
    Unreadable,
    /// Its signature is wrong: dropped.
    Forged,
    /// It says that it belongs to another channel: dropped.
    Misdirected,
    /// There is no such callback.
    Unknown,
    /// The subscription is at its end.
    Ended,
    /// It is longer than a payload may be.
    Oversized,
    /// It did not arrive in time, or broke off.
    Slow,
    /// More came at this callback than is taken.
    Flooding,
    /// It could not be queued: the hub is to send it again.
    NotQueued,
}

impl Verdict {
    /// All of them.
    pub(crate) const ALL: [Self; 13] = [
        Self::Queued,
        Self::Doubled,
        Self::Hinted,
        Self::Unsigned,
        Self::Unreadable,
        Self::Forged,
        Self::Misdirected,
        Self::Unknown,
        Self::Ended,
        Self::Oversized,
        Self::Slow,
        Self::Flooding,
        Self::NotQueued,
    ];

    /// Its name among the metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Doubled => "doubled",
            Self::Hinted => "hinted",
            Self::Unsigned => "unsigned",
            Self::Unreadable => "unreadable",
            Self::Forged => "forged",
            Self::Misdirected => "misdirected",
            Self::Unknown => "unknown",
            Self::Ended => "ended",
            Self::Oversized => "oversized",
            Self::Slow => "slow",
            Self::Flooding => "flooding",
            Self::NotQueued => "not-queued",
        }
    }
}
