//! The result of a delivery.

/// The result of a delivery. The first three were accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Verdict {
    /// Queued for the owner of the Source.
    Queued,
    /// Duplicate of a delivery that was queued shortly before.
    Duplicate,
    /// Unsigned, which the Source's spec accepts: the Source got a hint.
    Hinted,
    /// Dropped: it has no signature.
    Unsigned,
    /// Dropped: its signature cannot be parsed.
    Unreadable,
    /// Dropped: its signature is wrong.
    BadSignature,
    /// Dropped: it names another channel.
    Misdirected,
    /// There is no such callback.
    Unknown,
    /// The subscription has ended.
    Ended,
    /// The payload is too long.
    Oversized,
    /// It did not arrive in time, or broke off.
    Slow,
    /// The callback's rate or capacity is exceeded.
    RateLimited,
    /// It could not be queued. The hub should send it again.
    NotQueued,
}

impl Verdict {
    /// All verdicts.
    pub(crate) const ALL: [Self; 13] = [
        Self::Queued,
        Self::Duplicate,
        Self::Hinted,
        Self::Unsigned,
        Self::Unreadable,
        Self::BadSignature,
        Self::Misdirected,
        Self::Unknown,
        Self::Ended,
        Self::Oversized,
        Self::Slow,
        Self::RateLimited,
        Self::NotQueued,
    ];

    /// The label value in the metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Duplicate => "duplicate",
            Self::Hinted => "hinted",
            Self::Unsigned => "unsigned",
            Self::Unreadable => "unreadable",
            Self::BadSignature => "bad-signature",
            Self::Misdirected => "misdirected",
            Self::Unknown => "unknown",
            Self::Ended => "ended",
            Self::Oversized => "oversized",
            Self::Slow => "slow",
            Self::RateLimited => "rate-limited",
            Self::NotQueued => "not-queued",
        }
    }
}
