//! Limits of the connections, and the memory that they take at most.

use std::sync::Arc;
use std::time::Duration;

use model::Network;

/// The longest head of a request, in bytes. Also the most that is buffered for writing before the client reads it.
pub const BUFFER_BYTES: usize = 32 * 1024;
/// Memory of a connection besides its buffers: its task, and the task of the request under way.
const TASK_BYTES: usize = 16 * 1024;

/// Limits of the connections.
#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    /// The most connections at a time. Further ones wait in the listen queue of the kernel, and take no memory of this
    /// process.
    pub most: usize,
    /// The most of one client; further ones are closed. None: as many as there are.
    pub per_client: Option<usize>,
    /// Reverse proxies before the server. They may have as many connections as there are: of each client that they name,
    /// so many requests are answered at a time.
    pub proxies: Arc<[Network]>,
    /// The time limit for the head of a request, since the connection was made or its last response was sent.
    pub head_time: Duration,
    /// How long a client may take no bytes of a response. None: as long as it likes, as behind a proxy.
    pub stall_time: Option<Duration>,
}

impl ConnectionLimits {
    /// The most memory of `most` connections, each with a body of at most `body_bytes`.
    pub fn memory_bytes(&self, body_bytes: usize) -> usize {
        self.most * (2 * BUFFER_BYTES + TASK_BYTES + body_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_connections_grows_with_their_number_alone() {
        let limits = ConnectionLimits {
            most: 512,
            per_client: None,
            proxies: Arc::default(),
            head_time: Duration::from_secs(3_600),
            stall_time: None,
        };
        assert_eq!(limits.memory_bytes(64 * 1024), 512 * 144 * 1024);
    }
}
