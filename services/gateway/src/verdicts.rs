//! Results of deliveries and notifications, as the metrics count them.

/// The result of a delivery of a hub. The first three were accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryVerdict {
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

impl DeliveryVerdict {
    /// All verdicts in order, each with its label value in the metrics.
    pub(crate) const ALL: [(Self, &'static str); 13] = [
        (Self::Queued, "queued"),
        (Self::Duplicate, "duplicate"),
        (Self::Hinted, "hinted"),
        (Self::Unsigned, "unsigned"),
        (Self::Unreadable, "unreadable"),
        (Self::BadSignature, "bad-signature"),
        (Self::Misdirected, "misdirected"),
        (Self::Unknown, "unknown"),
        (Self::Ended, "ended"),
        (Self::Oversized, "oversized"),
        (Self::Slow, "slow"),
        (Self::RateLimited, "rate-limited"),
        (Self::NotQueued, "not-queued"),
    ];

    /// The label value in the metrics.
    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// The result of a request to post a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotificationVerdict {
    /// Stored, and a Source got a hint.
    Hint,
    /// Stored.
    Kept,
    /// Refused: the sender is unknown.
    UnknownSender,
    /// Refused: the sender has sent too many.
    TooMany,
    /// Refused: the body is too large.
    TooLarge,
    /// Refused: the body came too slowly, or broke off.
    TooSlow,
    /// Refused: the body is no notification.
    Malformed,
    /// It could not be stored, or the hint could not be given. The sender should send it again.
    NotKept,
}

impl NotificationVerdict {
    /// All verdicts in order, each with its label value in the metrics.
    pub(crate) const ALL: [(Self, &'static str); 8] = [
        (Self::Hint, "hint"),
        (Self::Kept, "kept"),
        (Self::UnknownSender, "unknown-sender"),
        (Self::TooMany, "too-many"),
        (Self::TooLarge, "too-large"),
        (Self::TooSlow, "too-slow"),
        (Self::Malformed, "malformed"),
        (Self::NotKept, "not-kept"),
    ];

    /// The label value in the metrics.
    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verdict_has_the_label_beside_it() {
        assert!(DeliveryVerdict::ALL.iter().all(|(verdict, label)| verdict.as_str() == *label));
        assert!(NotificationVerdict::ALL.iter().all(|(verdict, label)| verdict.as_str() == *label));
    }
}
