use serde::{Deserialize, Serialize};

use crate::base_url::BaseUrl;
use crate::granularity::Granularity;
use crate::token::{Token, TokenForm};
use crate::verb::Verb;
use crate::window::Window;

/// What a list is asked for: prefix, set and dates (section 2.7).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Selection {
    /// The metadata prefix.
    pub prefix: String,
    /// The set; everything when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// The dates.
    #[serde(default, skip_serializing_if = "Window::is_all")]
    pub window: Window,
}

/// A request of OAI-PMH. It is sent with GET.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Describe the repository.
    Identify,
    /// List the formats of the repository, or of an item.
    ListMetadataFormats {
        /// The item's identifier.
        identifier: Option<String>,
    },
    /// List the sets.
    ListSets,
    /// List headers or records: the first page.
    List {
        /// [`Verb::ListIdentifiers`] or [`Verb::ListRecords`].
        verb: Verb,
        /// What is wanted.
        selection: Selection,
        /// How dates are written; the same for both bounds.
        granularity: Granularity,
    },
    /// The next page of a list.
    Resume {
        /// The verb of the list.
        verb: Verb,
        /// The token of the page before.
        token: Token,
        /// How it is written.
        form: TokenForm,
        /// The prefix, only for a Source that refuses tokens without it
        /// ([`Quirk::TokenNotExclusive`](crate::Quirk::TokenNotExclusive)).
        prefix: Option<String>,
    },
    /// One record.
    GetRecord {
        /// Its identifier.
        identifier: String,
        /// The metadata prefix.
        prefix: String,
    },
}

impl Selection {
    /// All records in this format.
    pub fn all(prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), set: None, window: Window::ALL }
    }
}

impl Request {
    /// The first page of a list of records.
    pub fn list_records(selection: Selection, granularity: Granularity) -> Self {
        Self::List { verb: Verb::ListRecords, selection, granularity }
    }

    /// The first page of a list of headers.
    pub fn list_identifiers(selection: Selection, granularity: Granularity) -> Self {
        Self::List { verb: Verb::ListIdentifiers, selection, granularity }
    }

    /// The next page, with the token as the protocol says.
    pub fn resume(verb: Verb, token: Token) -> Self {
        Self::Resume { verb, token, form: TokenForm::Encoded, prefix: None }
    }

    /// One record.
    pub fn get_record(identifier: impl Into<String>, prefix: impl Into<String>) -> Self {
        Self::GetRecord { identifier: identifier.into(), prefix: prefix.into() }
    }

    /// The verb.
    pub fn verb(&self) -> Verb {
        match self {
            Self::Identify => Verb::Identify,
            Self::ListMetadataFormats { .. } => Verb::ListMetadataFormats,
            Self::ListSets => Verb::ListSets,
            Self::List { verb, .. } | Self::Resume { verb, .. } => *verb,
            Self::GetRecord { .. } => Verb::GetRecord,
        }
    }

    /// The arguments, `verb` first, none empty, none twice. A token of form [`TokenForm::Verbatim`] is among
    /// them as printed.
    pub fn arguments(&self) -> Vec<(&'static str, String)> {
        let mut arguments = vec![("verb", self.verb().as_str().to_owned())];
        let mut add = |name, value: Option<&str>| {
            arguments.extend(value.filter(|value| !value.is_empty()).map(|value| (name, value.to_owned())));
        };
        match self {
            Self::Identify | Self::ListSets => {}
            Self::ListMetadataFormats { identifier } => add("identifier", identifier.as_deref()),
            Self::List { selection, granularity, .. } => {
                let Window { from, until } = selection.window;
                add("metadataPrefix", Some(&selection.prefix));
                add("set", selection.set.as_deref());
                add("from", from.map(|time| granularity.format(time)).as_deref());
                add("until", until.map(|time| granularity.format(time)).as_deref());
            }
            Self::Resume { token, form, prefix, .. } => {
                let decoded = (*form == TokenForm::Decoded).then(|| token.decoded()).flatten();
                add("resumptionToken", Some(decoded.as_deref().unwrap_or(token.as_str())));
                add("metadataPrefix", prefix.as_deref());
            }
            Self::GetRecord { identifier, prefix } => {
                add("identifier", Some(identifier));
                add("metadataPrefix", Some(prefix));
            }
        }
        arguments
    }

    /// The URL to send. Every value is percent-encoded, tokens too, except a verbatim token.
    pub fn url(&self, base: &BaseUrl) -> String {
        let arguments = self.arguments();
        if let Self::Resume { form: TokenForm::Verbatim, token, .. } = self {
            let others = arguments.iter().filter(|(name, _)| *name != "resumptionToken");
            let url = base.with_arguments(others.map(|(name, value)| (*name, value.as_str())));
            // Characters that no request line can hold are encoded all the same.
            let token: String = token.as_str().chars().map(verbatim).collect();
            return format!("{url}&resumptionToken={token}");
        }
        base.with_arguments(arguments.iter().map(|(name, value)| (*name, value.as_str())))
    }
}

fn verbatim(character: char) -> String {
    if character.is_ascii_graphic() && character != '#' {
        return character.to_string();
    }
    let mut bytes = [0; 4];
    character.encode_utf8(&mut bytes).bytes().map(|byte| format!("%{byte:02X}")).collect()
}
