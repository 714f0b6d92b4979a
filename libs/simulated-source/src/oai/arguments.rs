//! The arguments of a request, judged as the protocol says.

use super::fault::{Faults, RepositoryFault as Fault, value};
use super::inner::Inner;
use super::list::{Query, SetOf};
use super::spec::Unit;
use super::world::World;
use crate::clock::SimTime;

/// An error of the protocol: code and message.
pub(super) type Refusal = (&'static str, String);

/// What is asked for.
pub(super) enum Asked {
    Identify,
    Formats,
    Sets,
    First(Query),
    Next { verb: String, token: String },
    Record { index: u64, prefix: String },
}

const VERBS: [&str; 6] =
    ["Identify", "ListMetadataFormats", "ListSets", "ListIdentifiers", "ListRecords", "GetRecord"];

fn bad(message: impl Into<String>) -> Refusal {
    ("badArgument", message.into())
}

/// Judges arguments. `raw`: the query as it was sent.
pub(super) fn judge(
    inner: &Inner,
    world: &World,
    faults: &Faults,
    arguments: &[(String, String)],
    raw: &str,
) -> Result<Asked, Refusal> {
    let get = |name: &str| arguments.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
    let verbs = arguments.iter().filter(|(name, _)| name == "verb").count();
    let verb = get("verb").filter(|verb| verbs == 1 && VERBS.contains(verb));
    let Some(verb) = verb.filter(|verb| value!(faults, VerbMissing) != Some(*verb)) else {
        return Err(("badVerb", "the verb is missing, repeated or unknown".to_owned()));
    };
    let allowed: &[&str] = match verb {
        "ListMetadataFormats" => &["identifier"],
        "ListSets" => &["resumptionToken"],
        "ListIdentifiers" | "ListRecords" => &["metadataPrefix", "from", "until", "set", "resumptionToken"],
        "GetRecord" => &["identifier", "metadataPrefix"],
        _ => &[],
    };
    for (at, (name, value)) in arguments.iter().enumerate() {
        if name != "verb" && !allowed.contains(&name.as_str()) {
            return Err(bad(format!("{name} is no argument of {verb}")));
        }
        if value.is_empty() || arguments[..at].iter().any(|(other, _)| other == name) {
            return Err(bad(format!("{name} is empty or repeated")));
        }
    }
    if let Some(token) = get("resumptionToken") {
        return resume(verb, token, arguments, faults, raw);
    }
    let prefix = || match get("metadataPrefix") {
        None => Err(bad("metadataPrefix is missing")),
        Some(prefix) if inner.spec.offers(prefix) => Ok(prefix.to_owned()),
        Some(prefix) => Err(("cannotDisseminateFormat", format!("there is no format {prefix}"))),
    };
    let item = |identifier: &str| {
        let index = inner.index(identifier).filter(|index| world.get(*index).is_some());
        index.ok_or(("idDoesNotExist", format!("there is no item {identifier}")))
    };
    Ok(match verb {
        "Identify" => Asked::Identify,
        "ListMetadataFormats" => {
            // Each item has all formats.
            get("identifier").map(item).transpose()?;
            Asked::Formats
        }
        "ListSets" if inner.spec.sets == 0 => {
            return Err(("noSetHierarchy", "there are no sets".to_owned()));
        }
        "ListSets" => Asked::Sets,
        "GetRecord" => {
            let identifier = get("identifier").ok_or_else(|| bad("identifier is missing"))?;
            Asked::Record { prefix: prefix()?, index: item(identifier)? }
        }
        _ => {
            let (from, until) = dates(inner, faults, get("from"), get("until"))?;
            let prefix = prefix()?;
            let set = set_of(inner, world, get("set"))?;
            Asked::First(Query { verb: verb.to_owned(), prefix, set, from, until })
        }
    })
}

fn resume(
    verb: &str,
    token: &str,
    arguments: &[(String, String)],
    faults: &Faults,
    raw: &str,
) -> Result<Asked, Refusal> {
    let others = arguments.len() - 2;
    if faults.has(&Fault::TokenNotExclusive) {
        if !arguments.iter().any(|(name, _)| name == "metadataPrefix") {
            return Err(bad("metadataPrefix is missing"));
        }
    } else if others > 0 {
        return Err(bad("resumptionToken is exclusive"));
    }
    let sent = raw.split('&').find_map(|part| part.strip_prefix("resumptionToken=")).unwrap_or_default();
    let token = if faults.has(&Fault::TokenVerbatim) { sent } else { token };
    Ok(Asked::Next { verb: verb.to_owned(), token: token.to_owned() })
}

type Dates = (Option<SimTime>, Option<SimTime>);

fn dates(inner: &Inner, faults: &Faults, from: Option<&str>, until: Option<&str>) -> Result<Dates, Refusal> {
    let read = |text: &str| -> Result<(SimTime, Unit), Refusal> {
        let (time, unit) = match text.len() {
            10 => (format!("{text}T00:00:00Z"), Unit::Day),
            20 if text.ends_with('Z') && text.as_bytes()[10] == b'T' => (text.to_owned(), Unit::Second),
            _ => return Err(bad(format!("{text} is no date"))),
        };
        if unit == Unit::Second && (inner.spec.unit == Unit::Day || faults.has(&Fault::GranularityLie)) {
            return Err(bad(format!("{text} is finer than days")));
        }
        let time: jiff::Timestamp = time.parse().map_err(|_| bad(format!("{text} is no date")))?;
        Ok((SimTime::START.plus(time.as_second() - SimTime::START.timestamp().as_second()), unit))
    };
    let from = from.map(read).transpose()?;
    let until = until.map(read).transpose()?;
    if let (Some((from, one)), Some((until, other))) = (from, until) {
        if one != other {
            return Err(bad("from and until differ in their granularity"));
        }
        if from > until {
            return Err(bad("from is later than until"));
        }
    }
    // A day that ends a window includes all of its seconds.
    let end = |(time, unit): (SimTime, Unit)| if unit == Unit::Day { time.plus(86_399) } else { time };
    Ok((from.map(|(time, _)| time), until.map(end)))
}

fn set_of(inner: &Inner, world: &World, set: Option<&str>) -> Result<SetOf, Refusal> {
    let Some(set) = set else { return Ok(SetOf::All) };
    if inner.spec.sets == 0 {
        return Err(("noSetHierarchy", "there are no sets".to_owned()));
    }
    if set == "group" {
        return Ok(SetOf::Group);
    }
    let number = set.strip_prefix("group:").and_then(|number| number.parse::<u64>().ok());
    let number = number.filter(|number| *number < inner.spec.sets && !world.removed_sets.contains(number));
    // A set that is not there matches nothing.
    number.map(SetOf::Member).ok_or(("noRecordsMatch", format!("nothing is in {set}")))
}
