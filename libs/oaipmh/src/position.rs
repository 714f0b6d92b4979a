use memchr::{memchr_iter, memrchr};
use resourcesync::Position;

/// The position behind some bytes.
pub(crate) fn advance(position: Position, passed: &[u8]) -> Position {
    let byte = position.byte + passed.len() as u64;
    match memrchr(b'\n', passed) {
        None => Position { column: position.column + passed.len() as u64, byte, ..position },
        Some(last) => Position {
            line: position.line + memchr_iter(b'\n', passed).count() as u64,
            column: (passed.len() - last) as u64,
            byte,
        },
    }
}
