//! A hand-written server, for responses that no well-behaved server gives.

#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;
use web::{Client, GetRequest, WebConfig};

/// Serves until the test's runtime ends: each connection carries one request, which `handle` answers with bytes.
pub(crate) async fn serve<F, H>(handle: F) -> String
where
    F: Fn(TcpStream) -> H + Send + Sync + 'static,
    H: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let handle = Arc::new(handle);
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let handle = Arc::clone(&handle);
            tokio::spawn(async move {
                read_head(&mut connection).await;
                handle(connection).await;
            });
        }
    });
    format!("http://{address}")
}

pub(crate) async fn say(connection: &mut TcpStream, text: &str) {
    connection.write_all(text.as_bytes()).await.unwrap();
}

/// The head of the next request; empty when none comes.
pub(crate) async fn read_head(connection: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && connection.read_buf(&mut head).await.is_ok_and(|read| read > 0) {}
    String::from_utf8(head).unwrap()
}

/// A configuration with very short waits between attempts.
pub(crate) fn config() -> WebConfig {
    let short = Duration::from_millis(2);
    WebConfig { backoff_first: short, backoff_max: short, ..WebConfig::default() }
}

pub(crate) fn client() -> Client {
    Client::new(config()).unwrap()
}

pub(crate) fn request(url: &str) -> GetRequest {
    GetRequest::new(url.parse::<Url>().unwrap())
}
