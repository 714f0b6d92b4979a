//! A list response that discovery left open after its beginning. Planning reads on from there without a second
//! request.

use std::time::Duration;

use bytes::Bytes;
use model::Validators;
use resourcesync::Options;
use url::Url;
use web::Response;

use crate::stream::DocumentStream;

/// Bytes of the beginning that are kept. Discovery needs less for a header, but the network may run ahead of the
/// parser.
const MOST_KEPT: usize = 1024 * 1024;

/// A document whose beginning was received. The open response takes a permit of its origin, so it is read at once or
/// dropped.
pub struct Prefetched {
    /// The open response.
    pub response: Response,
    /// The bytes received so far.
    pub pieces: Vec<Bytes>,
    /// Validators of the version that the request named as known.
    pub held: Validators,
    /// Time until its header arrived.
    pub waited: Duration,
}

/// The beginning of a body.
#[derive(Debug, Default)]
pub struct BodyPrefix {
    pieces: Vec<Bytes>,
    bytes: usize,
    is_cut: bool,
}

impl Prefetched {
    /// Whether this is the response that a request for `url` with the validators `held` would get now.
    pub fn answers(&self, url: &Url, held: &Validators) -> bool {
        self.response.final_url() == url && self.held == *held
    }

    /// Reads it from its first byte. Discovery has counted its requests.
    pub fn read(self, options: Options) -> DocumentStream {
        let mut stream = DocumentStream::of(self.response, self.pieces, options);
        stream.requests = 0;
        stream
    }
}

impl BodyPrefix {
    /// Appends the next chunk.
    pub fn add(&mut self, piece: &Bytes) {
        self.is_cut |= self.bytes >= MOST_KEPT;
        if !self.is_cut {
            self.bytes += piece.len();
            self.pieces.push(piece.clone());
        }
    }

    /// Number of bytes kept.
    pub fn kept_bytes(&self) -> usize {
        self.bytes
    }

    /// Its first bytes as text.
    pub fn text(&self, most: usize) -> String {
        let bytes: Vec<u8> = self.pieces.iter().flatten().copied().take(most).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// All bytes received; none if some of them were dropped.
    pub fn whole(self) -> Option<Vec<Bytes>> {
        (!self.is_cut).then_some(self.pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_longer_than_is_kept_is_not_taken_for_all_that_came() {
        let mut beginning = BodyPrefix::default();
        let piece = Bytes::from(vec![b'x'; MOST_KEPT / 2]);
        for _ in 0..2 {
            beginning.add(&piece);
        }
        assert_eq!((beginning.kept_bytes(), beginning.text(3)), (MOST_KEPT, "xxx".to_owned()));
        let again = BodyPrefix { pieces: beginning.pieces.clone(), ..BodyPrefix::default() };
        assert_eq!(again.whole(), Some(vec![piece.clone(), piece]));
        beginning.add(&Bytes::from_static(b"y"));
        assert_eq!((beginning.kept_bytes(), beginning.whole()), (MOST_KEPT, None));
    }
}
