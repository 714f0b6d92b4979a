//! A client that asks a gateway, each time over a connection of its own.

use crate::answer::{Answer, ask};

/// A client without a token.
pub(super) struct Asker {
    address: String,
}

impl Asker {
    pub(super) fn new(address: String) -> Self {
        Self { address }
    }

    /// Requests a path or a URL of the gateway. Each of the further headers ends with a line break.
    pub(super) fn get(&self, place: &str, headers: &str) -> anyhow::Result<Answer> {
        let address = &self.address;
        let path = place.strip_prefix(&format!("http://{address}")).unwrap_or(place);
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n");
        ask(address, &request)
    }
}
