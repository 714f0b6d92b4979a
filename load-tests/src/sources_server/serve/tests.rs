use super::*;
use crate::sources_server::population::address;

async fn connected(port: u16, number: u32) -> TcpStream {
    TcpStream::connect((address(number), port)).await.unwrap()
}

async fn asked(stream: &mut TcpStream, path: &str, more: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n{more}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 64 << 10];
    let read = timeout(Duration::from_secs(5), stream.read(&mut answer)).await.unwrap().unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

/// The first Source of a kind.
fn first(population: Population, kind: Kind) -> u32 {
    population.of_kind(kind).next().unwrap()
}

#[tokio::test]
async fn every_address_is_a_source_of_its_own_on_one_port() {
    let (site, port, _serving) = Site::start(Population::healthy(600, 2)).await.unwrap();
    let mut bodies = Vec::new();
    for number in [0, 1, 599] {
        let mut stream = connected(port, number).await;
        let list = asked(&mut stream, "/resourcelist.xml", "").await;
        assert!(list.contains(&format!("http://{}:{port}/resource-1.txt", address(number))), "{list}");
        bodies.push(asked(&mut stream, "/resource-1.txt", "").await);
    }
    assert!(bodies[0] != bodies[1] && bodies[1] != bodies[2]);
    let counts = site.counts();
    assert_eq!((counts.all().requests, counts.all().full, counts.all().bodies), (6, 6, 3));
    assert_eq!(counts.most_open_at_one, 1);
    let first = site.take_first_requests();
    assert_eq!((first[0].is_some(), first[2].is_some(), first.len()), (true, false, 600));
    assert_eq!(site.take_first_requests(), vec![None; 600]);
}

#[tokio::test]
async fn a_poll_is_answered_with_304_until_a_change_is_published() {
    let (site, port, _serving) = Site::start(Population::healthy(1, 20)).await.unwrap();
    let mut stream = connected(port, 0).await;
    let unchanged = "If-None-Match: \"changes-0\"\r\n";
    assert!(asked(&mut stream, "/changelist.xml", unchanged).await.starts_with("HTTP/1.1 304 "));
    assert_eq!((site.change(0), site.change(0)), (1, 2));
    let list = asked(&mut stream, "/changelist.xml", unchanged).await;
    assert!(list.starts_with("HTTP/1.1 200 ") && list.contains("/resource-1.txt"), "{list}");
    let counts = site.counts().all();
    assert_eq!((counts.not_modified, counts.looks), (1, 1));
}

#[tokio::test]
async fn sources_that_do_not_work_fail_each_in_their_way() {
    let population = Population {
        dead_percent: 1,
        slow_percent: 1,
        unavailable_percent: 1,
        flapping_percent: 1,
        ..Population::healthy(100, 2)
    };
    let (site, port, _serving) = Site::start(population).await.unwrap();

    let mut dead = connected(port, first(population, Kind::Dead)).await;
    dead.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let silent = timeout(Duration::from_millis(200), dead.read(&mut [0; 8])).await;
    assert!(silent.is_err(), "it neither responds nor closes");

    let mut slow = connected(port, first(population, Kind::Slow)).await;
    let head = asked(&mut slow, "/resource-0.txt", "").await;
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    let byte = timeout(Duration::from_secs(5), slow.read(&mut [0; 8])).await.unwrap().unwrap();
    assert_eq!(byte, 1);

    let mut unavailable = connected(port, first(population, Kind::Unavailable)).await;
    let answer = asked(&mut unavailable, "/", "").await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("Retry-After: "), "{answer}");

    let number = first(population, Kind::Flapping);
    let mut closed = connected(port, number).await;
    assert_eq!(closed.read(&mut [0; 8]).await.unwrap_or(0), 0);
    let mut failing = connected(port, number).await;
    assert!(asked(&mut failing, "/", "").await.starts_with("HTTP/1.1 500 "));

    let kinds = site.counts().kinds;
    assert_eq!((kinds[&Kind::Dead].requests, kinds[&Kind::Flapping].connections), (1, 2));
}
