//! How the resources of a job are requested.

use model::Terms;

/// Resources of a job for which connections of their own pay, an estimate: a new connection costs two round trips. By
/// HTTP/1.1 a lost packet stops one response instead of all, which was faster with stalls at 100 ms and more.
const WORTH_A_CONNECTION: usize = 8;

/// What the requests of a job have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// Whether an HTML page may be the content of a resource of another type.
    pub(crate) accepts_html: bool,
    /// Whether they come over a connection of their own, by HTTP/1.1.
    pub(crate) is_apart: bool,
}

impl Manner {
    /// The manner of a job with this many resources.
    pub(crate) fn of(terms: &Terms, resources: usize) -> Self {
        Self { accepts_html: terms.accept_html, is_apart: resources >= WORTH_A_CONNECTION }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_their_own_are_for_jobs_that_last_longer_than_a_handshake() {
        let is_apart = |resources| Manner::of(&Terms::default(), resources).is_apart;
        assert!(!is_apart(1) && !is_apart(7), "a small Source is asked over the connection of its list");
        assert!(is_apart(8) && is_apart(1_024));
    }
}
