//! Connections: which are kept, for how long, and what becomes of a request that meets one the server has closed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::Disposition;
use tokio::net::{TcpListener, TcpStream};
use web::{Client, ErrorKind, Phase, WebConfig};

use crate::support::{client, config, read_head, request, say};

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
const LONG: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc";

/// What a server received: for each connection, in order of arrival, the heads of its requests.
type Seen = Arc<Mutex<Vec<Vec<String>>>>;

/// Serves at `host`. The requests of each connection are answered with these texts, in order; then it is
/// closed, after reading one more request if `reads_on`. Returns its address.
async fn server(host: &str, answers: &'static [&str], reads_on: bool) -> (String, Seen) {
    let listener = TcpListener::bind((host, 0)).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seen = Seen::default();
    let all = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let number = {
                let mut all = all.lock().unwrap();
                all.push(Vec::new());
                all.len() - 1
            };
            tokio::spawn(converse(connection, answers, reads_on, Arc::clone(&all), number));
        }
    });
    (address, seen)
}

async fn converse(mut connection: TcpStream, answers: &[&str], reads_on: bool, seen: Seen, number: usize) {
    for turn in 0..answers.len() + usize::from(reads_on) {
        let head = read_head(&mut connection).await;
        if head.is_empty() {
            return;
        }
        seen.lock().unwrap()[number].push(head);
        if let Some(answer) = answers.get(turn) {
            say(&mut connection, answer).await;
        }
    }
}

async fn get(client: &Client, address: &str) {
    let mut response = client.get(request(&format!("http://{address}/a"))).await.unwrap();
    assert_eq!(response.chunk().await.unwrap().unwrap(), "abc");
    assert_eq!(response.chunk().await.unwrap(), None);
}

/// How many requests came on each connection that had any: the client may open one while another is returned
/// to the pool.
fn counts(seen: &Seen) -> Vec<usize> {
    seen.lock().unwrap().iter().map(Vec::len).filter(|count| *count > 0).collect()
}

#[tokio::test]
async fn a_connection_is_kept_when_the_body_was_read_whole() {
    let (address, seen) = server("127.0.0.1", &[ANSWER; 3], false).await;
    let client = client();
    for _ in 0..3 {
        get(&client, &address).await;
    }
    assert_eq!(counts(&seen), [3]);
}

#[tokio::test]
async fn a_connection_whose_body_is_given_up_is_closed() {
    let (address, seen) = server("127.0.0.1", &[LONG, ANSWER], false).await;
    let client = client();
    for _ in 0..2 {
        let mut response = client.get(request(&format!("http://{address}/a"))).await.unwrap();
        assert_eq!(response.chunk().await.unwrap().unwrap(), "abc");
    }
    assert_eq!(counts(&seen), [1, 1]);
}

#[tokio::test]
async fn a_connection_that_nobody_uses_is_kept_for_a_minute_and_closed_after_two() {
    let (address, seen) = server("127.0.0.1", &[ANSWER; 3], false).await;
    let client = client();
    get(&client, &address).await;
    for passing in [60, 91] {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(passing)).await;
        tokio::time::resume();
        get(&client, &address).await;
    }
    assert_eq!(counts(&seen), [2, 1]);
}

#[tokio::test]
async fn a_request_that_meets_a_connection_just_closed_goes_out_on_another_one_and_counts_once() {
    let (address, seen) = server("127.0.0.1", &[ANSWER], false).await;
    let client = client();
    for sent in 1..=20 {
        // The server closes as soon as it has answered: sometimes before the next request, sometimes while it
        // is on its way.
        match client.get(request(&format!("http://{address}/a"))).await {
            Ok(mut response) => while response.chunk().await.unwrap().is_some() {},
            // The request may already be sent, and it is unknown whether the server received it. So it is not
            // sent again.
            Err(error) => assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}"),
        }
        assert_eq!(client.requests(), sent);
    }
    assert!(counts(&seen).iter().all(|count| *count == 1), "{seen:?}");
}

#[tokio::test]
async fn a_request_that_was_sent_is_not_sent_again() {
    let (address, seen) = server("127.0.0.1", &[ANSWER], true).await;
    let client = client();
    get(&client, &address).await;
    let error = client.get(request(&format!("http://{address}/a"))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interrupted, "{error}");
    assert_eq!((error.requests(), client.requests()), (1, 2));
    assert_eq!(counts(&seen), [2]);
}

#[tokio::test]
async fn an_ipv6_host_is_asked_for_by_its_address() {
    let (address, seen) = server("::1", &[ANSWER], false).await;
    get(&client(), &address).await;
    let head = seen.lock().unwrap()[0][0].to_lowercase();
    assert!(address.starts_with("[::1]:") && head.contains(&format!("\r\nhost: {address}\r\n")), "{head}");
}

#[tokio::test]
async fn a_server_that_never_ends_the_handshake_is_given_up_as_not_connected() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/a", listener.local_addr().unwrap());
    let client = Client::new(WebConfig { connect_timeout: Duration::from_millis(30), ..config() }).unwrap();
    let error = client.get(request(&url)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout(Phase::Connect), "{error}");
    assert_eq!(error.disposition(), Disposition::Retry { after: None });
    assert!(error.to_string().contains("no connection within 30ms"), "{error}");
}
