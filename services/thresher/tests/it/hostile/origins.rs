//! Lists that name many origins, many ports, or ports of other services.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use testkit::servers::free_port;

use crate::common::{Destination, Site, resource, urlset};

const LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
/// More origins than a run reads ahead of its jobs.
const MANY: usize = 4_500;
/// Every host of a list is an address of this machine. Nothing is retried.
const OPTIONS: &[&str] = &["--allow-address", "127.0.0.0/8", "--retries", "0"];

/// The address of a separate origin on this machine, at this port.
fn origin(number: usize, port: u16) -> String {
    format!("http://127.{}.{}.{}:{port}", 1 + number / 62_500, number / 250 % 250, 1 + number % 250)
}

/// Starts a server that responds at every address of this machine, and returns its port.
fn answers_everywhere() -> u16 {
    let listener = Arc::new(TcpListener::bind("0.0.0.0:0").expect("a free port"));
    let port = listener.local_addr().expect("a bound socket has an address").port();
    for _ in 0..8 {
        let listener = Arc::clone(&listener);
        thread::spawn(move || listener.incoming().flatten().for_each(|stream| drop(answer(stream))));
    }
    port
}

/// Answers one request.
fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(&stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let (status, body) =
        if first.contains(" /robots.txt ") { ("404 Not Found", "") } else { ("200 OK", "body") };
    let length = body.len();
    (&stream).write_all(
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
            .as_bytes(),
    )
}

#[tokio::test]
async fn a_run_ends_where_every_resource_has_an_origin_of_its_own() {
    let answers = answers_everywhere();
    // No server listens at this port.
    let refuses = free_port();
    let entries: Vec<String> = (0..MANY)
        .map(|n| resource(&format!("{}/{n}", origin(n, if n % 10 == 0 { answers } else { refuses })), ""))
        .collect();
    let site = Site::start().await;
    let list = site.serve("/list.xml", urlset(LIST, &entries));
    let copy = Destination::directory();
    let run = copy.sync_with(&list, OPTIONS).exits(1);
    assert_eq!((run.count("stored"), run.count("failed")), (450, 4_050), "{run}");
    assert_eq!(copy.present().len(), 450);
    assert!(copy.listed().iter().all(|line| line["state"] != "pending"), "each was tried");
}

#[tokio::test]
async fn a_run_ends_where_no_origin_has_enough_resources_for_a_whole_job() {
    let port = answers_everywhere();
    let entries: Vec<String> =
        (0..MANY).map(|n| resource(&format!("{}/{n}", origin(n % 150, port)), "")).collect();
    let site = Site::start().await;
    let list = site.serve("/list.xml", urlset(LIST, &entries));
    let copy = Destination::directory();
    let run = copy.sync_with(&list, OPTIONS).exits(0);
    assert_eq!((run.count("stored"), run.count("failed")), (MANY as u64, 0), "{run}");
}
