use std::time::Instant;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Duration;

use super::*;

const LINK: Link = Link {
    round_trip: Duration::from_millis(60),
    bytes_per_second: 100_000_000,
    most_window: 64 << 20,
    stalls: 0.0,
};

/// A server that sends this many bytes for each byte that it gets, and closes after `answers` of them.
async fn sending(bytes: usize, answers: usize) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                for answer in 0..answers {
                    if stream.read_u8().await.is_err() {
                        return;
                    }
                    let _ = stream.write_all(&vec![answer as u8; bytes]).await;
                }
            });
        }
    });
    address
}

/// The time of each answer: from the connection on the first, then from the byte that asks for it.
fn times(link: Link, bytes: usize, answers: usize) -> Vec<Duration> {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(sending(bytes, answers));
    let proxy = FarProxy::start(server, link).unwrap();
    let times = runtime.block_on(async {
        let mut began = Instant::now();
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).await.unwrap();
        let mut times = Vec::new();
        for answer in 0..answers {
            client.write_u8(1).await.unwrap();
            let mut body = vec![0; bytes];
            client.read_exact(&mut body).await.unwrap();
            assert!(body.iter().all(|byte| *byte == answer as u8));
            times.push(began.elapsed());
            began = Instant::now();
        }
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0, "the end is passed on");
        times
    });
    drop(proxy);
    times
}

#[test]
fn a_connection_takes_a_round_trip_and_each_request_another() {
    let times = times(LINK, 1, 3);
    assert!(times[0] >= LINK.round_trip * 2, "{times:?}");
    assert!(times[1..].iter().all(|time| *time >= LINK.round_trip), "{times:?}");
}

#[test]
fn slow_start_costs_round_trips_and_a_used_connection_has_its_window() {
    // 15 windows of the beginning: 1 + 2 + 4 + 8.
    let times = times(LINK, 15 * 14_600, 2);
    assert!(times[0] >= LINK.round_trip * 5, "{times:?}");
    assert!(times[1] >= LINK.round_trip && times[1] < times[0], "{times:?}");
}

#[test]
fn no_more_comes_than_the_link_carries_or_the_window_allows() {
    let slow = times(Link { bytes_per_second: 1_000_000, ..LINK }, 500_000, 1);
    assert!(slow[0] >= Duration::from_millis(500), "{slow:?}");
    let narrow = times(Link { most_window: 14_600, ..LINK }, 146_000, 1);
    assert!(narrow[0] >= LINK.round_trip * 10, "{narrow:?}");
}

#[test]
fn a_stall_holds_up_what_is_behind_it() {
    let always = times(Link { stalls: 1.0, ..LINK }, 1, 2);
    // The request and the answer are each late by a round trip.
    assert!(always[1] >= LINK.round_trip * 3, "{always:?}");
}
