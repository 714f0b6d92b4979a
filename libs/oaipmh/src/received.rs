//! Requests as a repository receives them.

use crate::granularity::Granularity;
use crate::protocol_error::{ErrorCode, ProtocolError};
use crate::request::{Request, Selection};
use crate::text::is_legal;
use crate::token::{Token, TokenForm};
use crate::verb::Verb;
use crate::window::Window;

impl Request {
    /// The request with these arguments, by name, as they came by GET or POST (section 3.1.1).
    ///
    /// A window has seconds, whatever its bounds were written in: the day that ends it is in it with all its seconds.
    ///
    /// # Errors
    /// `badVerb`, or `badArgument` for an argument that is missing, repeated, empty, not allowed or of the wrong form.
    /// No message repeats what was sent.
    pub fn received(arguments: &[(String, String)]) -> Result<Self, ProtocolError> {
        let verb = verb(arguments)?;
        for (at, (name, value)) in arguments.iter().enumerate() {
            if name != "verb" && !allowed(verb).contains(&name.as_str()) {
                return Err(bad(format!("an argument is none of {verb}")));
            }
            if value.is_empty() || arguments[..at].iter().any(|(other, _)| other == name) {
                return Err(bad(format!("{name} is empty or repeated")));
            }
            if !value.chars().all(is_legal) {
                return Err(bad(format!("{name} holds a character that XML cannot hold")));
            }
        }
        let get = |name: &str| arguments.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone());
        let required = |name: &str| get(name).ok_or_else(|| bad(format!("{name} is missing")));
        if let Some(token) = get("resumptionToken") {
            if arguments.len() > 2 {
                return Err(bad("resumptionToken is exclusive".to_owned()));
            }
            let token = Token::new(&token).ok_or_else(|| bad("resumptionToken is empty".to_owned()))?;
            return Ok(Self::Resume { verb, token, form: TokenForm::Encoded, prefix: None });
        }
        Ok(match verb {
            Verb::Identify => Self::Identify,
            Verb::ListMetadataFormats => Self::ListMetadataFormats { identifier: get("identifier") },
            Verb::ListSets => Self::ListSets,
            Verb::ListIdentifiers | Verb::ListRecords => {
                let window = window(get("from"), get("until"))?;
                let selection = Selection { prefix: required("metadataPrefix")?, set: get("set"), window };
                Self::List { verb, selection, granularity: Granularity::Second }
            }
            Verb::GetRecord => {
                Self::GetRecord { identifier: required("identifier")?, prefix: required("metadataPrefix")? }
            }
        })
    }
}

fn verb(arguments: &[(String, String)]) -> Result<Verb, ProtocolError> {
    let refuse = |why: &str| ProtocolError::new(ErrorCode::BadVerb, why);
    let mut verbs = arguments.iter().filter(|(name, _)| name == "verb").map(|(_, verb)| verb);
    match (verbs.next(), verbs.next()) {
        (Some(verb), None) => verb.parse().map_err(|_| refuse("this is no verb of OAI-PMH")),
        (Some(_), Some(_)) => Err(refuse("the verb is repeated")),
        (None, _) => Err(refuse("the verb is missing")),
    }
}

/// The arguments of a verb, beside itself.
fn allowed(verb: Verb) -> &'static [&'static str] {
    match verb {
        Verb::Identify => &[],
        Verb::ListMetadataFormats => &["identifier"],
        Verb::ListSets => &["resumptionToken"],
        Verb::ListIdentifiers | Verb::ListRecords => {
            &["metadataPrefix", "from", "until", "set", "resumptionToken"]
        }
        Verb::GetRecord => &["identifier", "metadataPrefix"],
    }
}

/// The window between two arguments (section 2.7.1).
fn window(from: Option<String>, until: Option<String>) -> Result<Window, ProtocolError> {
    let read = |name: &str, text: Option<String>| match text {
        None => Ok(None),
        Some(text) => Granularity::parse(&text).map(Some).ok_or_else(|| {
            bad(format!("{name} is no time; write it as {} or {}", Granularity::Day, Granularity::Second))
        }),
    };
    let (from, until) = (read("from", from)?, read("until", until)?);
    if let (Some((from, of_from)), Some((until, of_until))) = (from, until) {
        if of_from != of_until {
            return Err(bad("from and until have different granularities".to_owned()));
        }
        if from > until {
            return Err(bad("from is later than until".to_owned()));
        }
    }
    let end = |(time, granularity): (jiff::Timestamp, Granularity)| {
        let rest = granularity.unit() - Granularity::Second.unit();
        time.checked_add(rest).unwrap_or(jiff::Timestamp::MAX)
    };
    Ok(Window { from: from.map(|(from, _)| from), until: until.map(end) })
}

fn bad(message: String) -> ProtocolError {
    ProtocolError::new(ErrorCode::BadArgument, message)
}
