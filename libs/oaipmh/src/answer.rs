use resourcesync::Datetime;
use serde::{Deserialize, Serialize};

use crate::granularity::Granularity;
use crate::page_digest::PageDigest;
use crate::protocol_error::{ErrorCode, ProtocolError};
use crate::quirk::Quirks;
use crate::request::Request;
use crate::token::Resumption;
use crate::verb::Verb;

/// What an answer says beside its items. It fills while the answer is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// When the answer was made, by the repository's clock: the only clock that may become a `from`. A time
    /// with offset or fraction is counted as [`Quirk::OddResponseDate`](crate::Quirk::OddResponseDate).
    pub response_date: Option<Datetime>,
    /// The echo of the request.
    pub request: RequestEcho,
    /// The verb whose element the answer has; `None` in an answer of errors only.
    pub verb: Option<Verb>,
    /// The errors; an answer without verb has at least one.
    pub errors: Vec<ProtocolError>,
    /// The description of the repository, of an Identify answer.
    pub identify: Option<Identify>,
    /// The `resumptionToken` element; `None` when there is none, which ends a list too.
    pub resumption: Option<Resumption>,
    /// Records, headers, sets or formats returned.
    pub items: u64,
    /// Bad ones among them.
    pub bad: u64,
    /// Whether the answer was read to the end of its root element. If not, nothing may be concluded from what
    /// is missing.
    pub complete: bool,
    /// The quirks so far.
    pub quirks: Quirks,
    /// The digest of identifiers, datestamps and states of this page, for [`Trail`](crate::Trail).
    pub digest: PageDigest,
}

/// The `request` element: the base URL and the arguments that the repository understood.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestEcho {
    /// The base URL as the repository writes it; it may differ from the operator's.
    pub base_url: String,
    /// The arguments by name, as written.
    pub arguments: Vec<(String, String)>,
}

/// The answer to another request than ours: a stale cache, or a confused proxy. Discard it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is for another request: {argument} is \"{echoed}\" instead of \"{sent}\"")]
pub struct WrongEcho {
    /// The argument that differs.
    pub argument: &'static str,
    /// Its value in the echo.
    pub echoed: String,
    /// The value that was sent.
    pub sent: String,
}

/// An Identify answer (section 4.2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identify {
    /// The name for people.
    pub repository_name: String,
    /// The base URL as the repository writes it; the operator's counts.
    pub base_url: String,
    /// The version; anything but `2.0` is refused by [`is_supported`](Self::is_supported).
    pub protocol_version: String,
    /// Addresses of administrators.
    pub admin_emails: Vec<String>,
    /// A lower bound of all datestamps; never to be used as a `from`.
    pub earliest_datestamp: Option<Datetime>,
    /// How deletions are told; `None` when the answer does not say.
    pub deleted_record: Option<DeletedRecord>,
    /// The granularity; `None` when the answer does not say, or says what is not known.
    pub granularity: Option<Granularity>,
    /// Encodings that the repository can send, beside `identity`.
    pub compression: Vec<String>,
    /// Namespaces of the root elements of its descriptions.
    pub descriptions: Vec<String>,
}

/// How a repository tells deletions (section 2.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeletedRecord {
    /// Records vanish; none is shown as deleted.
    No,
    /// The full history is kept: only then tombstones are enough.
    Persistent,
    /// Some deletions are shown, without a promise.
    Transient,
}

impl Answer {
    /// Whether the list goes on: the answer has a token.
    pub fn has_more(&self) -> bool {
        self.resumption.as_ref().is_some_and(|resumption| resumption.token.is_some())
    }

    /// Whether one of its errors has this code.
    pub fn has_error(&self, code: &ErrorCode) -> bool {
        self.errors.iter().any(|error| error.code == *code)
    }

    /// Whether it says that nothing matches, and no other error.
    pub fn is_empty_result(&self) -> bool {
        !self.errors.is_empty() && self.errors.iter().all(|error| error.code.is_empty_result())
    }

    /// Compares the echo with what was sent (section 3.2): verb, prefix, set, identifier. What the echo leaves
    /// out is not compared, since many repositories echo less than they should.
    ///
    /// # Errors
    /// The first argument that differs.
    pub fn check_echo(&self, request: &Request) -> Result<(), WrongEcho> {
        let sent = request.arguments();
        for argument in ["verb", "metadataPrefix", "set", "identifier"] {
            let echoed = self.request.get(argument);
            let wanted = sent.iter().find(|(name, _)| *name == argument).map(|(_, value)| value.as_str());
            if let (Some(echoed), Some(wanted)) = (echoed, wanted)
                && echoed.trim() != wanted.trim()
            {
                return Err(WrongEcho { argument, echoed: echoed.to_owned(), sent: wanted.to_owned() });
            }
        }
        Ok(())
    }
}

impl RequestEcho {
    /// The value of an argument.
    pub fn get(&self, argument: &str) -> Option<&str> {
        self.arguments.iter().find(|(name, _)| name == argument).map(|(_, value)| value.as_str())
    }
}

impl Identify {
    /// Whether the protocol's version is 2.0. Others have other formats, and are refused.
    pub fn is_supported(&self) -> bool {
        self.protocol_version.trim() == "2.0"
    }

    /// The granularity to use: the announced one, else that of `earliestDatestamp`, else days, which work
    /// everywhere.
    pub fn usable_granularity(&self) -> Granularity {
        self.granularity.or(self.earliest_datestamp.as_ref().map(Granularity::of)).unwrap_or(Granularity::Day)
    }
}

impl DeletedRecord {
    /// As the protocol writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Persistent => "persistent",
            Self::Transient => "transient",
        }
    }

    /// The policy of this text, in any case.
    pub fn read(text: &str) -> Option<Self> {
        [Self::No, Self::Persistent, Self::Transient]
            .into_iter()
            .find(|policy| policy.as_str().eq_ignore_ascii_case(text.trim()))
    }
}
