#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

pub mod counting;
pub mod tars;
pub mod zips;

use std::future::Future;

/// Runs a future that waits only for itself and tasks that it spawned.
pub fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Bytes that do not deflate, always the same.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .flatten()
    .take(length)
    .collect()
}
