//! The result of a request to post a notification.

/// The result of a request to post a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Verdict {
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

impl Verdict {
    /// All verdicts.
    pub(crate) const ALL: [Self; 8] = [
        Self::Hint,
        Self::Kept,
        Self::UnknownSender,
        Self::TooMany,
        Self::TooLarge,
        Self::TooSlow,
        Self::Malformed,
        Self::NotKept,
    ];

    /// The label value in the metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Hint => "hint",
            Self::Kept => "kept",
            Self::UnknownSender => "unknown-sender",
            Self::TooMany => "too-many",
            Self::TooLarge => "too-large",
            Self::TooSlow => "too-slow",
            Self::Malformed => "malformed",
            Self::NotKept => "not-kept",
        }
    }
}
