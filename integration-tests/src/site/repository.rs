//! The Source as an OAI-PMH repository: its answers, written by hand as an independent reading of the protocol.

use std::fmt::Write as _;

use bytes::Bytes;
use jiff::Timestamp;

use super::{Site, State, Version, second};

/// How a Source speaks OAI-PMH.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// Records of a page.
    pub page: usize,
    /// Whether datestamps are seconds, or days.
    pub by_seconds: bool,
    /// Whether it shows deleted records, or they vanish.
    pub shows_deleted: bool,
    /// Whether its tokens say how many records the list has.
    pub sizes: bool,
    /// How many seconds a token lives.
    pub token_life: u32,
    /// Whether a list leaves out the records of `from`.
    pub leaves_out_from: bool,
    /// Whether a list leaves out the records of `until`.
    pub leaves_out_until: bool,
}

/// A list, as a request or a token asks for it.
struct List {
    from: Option<i64>,
    until: Option<i64>,
    /// The first record that may come next.
    next: u32,
    /// Records that came before.
    delivered: usize,
    /// Records of the list when it began.
    size: usize,
    /// When it began, in seconds.
    began: i64,
}

/// The canonical document of a version's metadata.
pub(super) fn document(text: &str) -> Bytes {
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", element(text)).into()
}

fn element(text: &str) -> String {
    format!("<note xmlns=\"http://source.example/note\">{text}</note>")
}

fn identifier(number: u32) -> String {
    format!("oai:source.example:{number}")
}

impl Site {
    /// The URI of a record.
    pub(super) fn record_uri(&self, number: u32) -> String {
        let identifier = identifier(number).replace(':', "%3A");
        format!("{}/oai?verb=GetRecord&identifier={identifier}&metadataPrefix=oai_dc", self.base())
    }

    /// The answer to a request of the protocol.
    pub(super) fn protocol(&self, repository: &Repository, query: &str, now: Timestamp) -> Bytes {
        let asked: Vec<(String, String)> =
            url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let value = |name: &str| asked.iter().find(|(is, _)| is == name).map(|(_, value)| value.as_str());
        let verb = value("verb").unwrap_or_default();
        let mut state = self.state();
        let answered = match verb {
            "Identify" => Ok(self.identify(repository, &state)),
            "ListMetadataFormats" => Ok("<metadataFormat><metadataPrefix>oai_dc</metadataPrefix>\
                 <schema>http://source.example/note.xsd</schema>\
                 <metadataNamespace>http://source.example/note</metadataNamespace></metadataFormat>"
                .to_owned()),
            "ListSets" => Err("noSetHierarchy"),
            "GetRecord" => {
                let number =
                    value("identifier").and_then(|identifier| identifier.rsplit(':').next()?.parse().ok());
                let version = number.and_then(|number| Some((number, state.resource(number)?)));
                let shown = version.filter(|(_, version)| version.body.is_some() || repository.shows_deleted);
                shown
                    .map(|(number, version)| record(repository, number, version, true))
                    .ok_or("idDoesNotExist")
            }
            "ListRecords" | "ListIdentifiers" => {
                let list = match value("resumptionToken") {
                    Some(token) => resumed(token, now).ok_or("badResumptionToken"),
                    None => {
                        first(repository, &state, value("from"), value("until"), now).ok_or("badArgument")
                    }
                };
                list.and_then(|list| {
                    let began = Timestamp::from_second(list.began).unwrap_or(now);
                    state.oldest_list = Some(state.oldest_list.map_or(began, |oldest| oldest.min(began)));
                    page(repository, &state, list, verb == "ListRecords", now)
                })
            }
            _ => Err("badVerb"),
        };
        let content = match answered {
            Ok(content) => format!("<{verb}>{content}</{verb}>"),
            Err(code) => format!("<error code=\"{code}\">as it is</error>"),
        };
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\">\
             <responseDate>{}</responseDate><request>{}/oai</request>{content}</OAI-PMH>",
            date(now, true),
            self.base()
        )
        .into()
    }

    fn identify(&self, repository: &Repository, state: &State) -> String {
        let earliest = state.resources.values().filter_map(|versions| Some(versions.first()?.at)).min();
        let earliest = earliest.unwrap_or(Timestamp::UNIX_EPOCH);
        format!(
            "<repositoryName>A Source</repositoryName><baseURL>{}/oai</baseURL>\
             <protocolVersion>2.0</protocolVersion><adminEmail>admin@source.example</adminEmail>\
             <earliestDatestamp>{}</earliestDatestamp><deletedRecord>{}</deletedRecord>\
             <granularity>{}</granularity>",
            self.base(),
            date(earliest, repository.by_seconds),
            if repository.shows_deleted { "persistent" } else { "no" },
            if repository.by_seconds { "YYYY-MM-DDThh:mm:ssZ" } else { "YYYY-MM-DD" },
        )
    }
}

/// A time as the protocol writes it.
fn date(time: Timestamp, by_seconds: bool) -> String {
    let text = second(time).to_string();
    if by_seconds { text } else { text[..10].to_owned() }
}

/// The number of a time's second, or day.
fn units(time: Timestamp, by_seconds: bool) -> i64 {
    time.as_second().div_euclid(if by_seconds { 1 } else { 86_400 })
}

/// A bound of a list. Days are understood by every repository, seconds by some.
fn bound(repository: &Repository, text: &str, is_until: bool) -> Option<i64> {
    if text.len() == 10 {
        let day: Timestamp = format!("{text}T00:00:00Z").parse().ok()?;
        let is_last_second = is_until && repository.by_seconds;
        return Some(units(day, repository.by_seconds) + if is_last_second { 86_399 } else { 0 });
    }
    repository.by_seconds.then(|| text.parse().ok().map(|time: Timestamp| time.as_second())).flatten()
}

fn first(
    repository: &Repository,
    state: &State,
    from: Option<&str>,
    until: Option<&str>,
    now: Timestamp,
) -> Option<List> {
    let read = |text: Option<&str>, is_until| match text {
        Some(text) => bound(repository, text, is_until).map(Some),
        None => Some(None),
    };
    let (from, until) = (read(from, false)?, read(until, true)?);
    let mut list = List { from, until, next: 0, delivered: 0, size: 0, began: now.as_second() };
    list.size = rows(repository, state, &list).count();
    Some(list)
}

/// The list that a token leads to, if it is not too old.
fn resumed(token: &str, now: Timestamp) -> Option<List> {
    let mut parts = token.split('!').map(|part| part.parse::<i64>().ok());
    let mut number = || parts.next();
    let (from, until) = (number()?, number()?);
    let (next, delivered, size, began, dies) = (number()??, number()??, number()??, number()??, number()??);
    (now.as_second() <= dies).then_some(List {
        from,
        until,
        next: next.try_into().ok()?,
        delivered: delivered.try_into().ok()?,
        size: size.try_into().ok()?,
        began,
    })
}

/// The records that a list has still.
fn rows<'a>(
    repository: &'a Repository,
    state: &'a State,
    list: &List,
) -> impl Iterator<Item = (u32, &'a Version)> {
    let List { from, until, next, .. } = *list;
    state.resources.range(next..).filter_map(move |(number, versions)| {
        let version = versions.last()?;
        let at = units(version.at, repository.by_seconds);
        let is_shown = version.body.is_some() || repository.shows_deleted;
        let is_within = from.is_none_or(|from| from + i64::from(repository.leaves_out_from) <= at)
            && until.is_none_or(|until| at + i64::from(repository.leaves_out_until) <= until);
        (is_shown && is_within).then_some((*number, version))
    })
}

fn page(
    repository: &Repository,
    state: &State,
    list: List,
    is_whole: bool,
    now: Timestamp,
) -> Result<String, &'static str> {
    let found: Vec<_> = rows(repository, state, &list).take(repository.page + 1).collect();
    if found.is_empty() && list.delivered == 0 {
        return Err("noRecordsMatch");
    }
    let rows = &found[..found.len().min(repository.page)];
    let mut text: String =
        rows.iter().map(|(number, version)| record(repository, *number, version, is_whole)).collect();
    if let Some((last, _)) = rows.last().filter(|_| found.len() > rows.len()) {
        let bound = |bound: Option<i64>| bound.map_or(String::new(), |bound| bound.to_string());
        let size =
            if repository.sizes { format!(" completeListSize=\"{}\"", list.size) } else { String::new() };
        let _ = write!(
            text,
            "<resumptionToken{size}>{}!{}!{}!{}!{}!{}!{}</resumptionToken>",
            bound(list.from),
            bound(list.until),
            last + 1,
            list.delivered + rows.len(),
            list.size,
            list.began,
            now.as_second() + i64::from(repository.token_life),
        );
    }
    Ok(text)
}

/// A record, or its header alone.
fn record(repository: &Repository, number: u32, version: &Version, is_whole: bool) -> String {
    let (identifier, at) = (identifier(number), date(version.at, repository.by_seconds));
    let header = |status: &str| {
        format!("<header{status}><identifier>{identifier}</identifier><datestamp>{at}</datestamp></header>")
    };
    let Some(body) = &version.body else {
        let header = header(" status=\"deleted\"");
        return if is_whole { format!("<record>{header}</record>") } else { header };
    };
    if !is_whole {
        return header("");
    }
    let text = String::from_utf8_lossy(body);
    let element = text.split_once('\n').map_or("", |(_, element)| element);
    format!("<record>{}<metadata>{element}</metadata></record>", header(""))
}
