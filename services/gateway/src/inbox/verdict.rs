//! What came of what somebody wanted to leave.

/// What came of a notification that somebody wanted to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Verdict {
    /// It is kept, and a Source is looked at for it.
    Hint,
    /// It is kept.
    Kept,
    /// Nobody knows who sent it.
    UnknownSender,
    /// Its sender has sent too many.
    TooMany,
    /// It is too large.
    TooLarge,
    /// It came too slowly, or broke off.
    TooSlow,
    /// It is none.
    Malformed,
    /// It could not be kept, or not be acted on: its sender is to send it again.
    NotKept,
}

impl Verdict {
    /// All of them.
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

    /// Its name among the metrics.
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
