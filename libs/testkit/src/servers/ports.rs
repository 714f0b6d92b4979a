//! Free ports for servers that cannot choose one themselves, and for servers that are down.
//!
//! A port is claimed by a lock on a file, which ends with the process. So no other test takes it before its server
//! listens, nor while that is down. Ports that the system gives to others are of another range.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Mutex;

use anyhow::bail;
use rand::RngExt;

/// SeaweedFS also uses the port that is this much higher, for gRPC.
const GRPC_OFFSET: u16 = 10_000;
/// Linux uses neither these ports nor those 10,000 higher for outgoing connections.
const RANGE: std::ops::Range<u16> = 10_500..22_000;

/// The folder of the locks, below that for temporary files.
const CLAIMS: &str = "thresher-test-ports";

/// The ports of this process.
static CLAIMED: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A port of 127.0.0.1 at which no server listens, and none will but one of this process or its children.
///
/// # Panics
/// When there is none.
pub fn free_port() -> u16 {
    let [port] = free_ports().unwrap_or_else(|error| panic!("no port for this test: {error:#}"));
    port
}

/// Different ports of 127.0.0.1 that were free just now, and so were those 10,000 higher. Until this process ends, no
/// other call returns one of them.
///
/// # Errors
/// When a thousand attempts do not find enough of them.
pub(crate) fn free_ports<const N: usize>() -> anyhow::Result<[u16; N]> {
    let mut ports = [0; N];
    let mut found = 0;
    for _ in 0..1000 {
        if found == N {
            return Ok(ports);
        }
        let port = rand::rng().random_range(RANGE);
        let (Some(low), Some(high)) = (claim(port), claim(port + GRPC_OFFSET)) else { continue };
        if listen(port).is_ok() && listen(port + GRPC_OFFSET).is_ok() {
            CLAIMED.lock().expect("no holder panics").extend([low, high]);
            ports[found] = port;
            found += 1;
        }
    }
    bail!("found only {found} of {N} free ports between {} and {} on 127.0.0.1", RANGE.start, RANGE.end)
}

/// Claims a port for this process, unless one has it.
fn claim(port: u16) -> Option<File> {
    let folder = std::env::temp_dir().join(CLAIMS);
    std::fs::create_dir_all(&folder).ok()?;
    let path = folder.join(port.to_string());
    let file = File::options().create(true).truncate(false).write(true).open(path).ok()?;
    file.try_lock().ok()?;
    Some(file)
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
        let port = free_port();
        let _holder = listen(port);
        assert!(listen(port).is_err());
    }

    #[test]
    fn a_port_is_chosen_once() {
        let port = free_port();
        assert!(claim(port).is_none() && claim(port + GRPC_OFFSET).is_none());
    }
}
