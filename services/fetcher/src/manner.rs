//! How the resources of a job are requested.

use model::{FetchItem, Terms};

/// Resources of a job for which connections of their own pay, an estimate: a new connection costs two round trips. By
/// HTTP/1.1 a lost packet stops one response instead of all, which was faster with stalls at 100 ms and more.
const WORTH_A_CONNECTION: usize = 8;
/// Declared bytes of a job for which they pay, however few its resources are. At 10 MB/s these take 0.8 s, longer than
/// the two round trips at 240 ms. From a near server they come faster by HTTP/1.1, with half of the memory.
const WORTH_BYTES: u64 = 8 * 1024 * 1024;

/// What the requests of a job have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// Whether an HTML page may be the content of a resource of another type.
    pub(crate) accepts_html: bool,
    /// Whether they come over a connection of their own, by HTTP/1.1.
    pub(crate) is_apart: bool,
}

impl Manner {
    /// The manner of a job with these resources.
    pub(crate) fn of(terms: &Terms, items: &[FetchItem]) -> Self {
        let declared = items.iter().filter_map(|item| item.declaration.length);
        let bytes = declared.fold(0, u64::saturating_add);
        let is_apart = items.len() >= WORTH_A_CONNECTION || bytes >= WORTH_BYTES;
        Self { accepts_html: terms.accept_html, is_apart }
    }
}

#[cfg(test)]
mod tests {
    use model::{Declaration, Seq, Validators};

    use super::*;

    const MIB: u64 = 1024 * 1024;

    /// Whether resources of these lengths come over connections of their own.
    fn is_apart(lengths: impl IntoIterator<Item = Option<u64>>) -> bool {
        let item = |length| FetchItem {
            uri: "http://example.org/a".parse().expect("an http URI"),
            seq: Seq::new(1),
            declaration: Declaration { length, ..Declaration::default() },
            listed_until: None,
            held: Validators::default(),
            repair: false,
            held_type: None,
            from: None,
            patch: None,
        };
        let items: Vec<FetchItem> = lengths.into_iter().map(item).collect();
        Manner::of(&Terms::default(), &items).is_apart
    }

    #[test]
    fn connections_of_their_own_are_for_jobs_that_last_longer_than_a_handshake() {
        assert!(
            !is_apart([None; 1]) && !is_apart([None; 7]),
            "small Sources share the connection of their list"
        );
        assert!(is_apart([None; 8]) && is_apart([None; 1_024]));
    }

    #[test]
    fn few_resources_of_many_bytes_have_them_too() {
        assert!(is_apart([Some(16 * MIB)]), "one large file");
        assert!(is_apart([Some(4 * MIB), None, Some(4 * MIB)]), "together");
        assert!(!is_apart([Some(4 * MIB), None, Some(4 * MIB - 1)]));
        assert!(is_apart([Some(u64::MAX), Some(u64::MAX)]), "whatever a list says");
    }
}
