//! Free ports for servers that cannot choose one themselves.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::bail;
use rand::RngExt;

/// SeaweedFS also uses the port that is this much higher, for gRPC.
const GRPC_OFFSET: u16 = 10_000;
/// Linux uses neither these ports nor those 10,000 higher for outgoing connections.
const RANGE: std::ops::Range<u16> = 10_500..22_000;

/// Different ports of 127.0.0.1 that were free just now, and so were those 10,000 higher.
///
/// # Errors
/// When a thousand attempts do not find enough of them.
pub(crate) fn free_ports<const N: usize>() -> anyhow::Result<[u16; N]> {
    let mut ports = [0; N];
    // All stay bound until the last is found, so that none is found twice.
    let mut held = Vec::new();
    let mut found = 0;
    for _ in 0..1000 {
        if found == N {
            return Ok(ports);
        }
        let port = rand::rng().random_range(RANGE);
        let pair = (listen(port), listen(port + GRPC_OFFSET));
        if let (Ok(low), Ok(high)) = pair {
            held.extend([low, high]);
            ports[found] = port;
            found += 1;
        }
    }
    bail!("found only {found} of {N} free ports between {} and {} on 127.0.0.1", RANGE.start, RANGE.end)
}

fn listen(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_and_leave_room_for_those_above() {
        let mut ports = free_ports::<8>().unwrap();
        assert!(ports.iter().all(|port| RANGE.contains(port)));
        ports.sort_unstable();
        assert!(ports.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_taken_port_is_not_free() {
        let [port] = free_ports().unwrap();
        let _holder = listen(port);
        assert!(listen(port).is_err());
    }
}
