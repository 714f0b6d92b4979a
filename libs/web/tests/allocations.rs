//! Allocations per request, from its URL to the last byte of its body, including the HTTP library's. A count,
//! not a time, so that it is the same wherever the tests run.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use allocation_counter::measure;
use tokio::runtime::{Builder, Runtime};
use url::Url;
use web::{Client, GetRequest};

#[path = "it/support/mod.rs"]
mod support;

const BODY: usize = 2048;
const GETS: usize = 200;

/// Answers every request on every connection with the same small body, in a thread of its own, whose
/// allocations are not counted here.
fn server() -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/resources/a.html", listener.local_addr().unwrap());
    thread::spawn(move || listener.incoming().for_each(|connection| answer(connection.unwrap())));
    url.parse().unwrap()
}

fn answer(mut connection: TcpStream) {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {BODY}\r\nETag: \"v1\"\r\n\
         Last-Modified: Tue, 01 Jan 2013 00:00:00 GMT\r\nDate: Sat, 21 Nov 2026 10:50:05 GMT\r\n\r\n"
    );
    let reply = [head.as_bytes(), &[b'x'; BODY]].concat();
    let mut asked = [0; 4096];
    let mut held = 0;
    while let Ok(read @ 1..) = connection.read(&mut asked[held..]) {
        held += read;
        if asked[..held].ends_with(b"\r\n\r\n") {
            held = 0;
            connection.write_all(&reply).unwrap();
        }
    }
}

async fn get(client: &Client, url: &Url) {
    let mut response = client.get(GetRequest::new(url.clone())).await.unwrap();
    while response.chunk().await.unwrap().is_some() {}
    assert_eq!(response.received(), BODY as u64);
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Allocations per GET over an open connection.
fn allocations() -> (f64, u64) {
    let url = server();
    let client = support::client();
    let runtime = runtime();
    runtime.block_on(get(&client, &url));
    let all = measure(|| {
        runtime.block_on(async {
            for _ in 0..GETS {
                get(&client, &url).await;
            }
        });
    });
    (all.count_total as f64 / GETS as f64, all.bytes_total / GETS as u64)
}

/// Our own allocations are the requested URL, its origin, and the table of the request's headers. The library's
/// are the request line and its way through the pool, the connection's task and back, and the response's head
/// and buffers. Reading the first bytes of a text/html body takes two. Optimised builds happen to make two
/// more.
const NEEDED: f64 = if cfg!(debug_assertions) { 21.0 } else { 23.0 };

#[test]
fn get_over_a_kept_connection_allocates_no_more_than_it_needs() {
    let (each, bytes) = allocations();
    // A buffer is allocated anew now and then.
    assert!(each < NEEDED + 0.5, "{each} for each GET, {bytes} bytes");
}
