//! The answer to discovery's request for a list, of which it read the beginning: whoever reads the list goes on with it and need not ask again.

use std::time::Duration;

use bytes::Bytes;
use model::Validators;
use resourcesync::Options;
use url::Url;
use web::Response;

use crate::read::DocumentStream;

/// Bytes of the beginning that are kept. A head is read from less, but the network may be ahead of whoever reads it.
const MOST_KEPT: usize = 1024 * 1024;

/// A document of which the beginning has come. The rest takes one of its origin's places: it is read at once, or let go of.
pub(crate) struct Begun {
    pub(crate) response: Response,
    /// What has come.
    pub(crate) pieces: Vec<Bytes>,
    /// The version of which it was said that it is held.
    pub(crate) held: Validators,
    /// How long its head was waited for.
    pub(crate) waited: Duration,
}

/// The beginning of a body.
#[derive(Debug, Default)]
pub(crate) struct Beginning {
    pieces: Vec<Bytes>,
    bytes: usize,
    is_cut: bool,
}

impl Begun {
    /// Whether it is what a request for `url` would bring now that says that the version with the validators `held` is held.
    pub(crate) fn answers(&self, url: &Url, held: &Validators) -> bool {
        self.response.final_url() == url && self.held == *held
    }

    /// Reads it from its first byte. Its requests were counted by discovery.
    pub(crate) fn read(self, options: Options) -> DocumentStream {
        let mut stream = DocumentStream::of(self.response, self.pieces, options);
        stream.requests = 0;
        stream
    }
}

impl Beginning {
    /// Takes what came next.
    pub(crate) fn add(&mut self, piece: &Bytes) {
        self.is_cut |= self.bytes >= MOST_KEPT;
        if !self.is_cut {
            self.bytes += piece.len();
            self.pieces.push(piece.clone());
        }
    }

    /// How many bytes are kept.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Its first bytes as text.
    pub(crate) fn text(&self, most: usize) -> String {
        let bytes: Vec<u8> = self.pieces.iter().flatten().copied().take(most).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// All that came; none where not all of it was kept.
    pub(crate) fn whole(self) -> Option<Vec<Bytes>> {
        (!self.is_cut).then_some(self.pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_longer_than_is_kept_is_not_taken_for_all_that_came() {
        let mut beginning = Beginning::default();
        let piece = Bytes::from(vec![b'x'; MOST_KEPT / 2]);
        for _ in 0..2 {
            beginning.add(&piece);
        }
        assert_eq!((beginning.len(), beginning.text(3)), (MOST_KEPT, "xxx".to_owned()));
        let again = Beginning { pieces: beginning.pieces.clone(), ..Beginning::default() };
        assert_eq!(again.whole(), Some(vec![piece.clone(), piece]));
        beginning.add(&Bytes::from_static(b"y"));
        assert_eq!((beginning.len(), beginning.whole()), (MOST_KEPT, None));
    }
}
