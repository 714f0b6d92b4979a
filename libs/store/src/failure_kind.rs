//! Kinds of failure, found in the chain of an error's causes.

use std::error::Error as StdError;
use std::io;

/// The kinds of failure that concern the store as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// No space or quota left: writes fail until an operator makes room.
    Full,
    /// Not permitted, or not authenticated: requests fail until an operator acts.
    Denied,
    /// Not reachable, overloaded or out of order: it may recover.
    Unavailable,
    /// Anything else.
    Other,
}

impl FailureKind {
    /// The kind of a failure; `None` when it concerns only the requested object.
    pub(crate) fn of(error: &object_store::Error) -> Option<Self> {
        use object_store::Error as E;
        match error {
            E::NotFound { .. } if says(error, &["NoSuchBucket"]) => Some(Self::Other),
            E::NotFound { .. }
            | E::AlreadyExists { .. }
            | E::Precondition { .. }
            | E::NotModified { .. }
            | E::InvalidPath { .. }
            | E::NotSupported { .. }
            | E::NotImplemented { .. } => None,
            // Some servers report a quota as 403, so the text is checked before the status.
            _ if says(error, FULL) => Some(Self::Full),
            E::PermissionDenied { .. } | E::Unauthenticated { .. } => Some(Self::Denied),
            _ => Some(Self::of_cause(error)),
        }
    }

    fn of_cause(error: &(dyn StdError + 'static)) -> Self {
        if let Some(kind) = io_cause(error).and_then(Self::of_io) {
            return kind;
        }
        // The client's error types are private, so only their texts can be checked.
        let passes = says(error, &["status code: 408", "status code: 429"]);
        let is_refused = says(error, &["status code: 4", "redirect without LOCATION"]);
        let is_remote = says(error, &["Error performing ", "HTTP error"]);
        if passes || (is_remote && !is_refused) { Self::Unavailable } else { Self::Other }
    }

    /// The kind of an I/O error, if it concerns the whole store.
    pub(crate) fn of_io(error: &io::Error) -> Option<Self> {
        use io::ErrorKind as K;
        match error.kind() {
            K::StorageFull | K::QuotaExceeded => Some(Self::Full),
            K::PermissionDenied | K::ReadOnlyFilesystem => Some(Self::Denied),
            _ if is_passing(error) => Some(Self::Unavailable),
            K::ConnectionRefused
            | K::ConnectionReset
            | K::ConnectionAborted
            | K::NotConnected
            | K::HostUnreachable
            | K::NetworkUnreachable
            | K::BrokenPipe
            | K::UnexpectedEof => Some(Self::Unavailable),
            _ => None,
        }
    }
}

/// How S3 servers report that no space is left.
const FULL: &[&str] = &[
    "status code: 507",
    "InsufficientStorage",
    "QuotaExceeded",
    "XMinioStorageFull",
    "No space left on device",
    "no space left on device",
    "Disk quota exceeded",
];

/// Whether an error or one of its causes contains one of these words.
pub(crate) fn says(error: &(dyn StdError + 'static), words: &[&str]) -> bool {
    // A cause's text is usually part of its parent's, but this is not guaranteed.
    chain(error).any(|e| {
        let text = e.to_string();
        words.iter().any(|word| text.contains(word))
    })
}

/// The first I/O error among an error and its causes.
pub(crate) fn io_cause<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a io::Error> {
    chain(error).find_map(|e| {
        let io = e.downcast_ref::<io::Error>()?;
        // An `io::Error` may only wrap another error with more detail.
        match io.get_ref() {
            Some(inner) => io_cause(inner).or(Some(io)),
            None => Some(io),
        }
    })
}

fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let this = next?;
        next = this.source();
        Some(this)
    })
}

/// The most specific line of an error: the system's message, if there is one.
pub(crate) fn root_cause(error: &(dyn StdError + 'static)) -> String {
    match io_cause(error).filter(|io| io.raw_os_error().is_some()) {
        Some(io) => io.to_string(),
        None => error.to_string(),
    }
}

/// Whether an I/O error may pass without action.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind as K;
    // 23 and 24: too many open files, in the system or in this process.
    matches!(
        error.kind(),
        K::Interrupted | K::TimedOut | K::WouldBlock | K::ResourceBusy | K::StaleNetworkFileHandle
    ) || matches!(error.raw_os_error(), Some(23 | 24))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(source: impl Into<Box<dyn StdError + Send + Sync>>) -> object_store::Error {
        object_store::Error::Generic { store: "test", source: source.into() }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("writing")]
    struct Wrapped(#[source] io::Error);

    #[test]
    fn a_full_disk_is_found_anywhere_in_the_chain() {
        let enospc = || io::Error::from_raw_os_error(28);
        assert_eq!(FailureKind::of(&generic(enospc())), Some(FailureKind::Full));
        assert_eq!(FailureKind::of(&generic(Wrapped(enospc()))), Some(FailureKind::Full));
        let twice = io::Error::other(Wrapped(enospc()));
        assert_eq!(FailureKind::of(&generic(Wrapped(twice))), Some(FailureKind::Full));
    }

    #[test]
    fn s3_says_full_in_several_ways() {
        for words in [
            "Server returned non-2xx status code: 507 Insufficient Storage: ",
            "status code: 403 Forbidden: <Code>QuotaExceeded</Code>",
            "<Code>XMinioStorageFull</Code>",
        ] {
            assert_eq!(FailureKind::of(&generic(words)), Some(FailureKind::Full), "{words}");
        }
    }

    #[test]
    fn what_the_server_refuses_for_good_is_told_from_what_passes() {
        for (words, kind) in [
            (
                "Error performing PUT http://h/b in 1s - Server returned non-2xx status code: 429 Too Many",
                FailureKind::Unavailable,
            ),
            (
                "Error performing PUT http://h/b in 1s - Server returned non-2xx status code: 503 Busy",
                FailureKind::Unavailable,
            ),
            (
                "Error performing PUT http://h/b in 1s - HTTP error: error sending request",
                FailureKind::Unavailable,
            ),
            (
                "Error performing PUT http://h/b in 1s - Server returned non-2xx status code: 400 Bad",
                FailureKind::Other,
            ),
        ] {
            assert_eq!(FailureKind::of(&generic(words)), Some(kind), "{words}");
        }
    }

    #[test]
    fn an_object_that_is_not_there_is_no_trouble_of_the_store() {
        let error = object_store::Error::NotFound { path: "a".into(), source: "gone".into() };
        assert_eq!(FailureKind::of(&error), None);
    }
}
