//! Endless indexes, endless lists, and lists that inflate without end.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use testkit::scripted::Reply;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::common::{Destination, Run, Site, resource, urlset};

const CAPABILITIES: &str = "capability=\"capabilitylist\"";
const LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
const LATER: &str = "capability=\"resourcelist\" at=\"2026-02-01T00:00:00Z\"";
/// The deletion limit of a run, set so that only the other limit can prevent deletions.
const DELETES: [&str; 6] = ["--mode", "baseline", "--absent", "delete", "--max-deletes", "100%"];

/// A Source of three stored resources.
struct Case {
    site: Site,
    copy: Destination,
    way_in: String,
}

impl Case {
    async fn new() -> Self {
        let site = Site::start().await;
        let list = [resource(&site.uri("/list.xml"), "capability=\"resourcelist\"")];
        let way_in = site.serve("/caps.xml", urlset(CAPABILITIES, &list));
        let entries: Vec<String> =
            (0..3).map(|n| resource(&site.serve(&format!("/{n}.txt"), n.to_string()), "")).collect();
        site.serve("/list.xml", urlset(LIST, &entries));
        let copy = Destination::directory();
        copy.sync(&way_in).exits(0);
        Self { site, copy, way_in }
    }

    /// The Source now lists this. The run ends with a problem of this reason, and everything stored stays.
    #[track_caller]
    fn ends(&self, list: impl Into<Reply>, reason: &str, options: &[&str]) -> Run {
        self.site.reply("/list.xml", list.into());
        let before = self.copy.ls();
        let run = self.copy.sync_with(&self.way_in, &[&DELETES[..], options].concat()).exits(1);
        let run = run.says(&[&format!("({reason})"), "not in sync"]);
        assert_eq!(run.json()["in_sync"], false, "{run}");
        assert_eq!((run.count("deleted"), run.count("absent")), (0, 0), "{run}");
        assert_eq!(self.copy.ls(), before, "{run}");
        run
    }
}

/// An index of these parts.
fn index(parts: &[String]) -> Reply {
    let document = urlset(LATER, parts).replace("urlset", "sitemapindex");
    Reply::ok(document.replace("<url>", "<sitemap>").replace("</url>", "</sitemap>"))
}

/// An endless server: each index names the next one, and a list goes on until the client closes the connection.
struct Endless {
    address: String,
    serving: JoinHandle<()>,
}

impl Endless {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port on loopback");
        let address = format!("http://{}", listener.local_addr().expect("it listens"));
        let base = address.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, base.clone()));
            }
        });
        Self { address, serving }
    }

    fn uri(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Answers one request. A client that goes away ends it.
async fn answer(mut stream: TcpStream, base: String) {
    let mut head = vec![0; 8 * 1024];
    let read = stream.read(&mut head).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&head[..read]).into_owned();
    let path = text.split(' ').nth(1).unwrap_or_default();
    let (status, first, repeated) = match path.rsplit_once('/') {
        Some(("/index", level)) => {
            let next = level.parse::<u64>().unwrap_or_default() + 1;
            let next = resource(&format!("{base}/index/{next}"), "");
            let index = urlset(LATER, &[next]).replace("urlset", "sitemapindex");
            ("200 OK", index.replace("<url>", "<sitemap>").replace("</url>", "</sitemap>"), None)
        }
        Some((_, "entries")) => {
            ("200 OK", unclosed(), Some(resource(&format!("{base}/other"), "").repeat(100)))
        }
        Some((_, "nothing")) => ("200 OK", unclosed(), Some("<nothing></nothing>\n".repeat(100))),
        _ => ("404 Not Found", String::new(), None),
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nConnection: close\r\n\r\n");
    let mut sent = stream.write_all(format!("{head}{first}").as_bytes()).await;
    while let (Ok(()), Some(repeated)) = (&sent, &repeated) {
        sent = stream.write_all(repeated.as_bytes()).await;
    }
    // The end of the connection ends the body.
    let _ = stream.shutdown().await;
}

/// A list without its end.
fn unclosed() -> String {
    urlset(LATER, &[]).replace("</urlset>\n", "")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_indexes_without_end_is_followed_over_three() {
    let case = Case::new().await;
    let endless = Endless::start().await;
    let first = index(&[resource(&endless.uri("/index/2"), "")]);
    let run = case.ends(first, "limit-index-levels", &[]);
    // The fourth is requested, because it might be a list.
    run.says(&[&endless.uri("/index/4"), "more than 3 indexes"]);
}

#[tokio::test]
async fn a_list_below_three_indexes_is_read() {
    let case = Case::new().await;
    for level in 2..=3 {
        let next = resource(&case.site.uri(&format!("/index-{}.xml", level + 1)), "");
        case.site.reply(&format!("/index-{level}.xml"), index(&[next]));
    }
    let four = case.site.serve("/4.txt", "four");
    case.site.serve("/index-4.xml", urlset(LATER, &[resource(&four, "")]));
    case.site.reply("/list.xml", index(&[resource(&case.site.uri("/index-2.xml"), "")]));
    case.copy.sync_with(&case.way_in, &["--mode", "baseline"]);
    assert_eq!(case.copy.cat(&four), b"four");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_without_end_is_read_as_far_as_entries_are_allowed() {
    let case = Case::new().await;
    let endless = Endless::start().await;
    let part = index(&[resource(&endless.uri("/entries"), "")]);
    // Excluded entries count too.
    let options = ["--max-entries", "2000", "--exclude", "/other$"];
    case.ends(part, "limit-entries", &options).says(&["more than 2000 entries", "--max-entries"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_without_end_and_without_entries_is_read_as_far_as_bytes_are_allowed() {
    let case = Case::new().await;
    let endless = Endless::start().await;
    let part = index(&[resource(&endless.uri("/nothing"), "")]);
    case.ends(part, "limit-document-bytes", &["--max-document-bytes", "300000"]);
}

#[tokio::test]
async fn an_index_of_more_documents_than_are_allowed_is_a_problem_and_some_are_read() {
    let case = Case::new().await;
    let part = |n: u64| {
        case.site.serve(&format!("/part-{n}.xml"), urlset(LATER, &[]));
        resource(&case.site.uri(&format!("/part-{n}.xml")), "")
    };
    let parts: Vec<String> = (0..20).map(part).collect();
    case.ends(index(&parts), "limit-documents", &["--max-documents", "5"]);
    let asked = (0..20).filter(|n| case.site.requests_at(&format!("/part-{n}.xml")) > 0).count();
    assert!((1..=5).contains(&asked), "{asked}");
}

#[tokio::test]
async fn a_list_that_inflates_without_measure_is_refused() {
    let case = Case::new().await;
    let filling = format!("<!--{}-->", "a".repeat(100_000)).repeat(100);
    let bomb = urlset(LATER, &[]).replace("</urlset>", &format!("{filling}</urlset>"));
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(bomb.as_bytes()).expect("memory");
    let bomb = Reply::ok(gzip.finish().expect("memory"));
    case.ends(bomb, "limit-inflation", &["--max-inflation", "100"]);
    // A plan reads it too, within the default, and names what raises that.
    let plan = case.copy.run("plan", &[&case.way_in]).exits(1);
    let unread = plan.stdout.lines().find(|line| line.contains("/list.xml"));
    assert!(unread.is_some_and(|line| line.contains("--max-inflation")), "{plan}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_of_what_has_no_end_is_not_whole() {
    let case = Case::new().await;
    let endless = Endless::start().await;
    for (path, options) in [
        ("/index/2", vec![]),
        ("/entries", vec!["--max-entries", "2000", "--exclude", "/other$"]),
        ("/nothing", vec!["--max-document-bytes", "300000"]),
    ] {
        case.site.reply("/list.xml", index(&[resource(&endless.uri(path), "")]));
        let run =
            case.copy.run("audit", &[&[case.way_in.as_str(), "--json"], &options[..]].concat()).exits(1);
        let found = run.json();
        assert_eq!((&found["in_sync"], &found["extra"]), (&false.into(), &0.into()), "{path}: {run}");
        assert_ne!(found["unread"], 0, "{path}: {run}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_again_is_in_sync_again() {
    let case = Case::new().await;
    let endless = Endless::start().await;
    case.ends(index(&[resource(&endless.uri("/index/2"), "")]), "limit-index-levels", &[]);
    let entries: Vec<String> = (0..3).map(|n| resource(&case.site.uri(&format!("/{n}.txt")), "")).collect();
    case.site.serve("/list.xml", urlset(LATER, &entries));
    case.copy.sync_with(&case.way_in, &["--mode", "baseline"]).exits(0);
    assert_eq!(case.copy.present().len(), 3);
}
