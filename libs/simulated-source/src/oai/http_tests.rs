//! The repository over HTTP: failures, compression, forms, files and pages.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use flate2::read::GzDecoder;
use futures::executor::block_on;

use super::{Failure, RepositoryFault, RepositorySpec, SimulatedRepository};

const LIST: &str = "/oai?verb=ListRecords&metadataPrefix=oai_dc";

struct Response {
    status: u16,
    head: String,
    body: Vec<u8>,
}

fn start() -> SimulatedRepository {
    block_on(SimulatedRepository::start(RepositorySpec::default().records(20).page_size(10).files(2)))
        .unwrap()
}

/// Sends one request over a connection of its own.
fn send(repository: &SimulatedRepository, line: &str, headers: &str, body: &str) -> Response {
    let url = repository.url();
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_ascii_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Response { status, head, body: bytes.split_off(end + 4) }
}

fn get(repository: &SimulatedRepository, path: &str) -> Response {
    send(repository, &format!("GET {path}"), "", "")
}

#[test]
fn failures_come_to_lists_and_records_in_turn_and_are_logged() {
    let repository = start();
    for failure in [
        Failure::Status(503, 30),
        Failure::Html(403),
        Failure::Empty(200),
        Failure::Cut(700),
        Failure::Broken(700),
    ] {
        repository.fail_next(failure, 1);
    }
    assert_eq!(get(&repository, "/oai?verb=Identify").status, 200, "it is neither list nor record");
    let busy = get(&repository, LIST);
    assert!(busy.status == 503 && busy.head.contains("retry-after: 30"), "{}", busy.head);
    let wall = get(&repository, LIST);
    assert!(wall.status == 403 && wall.body.starts_with(b"<!DOCTYPE html>"));
    let empty = get(&repository, LIST);
    assert!(empty.status == 200 && empty.body.is_empty());
    let cut = get(&repository, LIST);
    assert!(cut.status == 200 && cut.body.len() == 700 && cut.head.contains("content-length: 700"));
    let broken = get(&repository, LIST);
    assert!(broken.body.len() == 700 && !broken.head.contains("content-length: 700"));
    assert!(get(&repository, LIST).body.ends_with(b"</OAI-PMH>\n"));
    let log = repository.requests();
    assert_eq!((log.count("ListRecords"), log.count("Identify")), (6, 1));
    assert_eq!((log.by_status[&503], log.by_status[&403], log.impatient), (1, 1, 5));
}

#[test]
fn a_request_whose_client_is_gone_is_open_no_more() {
    let spec = RepositorySpec::default().records(20).latency(Duration::from_millis(50));
    let repository = block_on(SimulatedRepository::start(spec)).unwrap();
    let mut stream = TcpStream::connect(repository.url().strip_prefix("http://").unwrap()).unwrap();
    write!(stream, "GET {LIST} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    while repository.requests().max_open == 0 {
        std::thread::yield_now();
    }
    drop(stream);
    // The repository hears of it soon, but not at once.
    let most = (0..100).map(|_| {
        repository.reset_requests();
        assert_eq!(get(&repository, LIST).status, 200);
        repository.requests().max_open
    });
    assert!(most.into_iter().any(|most| most == 1), "it was counted beside each later one");
}

#[test]
fn flaky_pages_are_the_same_in_each_run() {
    let statuses = || {
        let repository = start();
        repository.set_fault(RepositoryFault::Flaky(300));
        (0..40)
            .map(|_| get(&repository, LIST))
            .map(|answer| (answer.status, answer.body.len() > 3_000))
            .collect::<Vec<_>>()
    };
    let first = statuses();
    assert_eq!(statuses(), first);
    let whole = first.iter().filter(|(status, is_whole)| *status == 200 && *is_whole).count();
    assert!((15..39).contains(&whole), "{first:?}");
}

#[test]
fn gzip_is_sent_to_those_who_accept_it_or_by_mistake() {
    let accept = "Accept-Encoding: gzip\r\n";
    let repository =
        block_on(SimulatedRepository::start(RepositorySpec::default().records(20).gzip(true))).unwrap();
    let packed = send(&repository, &format!("GET {LIST}"), accept, "");
    assert!(packed.head.contains("content-encoding: gzip"));
    let mut text = String::new();
    GzDecoder::new(&packed.body[..]).read_to_string(&mut text).unwrap();
    assert_eq!(text.as_bytes(), get(&repository, LIST).body);
    repository.set_fault(RepositoryFault::BrokenGzip);
    let broken = send(&repository, &format!("GET {LIST}"), accept, "");
    assert!(GzDecoder::new(&broken.body[..]).read_to_string(&mut text).is_err());
    repository.clear_faults();
    repository.set_fault(RepositoryFault::UnlabelledGzip);
    let unlabelled = get(&repository, LIST);
    assert!(unlabelled.body.starts_with(&[0x1f, 0x8b]) && !unlabelled.head.contains("content-encoding"));
}

#[test]
fn a_form_is_answered_like_a_query() {
    let repository = start();
    let posted = send(
        &repository,
        "POST /oai",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "verb=ListRecords&metadataPrefix=oai_dc",
    );
    // The clock may have moved on: dates and tokens differ.
    let records = |body: &[u8]| {
        let text = String::from_utf8(body.to_vec()).unwrap();
        let (_, rest) = text.split_once("<ListRecords>").unwrap();
        rest.split_once("<resumptionToken").unwrap().0.to_owned()
    };
    assert_eq!(records(&posted.body), records(&get(&repository, LIST).body));
}

#[test]
fn files_and_landing_pages_are_there_while_their_record_is() {
    let repository = start();
    let page = get(&repository, "/item/3");
    let files = page.head.matches("rel=\"item\"").count();
    assert_eq!((page.status, files), (200, 2), "{}", page.head);
    assert_eq!(get(&repository, "/files/3/1").body, repository.file(3, 1));
    assert_eq!(get(&repository, "/files/3/2").status, 404);
    repository.delete(3);
    assert_eq!((get(&repository, "/item/3").status, get(&repository, "/files/3/1").status), (404, 404));
    assert!(repository.metadata(3, "oai_dc").is_none() && repository.expected()[3].deleted);
}

#[test]
fn a_failing_record_fails_its_pages_and_itself_and_not_its_header() {
    let repository = start();
    repository.set_fault(RepositoryFault::FailingRecord(5, 500));
    assert_eq!(get(&repository, LIST).status, 500);
    assert_eq!(get(&repository, &LIST.replace("ListRecords", "ListIdentifiers")).status, 200);
    let record = "/oai?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:sim.example.org:";
    assert_eq!(get(&repository, &format!("{record}5")).status, 500);
    assert_eq!(get(&repository, &format!("{record}6")).status, 200);
}
