//! An OAI-PMH repository written by the test: numbered records, and faults on command.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};

use jiff::Timestamp;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// The datestamp of the record 0. Each record is an hour later than the one before.
const BEGIN: i64 = 1_767_225_600;
/// The `responseDate` of the first day: after all records.
const TODAY: i64 = BEGIN + 100 * 86_400;

/// The state of a repository.
#[derive(Debug)]
pub(crate) struct State {
    records: BTreeMap<u32, Stored>,
    /// Seconds since 1970 of the next `responseDate`.
    pub(crate) now: i64,
    pub(crate) page: usize,
    pub(crate) deletions: &'static str,
    /// Whether `completeListSize` is told.
    pub(crate) counts: bool,
    /// The next request with a token is told that it expired.
    pub(crate) expire_next: bool,
    /// A token leads to the same page for ever.
    pub(crate) loops: bool,
    /// Each list with this record fails with the status 500.
    pub(crate) fails_with: Option<u32>,
    /// GetRecord of the same fails too.
    pub(crate) is_hopeless: bool,
    /// All lists fail whose records have a datestamp in this time.
    pub(crate) dark: Option<(i64, i64)>,
    /// This record is cut within each list.
    pub(crate) broken: Option<u32>,
    /// Paths and queries, in order.
    requests: Vec<String>,
}

#[derive(Debug, Clone)]
struct Stored {
    datestamp: i64,
    title: String,
    is_deleted: bool,
}

/// A running repository.
#[derive(Debug)]
pub(crate) struct Repository {
    state: Arc<Mutex<State>>,
    url: String,
}

impl Repository {
    /// Starts one with this many records, 10 a page, which tells all deletions.
    pub(crate) async fn start(records: u32) -> Self {
        let stored = |n: u32| Stored {
            datestamp: BEGIN + 3_600 * i64::from(n),
            title: format!("Title {n}"),
            is_deleted: false,
        };
        let state = Arc::new(Mutex::new(State {
            records: (0..records).map(|n| (n, stored(n))).collect(),
            now: TODAY,
            page: 10,
            deletions: "persistent",
            counts: true,
            expire_next: false,
            loops: false,
            fails_with: None,
            is_hopeless: false,
            dark: None,
            broken: None,
            requests: Vec::new(),
        }));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port on loopback");
        let port = listener.local_addr().expect("it is bound").port();
        let url = format!("http://127.0.0.1:{port}/oai");
        let (shared, base) = (Arc::clone(&state), url.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared), base.clone()));
            }
        });
        Self { state, url }
    }

    /// The base URL.
    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// The URI of a record.
    pub(crate) fn uri(&self, n: u32) -> String {
        format!("{}?verb=GetRecord&identifier=oai%3At%3A{n}&metadataPrefix=oai_dc", self.url)
    }

    pub(crate) fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
    }

    /// A day later, these records have another title.
    pub(crate) fn change(&self, numbers: &[u32], title: &str) {
        self.set(|state| {
            state.now += 86_400;
            for n in numbers {
                let stored = Stored { datestamp: state.now - 60, title: title.to_owned(), is_deleted: false };
                state.records.insert(*n, stored);
            }
        });
    }

    /// A day later, these records are shown as deleted.
    pub(crate) fn delete(&self, numbers: &[u32]) {
        self.change(numbers, "");
        self.set(|state| {
            numbers.iter().for_each(|n| state.records.get_mut(n).expect("a record").is_deleted = true);
        });
    }

    /// A day later, these records are not there any more.
    pub(crate) fn lose(&self, numbers: &[u32]) {
        self.set(|state| {
            state.now += 86_400;
            state.records.retain(|n, _| !numbers.contains(n));
        });
    }

    /// The requests with this verb since the last call.
    pub(crate) fn take_requests(&self, verb: &str) -> Vec<String> {
        let wanted = format!("verb={verb}");
        let all = std::mem::take(&mut self.state().requests);
        all.into_iter().filter(|request| request.contains(&wanted)).collect()
    }

    /// The datestamp of a record.
    pub(crate) fn datestamp(n: u32) -> i64 {
        BEGIN + 3_600 * i64::from(n)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }
}

/// Answers the requests of one connection.
async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>, base: String) {
    let mut head = Vec::new();
    let mut piece = [0; 4_096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut piece).await {
            Ok(n @ 1..) => head.extend_from_slice(&piece[..n]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let (status, body) = if path.starts_with("/oai") {
        answer(&mut state.lock().expect("no holder panics"), &base, &path)
    } else {
        (404, String::new())
    };
    let answer = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: text/xml; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

fn answer(state: &mut State, base: &str, path: &str) -> (u16, String) {
    state.requests.push(path.to_owned());
    let url = Url::parse(&format!("http://h{path}")).expect("a URL");
    let arguments: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
    let argument = |name: &str| arguments.get(name).map(String::as_str);
    let verb = argument("verb").unwrap_or_default();
    let inner = match verb {
        "Identify" => Ok(identify(state, base)),
        "ListMetadataFormats" => Ok(FORMATS.to_owned()),
        "ListSets" => Err(error("noSetHierarchy")),
        "ListRecords" | "ListIdentifiers" => match list(state, verb, &argument) {
            Ok(list) => Ok(list),
            Err(Some(error)) => Err(error),
            Err(None) => return (500, "it failed".to_owned()),
        },
        "GetRecord" => {
            let n = argument("identifier").and_then(|id| id.rsplit(':').next()?.parse().ok());
            match n.and_then(|n: u32| Some((n, state.records.get(&n)?.clone()))) {
                Some((n, _)) if state.is_hopeless && state.fails_with == Some(n) => {
                    return (500, "it failed".to_owned());
                }
                Some((n, stored)) => Ok(format!("<GetRecord>{}</GetRecord>", record(n, &stored))),
                None => Err(error("idDoesNotExist")),
            }
        }
        _ => Err(error("badVerb")),
    };
    let (Ok(inner) | Err(inner)) = inner;
    let now = text(state.now);
    state.now += 1;
    let document = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
         <responseDate>{now}</responseDate><request verb=\"{verb}\">{base}</request>{inner}</OAI-PMH>\n"
    );
    (200, document)
}

/// A page of a list; an error of the protocol, or none for a failure of the server.
fn list<'a>(
    state: &mut State,
    verb: &str,
    argument: &impl Fn(&str) -> Option<&'a str>,
) -> Result<String, Option<String>> {
    let token = argument("resumptionToken");
    if token.is_some() && std::mem::take(&mut state.expire_next) {
        return Err(Some(error("badResumptionToken")));
    }
    // offset, from, until
    let parts: Vec<&str> = token.map(|token| token.split('|').collect()).unwrap_or_default();
    let part = |n: usize| parts.get(n).copied().filter(|part| !part.is_empty());
    let offset: usize = part(0).and_then(|offset| offset.parse().ok()).unwrap_or_default();
    let from = argument("from").or(part(1)).unwrap_or_default().to_owned();
    let until = argument("until").or(part(2)).unwrap_or_default().to_owned();
    let second = |text: &str| text.parse::<Timestamp>().ok().map(|time| time.as_second());
    let is_inside = |stored: &Stored| {
        second(&from).is_none_or(|from| stored.datestamp >= from)
            && second(&until).is_none_or(|until| stored.datestamp <= until)
    };
    let mut all: Vec<(u32, Stored)> = state
        .records
        .iter()
        .filter(|(_, stored)| is_inside(stored))
        .map(|(n, stored)| (*n, stored.clone()))
        .collect();
    all.sort_by_key(|(n, stored)| (stored.datestamp, *n));
    let page: Vec<&(u32, Stored)> = all.iter().skip(offset).take(state.page).collect();
    let is_records = verb == "ListRecords";
    let is_dark =
        |stored: &Stored| state.dark.is_some_and(|(from, until)| (from..=until).contains(&stored.datestamp));
    let fails = |n: u32, stored: &Stored| is_records && state.fails_with == Some(n) || is_dark(stored);
    if page.iter().any(|(n, stored)| fails(*n, stored)) {
        return Err(None);
    }
    if page.is_empty() {
        return Err(Some(error("noRecordsMatch")));
    }
    let mut body = String::new();
    for (n, stored) in &page {
        match is_records {
            false => body.push_str(&header(*n, stored)),
            true if state.broken == Some(*n) => {
                let whole = record(*n, stored);
                body.push_str(&whole.replace("</dc:title>", "</dc:titel>"));
            }
            true => body.push_str(&record(*n, stored)),
        }
    }
    let next = offset + page.len();
    let size = if state.counts { format!(" completeListSize=\"{}\"", all.len()) } else { String::new() };
    let goes_on = next < all.len();
    let next = if state.loops && offset > 0 { offset } else { next };
    let token = if goes_on || state.loops { format!("{next}|{from}|{until}") } else { String::new() };
    let _ = write!(body, "<resumptionToken{size}>{token}</resumptionToken>");
    Ok(format!("<{verb}>{body}</{verb}>"))
}

const FORMATS: &str = "<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix>\
     <schema>http://www.openarchives.org/OAI/2.0/oai_dc.xsd</schema>\
     <metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace></metadataFormat></ListMetadataFormats>";

fn identify(state: &State, base: &str) -> String {
    let (earliest, deletions) = (text(BEGIN), state.deletions);
    format!(
        "<Identify><repositoryName>A test</repositoryName><baseURL>{base}</baseURL><protocolVersion>2.0</protocolVersion>\
         <adminEmail>a@example.org</adminEmail><earliestDatestamp>{earliest}</earliestDatestamp>\
         <deletedRecord>{deletions}</deletedRecord><granularity>YYYY-MM-DDThh:mm:ssZ</granularity></Identify>"
    )
}

fn header(n: u32, stored: &Stored) -> String {
    let status = if stored.is_deleted { " status=\"deleted\"" } else { "" };
    let datestamp = text(stored.datestamp);
    format!("<header{status}><identifier>oai:t:{n}</identifier><datestamp>{datestamp}</datestamp></header>")
}

fn record(n: u32, stored: &Stored) -> String {
    let header = header(n, stored);
    if stored.is_deleted {
        return format!("<record>{header}</record>");
    }
    let title = &stored.title;
    format!(
        "<record>{header}<metadata><oai_dc:dc xmlns:oai_dc=\"http://www.openarchives.org/OAI/2.0/oai_dc/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><dc:title>{title}</dc:title></oai_dc:dc></metadata></record>"
    )
}

fn error(code: &str) -> String {
    format!("<error code=\"{code}\">said the test</error>")
}

fn text(second: i64) -> String {
    Timestamp::from_second(second).expect("a time").to_string()
}
