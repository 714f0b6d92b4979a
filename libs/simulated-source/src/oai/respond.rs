//! The answers to all verbs, as text.

use std::time::Duration;

use super::arguments::{Asked, Refusal, judge};
use super::fault::{Faults, RepositoryFault as Fault, value};
use super::inner::{Changing, Inner};
use super::list::{self, Page, Query, Row, SetOf};
use super::spec::{Deletions, Unit};
use super::token::{Resumed, Tokens};
use super::xml::{LATIN1_MARK, Xml};
use crate::clock::SimTime;

/// Prefix, schema and namespace of the formats.
const FORMATS: [(&str, &str, &str); 4] = [
    (
        "oai_dc",
        "http://www.openarchives.org/OAI/2.0/oai_dc.xsd",
        "http://www.openarchives.org/OAI/2.0/oai_dc/",
    ),
    ("mets", "http://www.loc.gov/standards/mets/mets.xsd", "http://www.loc.gov/METS/"),
    ("xoai", "http://www.lyncode.com/xsd/xoai.xsd", "http://www.lyncode.com/xoai"),
    (
        "oai_openaire",
        "https://www.openaire.eu/schema/repo-lit/4.0/openaire.xsd",
        "http://namespace.openaire.eu/schema/oaire/",
    ),
];

/// What is sent.
pub(super) enum Reply {
    /// An answer with its status.
    Xml(String, u16),
    /// A page of HTML with its status.
    Html(u16),
    /// Nothing but a status.
    Status(u16),
}

/// Answers a request.
pub(super) fn respond(
    inner: &Inner,
    changing: &mut Changing,
    arguments: &[(String, String)],
    raw: &str,
) -> Reply {
    let asked = judge(inner, &changing.world, &changing.faults, arguments, raw);
    let reply = asked.and_then(|asked| match asked {
        Asked::Identify => Ok(identify(inner, changing, arguments)),
        Asked::Formats => Ok(formats(inner, changing, arguments)),
        Asked::Sets => Ok(sets(inner, changing, arguments)),
        Asked::Record { index, prefix } => record(inner, changing, arguments, index, &prefix),
        Asked::First(query) => {
            let page = list::first(inner, &changing.world, &changing.faults, &query);
            if value!(changing.faults, WindowTooLarge).is_some_and(|most| page.size > most) {
                return Ok(Reply::Html(413));
            }
            if page.rows.is_empty() && page.next.is_none() {
                return Err(nothing(&changing.faults));
            }
            Ok(listed(inner, changing, arguments, &query, page, None))
        }
        Asked::Next { verb, token } => next(inner, changing, arguments, &verb, &token),
    });
    reply.unwrap_or_else(|(code, message)| error(inner, changing, arguments, code, &message))
}

fn nothing(faults: &Faults) -> Refusal {
    let code = if faults.has(&Fault::WrongErrorCode) { "cannotDisseminateFormat" } else { "noRecordsMatch" };
    (code, "nothing matches".to_owned())
}

fn error(
    inner: &Inner,
    changing: &Changing,
    arguments: &[(String, String)],
    code: &str,
    message: &str,
) -> Reply {
    let echo: &[(String, String)] = if matches!(code, "badVerb" | "badArgument") { &[] } else { arguments };
    let mut xml = Xml::new(inner, &changing.world, &changing.faults, echo);
    xml.error(code, message);
    Reply::Xml(xml.end(), value!(changing.faults, ErrorStatus).unwrap_or(200))
}

fn identify(inner: &Inner, changing: &Changing, arguments: &[(String, String)]) -> Reply {
    let Changing { world, faults, .. } = changing;
    let mut xml = Xml::new(inner, world, faults, arguments);
    xml.open("Identify");
    let is_latin1 = value!(faults, Latin1).is_some();
    let name = if is_latin1 {
        format!("A simulated d{LATIN1_MARK}pot")
    } else {
        "A simulated repository".to_owned()
    };
    xml.line("repositoryName", &name);
    xml.line("baseURL", &value!(faults, OtherBaseUrl).unwrap_or_else(|| inner.base()));
    xml.line("protocolVersion", "2.0");
    xml.line("adminEmail", "admin@sim.example.org");
    let earliest = world.get(0).map_or(SimTime::START, |state| state.modified);
    let earliest = if faults.has(&Fault::LateEarliestDatestamp) { world.now() } else { earliest };
    let earliest = xml.date(earliest);
    xml.line("earliestDatestamp", &earliest);
    xml.line(
        "deletedRecord",
        match inner.spec.deletions {
            Deletions::No => "no",
            Deletions::Transient => "transient",
            Deletions::Persistent => "persistent",
        },
    );
    let granularity = match inner.spec.unit {
        Unit::Day => "YYYY-MM-DD",
        Unit::Second => "YYYY-MM-DDThh:mm:ssZ",
    };
    let granularity = value!(faults, OddGranularity).unwrap_or_else(|| granularity.to_owned());
    if !granularity.is_empty() {
        xml.line("granularity", &granularity);
    }
    if inner.spec.gzip {
        xml.line("compression", "gzip");
    }
    xml.close("Identify");
    Reply::Xml(xml.end(), 200)
}

fn formats(inner: &Inner, changing: &Changing, arguments: &[(String, String)]) -> Reply {
    let mut xml = Xml::new(inner, &changing.world, &changing.faults, arguments);
    xml.open("ListMetadataFormats");
    let offered = FORMATS.iter().filter(|(prefix, _, _)| inner.spec.offers(prefix));
    for (prefix, schema, namespace) in offered {
        xml.open("metadataFormat");
        xml.line("metadataPrefix", prefix);
        xml.line("schema", schema);
        xml.line("metadataNamespace", namespace);
        xml.close("metadataFormat");
    }
    xml.close("ListMetadataFormats");
    Reply::Xml(xml.end(), 200)
}

fn sets(inner: &Inner, changing: &Changing, arguments: &[(String, String)]) -> Reply {
    let mut xml = Xml::new(inner, &changing.world, &changing.faults, arguments);
    xml.open("ListSets");
    let numbers = (0..inner.spec.sets).filter(|number| !changing.world.removed_sets.contains(number));
    let members = numbers.map(|number| (format!("group:{number}"), format!("Group {number}")));
    for (spec, name) in std::iter::once(("group".to_owned(), "All groups".to_owned())).chain(members) {
        xml.open("set");
        xml.line("setSpec", &spec);
        xml.line("setName", &name);
        xml.close("set");
    }
    xml.close("ListSets");
    let mut text = xml.end();
    if changing.faults.has(&Fault::SetsUnreadable) {
        let mut half = text.len() / 2;
        while !text.is_char_boundary(half) {
            half -= 1;
        }
        text.truncate(half);
    }
    Reply::Xml(text, 200)
}

fn record(
    inner: &Inner,
    changing: &Changing,
    arguments: &[(String, String)],
    index: u64,
    prefix: &str,
) -> Result<Reply, Refusal> {
    let Changing { world, faults, .. } = changing;
    let unknown = || ("idDoesNotExist", "there is no such item".to_owned());
    let state = *world.get(index).ok_or_else(unknown)?;
    let hides = faults.has(&Fault::DeletedUnknown) || faults.has(&Fault::PromisedDeletesMissing);
    if state.deleted && (hides || !list::shows_deleted(inner) || state.forgotten) {
        return Err(unknown());
    }
    if let Some(status) = failing(faults, |failing| failing == index) {
        return Ok(Reply::Status(status));
    }
    let mut xml = Xml::new(inner, world, faults, arguments);
    xml.open("GetRecord");
    xml.record(&Row { index, state, deleted: state.deleted }, prefix);
    xml.close("GetRecord");
    Ok(Reply::Xml(xml.end(), 200))
}

/// The status of a page with a failing record.
fn failing(faults: &Faults, has: impl Fn(u64) -> bool) -> Option<u16> {
    faults.find(|fault| match fault {
        Fault::FailingRecord(index, status) if has(*index) => Some(*status),
        _ => None,
    })
}

fn next(
    inner: &Inner,
    changing: &mut Changing,
    arguments: &[(String, String)],
    verb: &str,
    token: &str,
) -> Result<Reply, Refusal> {
    let unknown = || ("badResumptionToken", "the token is unknown or has expired".to_owned());
    let (mut query, cursor) = match changing.tokens.resume(token, &changing.faults) {
        Resumed::Bad => return Err(unknown()),
        Resumed::Empty(query) => {
            let page = Page { rows: Vec::new(), before: 0, size: 0, number: u64::MAX, next: None };
            return Ok(listed(inner, changing, arguments, &query, page, Some(token)));
        }
        Resumed::At(query, _) if query.verb != verb => return Err(unknown()),
        Resumed::At(query, cursor) => (query, cursor),
    };
    let deep = changing.faults.find(|fault| match fault {
        Fault::DeepPageFails(after, status) if cursor.delivered >= *after => Some(*status),
        _ => None,
    });
    if let Some(status) = deep {
        return Ok(Reply::Status(status));
    }
    if changing.faults.has(&Fault::TokenLosesSet) {
        query.set = SetOf::All;
    }
    let page = list::page(inner, &changing.world, &changing.faults, &query, cursor);
    Ok(listed(inner, changing, arguments, &query, page, Some(token)))
}

/// A page of a list, with its token. `sent`: the token that it was asked with.
fn listed(
    inner: &Inner,
    changing: &mut Changing,
    arguments: &[(String, String)],
    query: &Query,
    page: Page,
    sent: Option<&str>,
) -> Reply {
    if let Some(status) = failing(&changing.faults, |index| page.rows.iter().any(|row| row.index == index)) {
        // A list of headers shows it.
        if query.verb == "ListRecords" {
            return Reply::Status(status);
        }
    }
    let Changing { world, faults, tokens, .. } = changing;
    if faults.has(&Fault::EmptyLists) {
        let mut xml = Xml::new(inner, world, faults, arguments);
        xml.open(&query.verb);
        xml.close(&query.verb);
        return Reply::Xml(xml.end(), 200);
    }
    let mut token = next_token(faults, tokens, query, &page, sent);
    if faults.has(&Fault::EncodedToken) {
        token = token.map(|token| token.bytes().map(encoded).collect());
    }
    let mut xml = Xml::new(inner, world, faults, arguments);
    xml.open(&query.verb);
    for row in &page.rows {
        if query.verb == "ListRecords" { xml.record(row, &query.prefix) } else { xml.header(row) }
    }
    let is_part = sent.is_some() || token.is_some();
    if is_part && !(token.is_none() && value!(faults, TokenMissing).is_some()) {
        let mut attributes = if inner.spec.sizes {
            let drift = value!(faults, WrongCompleteListSize).unwrap_or(0);
            let size = page.size.saturating_add_signed(drift);
            format!(" completeListSize=\"{size}\" cursor=\"{}\"", page.before)
        } else {
            String::new()
        };
        let life: Option<Duration> = value!(faults, ShortTokenLife);
        if let Some(life) = life.filter(|_| token.is_some()) {
            let expires = world.now().plus(life.as_secs().cast_signed());
            attributes.push_str(&format!(" expirationDate=\"{expires}\""));
        }
        xml.token(token.as_deref().unwrap_or_default(), &attributes);
    }
    xml.close(&query.verb);
    Reply::Xml(xml.end(), 200)
}

/// The token of the page behind this one.
fn next_token(
    faults: &Faults,
    tokens: &mut Tokens,
    query: &Query,
    page: &Page,
    sent: Option<&str>,
) -> Option<String> {
    if value!(faults, TokenMissing).is_some_and(|number| page.number >= number) {
        return None;
    }
    if let Some(number) = value!(faults, TokenLoop)
        && page.number >= number
    {
        let again = list::Cursor { size: page.size, page: number, ..list::Cursor::default() };
        return Some(tokens.issue_loop(query, again));
    }
    match page.next {
        Some(cursor) => Some(tokens.issue(query, cursor, faults, sent)),
        None => {
            tokens.finish(sent);
            let after_end = faults.find(|fault| match fault {
                Fault::TokenAfterEnd { error } => Some(*error),
                _ => None,
            });
            after_end.filter(|_| page.number != u64::MAX).map(|error| tokens.issue_end(query, error))
        }
    }
}

/// A byte as a percent-encoded query has it.
fn encoded(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
}
