//! When a connection ends: after too long a time, too long a head, or a stop.

use super::*;

#[tokio::test]
async fn who_does_not_come_to_the_end_of_a_head_is_cut_off_and_others_are_served() {
    let (address, ..) = start(Duration::from_secs(1)).await;
    let mut silent = connect(address, b"").await;
    let mut slow = connect(address, b"GET / HTTP/1.1\r\nHost: ").await;
    let mut idle = connect(address, ASK).await;
    let mut honest = connect(address, b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
    assert!(rest(&mut honest).await.ends_with("\r\n\r\nhere"));
    assert_eq!((rest(&mut silent).await, rest(&mut slow).await), (String::new(), String::new()));
    let answered = rest(&mut idle).await;
    assert!(answered.ends_with("\r\n\r\nhere"), "once, and then it said nothing more: {answered}");
}

#[tokio::test]
async fn a_head_that_does_not_end_is_not_held() {
    let (address, ..) = start(Duration::from_secs(3_600)).await;
    let head = format!("GET / HTTP/1.1\r\nHost: h\r\nX: {}", "x".repeat(BUFFER_BYTES));
    let mut line = connect(address, head.as_bytes()).await;
    let answer = rest(&mut line).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
}

#[tokio::test]
async fn who_stops_reading_is_cut_off_and_makes_room() {
    let (address, ..) = start_with(Duration::from_secs(3_600), 1).await;
    let mut stalled = connect(address, b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n").await;
    let mut next = connect(address, b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
    assert!(rest(&mut next).await.ends_with("here"));
    let mut bytes = Vec::new();
    let _ = stalled.read_to_end(&mut bytes).await;
    assert!(bytes.len() < LARGE, "the response breaks off");
}

#[tokio::test]
async fn a_stop_waits_for_what_is_under_way_and_for_nothing_else() {
    let (address, stop, serving) = start(Duration::from_secs(3_600)).await;
    let mut idle = connect(address, ASK).await;
    let mut answer = vec![0; 12];
    idle.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 200");
    stop.cancel();
    tokio::time::timeout(Duration::from_secs(60), serving).await.expect("nothing is left").unwrap();
    assert!(rest(&mut idle).await.ends_with("here"));
    assert!(TcpStream::connect(address).await.is_err(), "the port is closed");
}
