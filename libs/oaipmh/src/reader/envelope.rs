//! What an answer says beside its items: one small element each.

use resourcesync::{Datetime, Precision, Zone};

use super::record::message;
use crate::answer::{Answer, DeletedRecord, Identify, RequestEcho};
use crate::error::{BadReason, LimitKind};
use crate::events::{Events, Tag, Token};
use crate::granularity::Granularity;
use crate::protocol_error::{ErrorCode, ProtocolError};
use crate::quirk::Quirk;
use crate::scope::split;
use crate::token::{Resumption, Token as ResumptionToken};

/// More `error` elements mean nothing.
pub(super) const MAX_ERRORS: usize = 100;
/// More addresses, compressions or descriptions are left out.
const MAX_VALUES: usize = 100;
/// Longer tokens fail in many servers' request lines.
const LONG_TOKEN_BYTES: usize = 2_000;

/// Why an element beside the items ends the reading.
pub(super) enum Fatal {
    Bad(BadReason),
    Limit(LimitKind),
}

impl From<BadReason> for Fatal {
    fn from(reason: BadReason) -> Self {
        Self::Bad(reason)
    }
}

/// Reads a child of the root element, or of `Identify`, into the answer.
pub(super) fn read(events: &mut Events<'_>, answer: &mut Answer, max_token: usize) -> Result<(), Fatal> {
    let Token::Open(tag) = events.next()? else { return Err(Fatal::Bad(events.cut())) };
    match events.oai_name(&tag) {
        Some("responseDate") => response_date(events, &tag, answer)?,
        Some("request") => request(events, &tag, answer)?,
        Some("error") => {
            if answer.errors.len() >= MAX_ERRORS {
                return Err(Fatal::Limit(LimitKind::Errors(MAX_ERRORS)));
            }
            error(events, &tag, answer)?;
        }
        Some("resumptionToken") => resumption(events, &tag, answer, max_token)?,
        Some(name) => {
            if let Some(identify) = &mut answer.identify {
                identify_field(events, name, &tag, identify)?;
            } else {
                events.skip(&tag)?;
            }
        }
        None => events.skip(&tag)?,
    }
    Ok(())
}

fn response_date(events: &mut Events<'_>, tag: &Tag<'_>, answer: &mut Answer) -> Result<(), BadReason> {
    let text = value(events, tag)?;
    match Datetime::parse_lenient(&text) {
        Ok((time, quirks)) => {
            let plain =
                quirks.is_empty() && time.precision() == Precision::Second && time.zone() == Zone::Utc;
            if !plain {
                events.quirks.insert(Quirk::OddResponseDate);
            }
            answer.response_date.get_or_insert(time);
        }
        Err(_) => events.quirks.insert(Quirk::OddResponseDate),
    }
    Ok(())
}

fn request<'x>(events: &mut Events<'x>, tag: &Tag<'x>, answer: &mut Answer) -> Result<(), BadReason> {
    let mut arguments = Vec::new();
    let limit = events.limits().max_field_bytes;
    events.attributes(tag, |_, name, value| {
        if value.len() <= limit {
            arguments.push((name.to_owned(), value.into_owned()));
        }
        Ok(())
    })?;
    let base_url = value(events, tag)?;
    answer.request = RequestEcho { base_url, arguments };
    Ok(())
}

fn error<'x>(events: &mut Events<'x>, tag: &Tag<'x>, answer: &mut Answer) -> Result<(), BadReason> {
    let mut code = String::new();
    events.attributes(tag, |_, name, value| {
        if name == "code" {
            code = message(&value);
        }
        Ok(())
    })?;
    let text = value(events, tag)?;
    let code = ErrorCode::read(&code);
    if matches!(code, ErrorCode::Other(_)) {
        events.quirks.insert(Quirk::UnknownErrorCode);
    }
    answer.errors.push(ProtocolError { code, message: message(&text) });
    Ok(())
}

fn resumption<'x>(
    events: &mut Events<'x>,
    tag: &Tag<'x>,
    answer: &mut Answer,
    max_token: usize,
) -> Result<(), Fatal> {
    let mut found = Resumption::default();
    events.attributes(tag, |events, name, value| {
        let mut number = |slot: &mut Option<u64>| match value.trim() {
            "" => {}
            text => match text.parse() {
                Ok(number) => *slot = Some(number),
                Err(_) => events.quirks.insert(Quirk::UnreadableNumber),
            },
        };
        match name {
            "completeListSize" => number(&mut found.complete_list_size),
            "cursor" => number(&mut found.cursor),
            "expirationDate" => {
                found.expires = Datetime::parse_lenient(&value).ok().map(|(time, _)| time);
            }
            _ => {}
        }
        Ok(())
    })?;
    let text = long_value(events, tag, max_token)?.ok_or(Fatal::Limit(LimitKind::TokenBytes(max_token)))?;
    if text.len() > LONG_TOKEN_BYTES {
        events.quirks.insert(Quirk::TokenTooLong);
    }
    found.token = ResumptionToken::new(&text);
    // A second token would be another list's.
    answer.resumption.get_or_insert(found);
    Ok(())
}

fn identify_field<'x>(
    events: &mut Events<'x>,
    name: &str,
    tag: &Tag<'x>,
    identify: &mut Identify,
) -> Result<(), BadReason> {
    match name {
        "repositoryName" => identify.repository_name = value(events, tag)?,
        "baseURL" => identify.base_url = value(events, tag)?,
        "protocolVersion" => identify.protocol_version = value(events, tag)?,
        "adminEmail" => add(&mut identify.admin_emails, value(events, tag)?),
        "compression" => add(&mut identify.compression, value(events, tag)?),
        "earliestDatestamp" => {
            let text = value(events, tag)?;
            match Datetime::parse_lenient(&text) {
                Ok((time, quirks)) => {
                    if !quirks.is_empty() || time.precision() == Precision::Subsecond {
                        events.quirks.insert(Quirk::OddDatestamp);
                    }
                    identify.earliest_datestamp = Some(time);
                }
                Err(_) => events.quirks.insert(Quirk::OddDatestamp),
            }
        }
        "deletedRecord" => identify.deleted_record = DeletedRecord::read(&value(events, tag)?),
        "granularity" => {
            let (granularity, quirk) = Granularity::read(&value(events, tag)?);
            identify.granularity = granularity;
            quirk.into_iter().for_each(|quirk| events.quirks.insert(quirk));
        }
        "description" => {
            if let Some(namespace) = first_namespace(events, tag)? {
                add(&mut identify.descriptions, namespace);
            }
        }
        _ => events.skip(tag)?,
    }
    Ok(())
}

fn add(values: &mut Vec<String>, value: String) {
    if !value.is_empty() && values.len() < MAX_VALUES {
        values.push(value);
    }
}

/// The namespace of the first element within the one whose start tag was read.
fn first_namespace<'x>(events: &mut Events<'x>, tag: &Tag<'x>) -> Result<Option<String>, BadReason> {
    if tag.empty {
        return Ok(None);
    }
    let inside = events.depth;
    let mut found = None;
    loop {
        match events.next()? {
            Token::Open(tag) if found.is_none() => {
                let (prefix, _) = split(tag.name());
                found = Some(events.scope.resolve(prefix).unwrap_or_default().into_owned());
            }
            Token::Close(_) if events.depth < inside => return Ok(found),
            Token::End => return Err(events.cut()),
            _ => {}
        }
    }
}

/// An element's text. One that is too long is left out, since it is nothing that a harvest rests on.
fn value(events: &mut Events<'_>, tag: &Tag<'_>) -> Result<String, BadReason> {
    let limit = events.limits().max_field_bytes;
    Ok(long_value(events, tag, limit)?.unwrap_or_default())
}

/// An element's text; `None` when it is longer than `limit`.
fn long_value(events: &mut Events<'_>, tag: &Tag<'_>, limit: usize) -> Result<Option<String>, BadReason> {
    let mut text = String::new();
    if tag.empty {
        return Ok(Some(text));
    }
    let inside = events.depth;
    let mut is_long = false;
    while events.depth >= inside {
        let token = events.next()?;
        if events.depth > inside {
            continue;
        }
        match token {
            Token::Text(part) => text.push_str(&part),
            Token::Char(character) => text.push(character),
            Token::End => return Err(events.cut()),
            _ => {}
        }
        // Blanks around it do not count, as long as they are few.
        if text.len() > limit.saturating_mul(2) {
            is_long = true;
            text.clear();
        }
    }
    let text = text.trim();
    Ok((!is_long && text.len() <= limit).then(|| text.to_owned()))
}
