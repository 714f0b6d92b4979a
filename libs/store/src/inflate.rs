//! Members that are stored deflated (RFC 1951), inflated as they pass.

use bytes::Bytes;
use flate2::{Decompress, FlushDecompress, Status};
use futures::StreamExt;
use futures::stream;

use crate::read::ByteStream;
use crate::verified::Expected;

/// How much is inflated at once.
const PIECE_BYTES: u64 = 256 * 1024;

/// Inflates `pieces`: what is behind the bytes that are not wanted, as far as they are.
///
/// Of a whole bitstream one byte more than expected is inflated at most, so that who counts sees that it is too long: what a damaged or
/// hostile archive holds beyond that is never made.
pub(crate) fn stream(pieces: ByteStream, expected: Expected) -> ByteStream {
    let limit = expected.inflated_limit();
    let begin = Inflating {
        inflater: Inflater::new(limit),
        pieces,
        input: Bytes::new(),
        skip: expected.skip(),
        expected,
    };
    stream::try_unfold(begin, |mut state| async move {
        while !state.inflater.is_done() {
            if state.input.is_empty() {
                match state.pieces.next().await.transpose()? {
                    Some(piece) => state.input = piece,
                    None => return Err(state.expected.ends_early(state.inflater.inflated())),
                }
            }
            let mut piece =
                state.inflater.step(&mut state.input).map_err(|why| state.expected.not_deflated(&why))?;
            let skipped = piece.split_to(usize::try_from(state.skip).unwrap_or(usize::MAX).min(piece.len()));
            state.skip -= skipped.len() as u64;
            if !piece.is_empty() {
                return Ok(Some((piece, state)));
            }
        }
        Ok(None)
    })
    .boxed()
}

struct Inflating {
    inflater: Inflater,
    pieces: ByteStream,
    input: Bytes,
    skip: u64,
    expected: Expected,
}

/// A deflate stream half-way.
struct Inflater {
    state: Decompress,
    limit: u64,
    ended: bool,
}

impl Inflater {
    fn new(limit: u64) -> Self {
        Self { state: Decompress::new(false), limit, ended: false }
    }

    fn inflated(&self) -> u64 {
        self.state.total_out()
    }

    /// Whether nothing more comes, or nothing more is wanted.
    fn is_done(&self) -> bool {
        self.ended || self.inflated() >= self.limit
    }

    /// Takes some of the input, which is not empty, and gives what comes of it, perhaps nothing yet.
    fn step(&mut self, input: &mut Bytes) -> Result<Bytes, String> {
        let room = (self.limit - self.inflated()).min(PIECE_BYTES);
        let mut output = Vec::with_capacity(room as usize);
        let before = self.state.total_in();
        let status = self.state.decompress_vec(input, &mut output, FlushDecompress::None);
        let status = status.map_err(|error| error.to_string())?;
        let used = (self.state.total_in() - before) as usize;
        self.ended = status == Status::StreamEnd;
        if used == 0 && output.is_empty() && !self.ended {
            return Err("nothing comes of its bytes".into());
        }
        let _ = input.split_to(used);
        Ok(output.into())
    }
}
