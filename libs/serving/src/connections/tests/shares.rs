//! How many connections there are, and how many of one client.

use tokio::net::TcpSocket;

use super::*;

#[tokio::test]
async fn no_more_connections_than_allowed_are_open_and_the_next_is_served_when_one_ends() {
    let (address, ..) = start_with(Duration::from_secs(3_600), 2).await;
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut line = connect(address, ASK).await;
        let mut answer = vec![0; 12];
        line.read_exact(&mut answer).await.unwrap();
        open.push(line);
    }
    let mut third = connect(address, b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").await;
    let mut byte = [0];
    let early = tokio::time::timeout(Duration::from_millis(200), third.read(&mut byte)).await;
    assert!(early.is_err(), "it waits: {early:?}");
    open.pop();
    assert!(rest(&mut third).await.ends_with("here"));
}

/// Connects from another address of this machine, and asks.
async fn connect_from(from: [u8; 4], address: SocketAddr, said: &[u8]) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::from(from), 0).into()).unwrap();
    let mut line = socket.connect(address).await.unwrap();
    // It may be closed already.
    let _ = line.write_all(said).await;
    line
}

#[tokio::test]
async fn one_client_has_no_more_connections_than_its_share_and_others_are_served() {
    let refused = Unseen::default();
    let limits = ConnectionLimits { per_client: Some(2), ..limits() };
    let (address, ..) = start_of(limits, refused.clone()).await;
    let (greedy, other) = ([127, 0, 0, 2], [127, 0, 0, 3]);
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut line = connect_from(greedy, address, ASK).await;
        line.read_exact(&mut [0; 12]).await.unwrap();
        open.push(line);
    }
    let mut third = connect_from(greedy, address, ASK).await;
    assert_eq!(rest(&mut third).await, "", "it is closed");
    assert_eq!(refused.0.load(Ordering::Relaxed), 1);
    let last = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
    assert!(rest(&mut connect_from(other, address, last).await).await.ends_with("here"));
    let mut first = open.remove(0);
    first.write_all(last).await.unwrap();
    rest(&mut first).await;
    served_again(async || rest(&mut connect_from(greedy, address, last).await).await).await;
}

/// Asks until it is answered: the server may notice the end of a connection a moment after the client.
async fn served_again(ask: impl AsyncFn() -> String) {
    let asked = async { while !ask().await.ends_with("here") {} };
    tokio::time::timeout(Duration::from_secs(60), asked).await.expect("there is room again");
}

#[tokio::test]
async fn a_proxy_has_connections_for_all_and_each_client_behind_it_its_share_of_requests() {
    let refused = Unseen::default();
    let proxies = ["127.0.0.0/8".parse().unwrap()].into();
    let limits = ConnectionLimits { per_client: Some(1), stall_time: None, proxies, ..limits() };
    let (address, ..) = start_of(limits, refused.clone()).await;
    let ask = async |path: &str, client: &str| {
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nX-Forwarded-For: {client}\r\n\r\n"
        );
        connect(address, head.as_bytes()).await
    };
    let mut endless = ask("/endless", "203.0.113.1").await;
    endless.read_exact(&mut [0; 12]).await.unwrap();
    let answer = rest(&mut ask("/", "203.0.113.1").await).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("retry-after: 5"), "{answer}");
    assert_eq!(refused.0.load(Ordering::Relaxed), 1);
    for other in ["203.0.113.2", "not an address"] {
        assert!(rest(&mut ask("/", other).await).await.ends_with("here"), "{other}");
    }
    drop(endless);
    served_again(async || rest(&mut ask("/", "203.0.113.1").await).await).await;
}
