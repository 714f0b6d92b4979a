#![doc = include_str!("../README.md")]

mod answer;
mod base_url;
mod canonical;
mod error;
mod events;
mod format;
mod granularity;
mod limits;
mod links;
mod page_digest;
mod pasted;
mod position;
mod protocol_error;
mod quirk;
mod reader;
mod received;
mod record;
mod request;
mod scope;
mod section;
mod stateless;
mod text;
mod token;
mod trail;
mod verb;
mod window;
mod writer;

pub use answer::{Answer, DeletedRecord, Identify, RequestEcho, WrongEcho};
pub use base_url::{BadBaseUrl, BaseUrl};
pub use canonical::{canonicalize, comparison_digest};
pub use encoding_rs::Encoding;
pub use error::{BadReason, LimitKind, ReadError};
pub use format::{KnownFormat, richest};
pub use granularity::Granularity;
pub use limits::{Limits, Options, Strictness};
pub use links::{ContentLink, LinkRole, Links, links};
pub use page_digest::PageDigest;
pub use pasted::Pasted;
pub use protocol_error::{ErrorCode, ProtocolError};
pub use quirk::{Quirk, QuirkSet, Quirks};
pub use reader::{Reader, read};
pub use record::{BadRecord, Item, Metadata, MetadataFormat, Record, RecordHeader, SetItem, Status};
pub use request::{Request, Selection};
pub use resourcesync::{Datetime, Force, Position, Rule, Section};
pub use stateless::StatelessToken;
pub use token::{Resumption, Token, TokenForm};
pub use trail::{Step, Trail};
pub use verb::{UnknownVerb, Verb};
pub use window::Window;
pub use writer::{AnswerWriter, WriteError};

/// The XML namespace of OAI-PMH 2.0.
pub const NAMESPACE: &str = "http://www.openarchives.org/OAI/2.0/";
