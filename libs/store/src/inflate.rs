//! Inflates deflated members (RFC 1951) while they are read.

use bytes::Bytes;
use flate2::{Decompress, FlushDecompress, Status};
use futures::StreamExt;
use futures::stream;

use crate::verified::{ByteStream, Expected};

/// Size of an inflated piece.
const PIECE_BYTES: u64 = 256 * 1024;

/// Inflates `pieces`, and returns the requested range of the result.
///
/// Of a whole bitstream it inflates at most one byte more than expected, so that the caller sees that it is
/// too long. Further content of a damaged or hostile archive is never inflated.
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

/// State of a deflate stream.
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

    /// Whether the input has ended, or no more output is needed.
    fn is_done(&self) -> bool {
        self.ended || self.inflated() >= self.limit
    }

    /// Consumes some of the input, which is not empty, and returns the output, which may be empty.
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
