#![doc = include_str!("../README.md")]

mod address_guard;
mod classify;
mod client;
mod config;
mod credentials;
mod error;
mod fault;
mod headers;
mod message;
mod observer;
mod politeness;
mod range;
mod redact;
mod redirect;
mod request;
mod response;
mod retry;
mod retry_after;
mod robots;
mod send;
mod terms;
mod transport;
mod travel;

pub use address_guard::{AddressClass, AddressPolicy, Network};
pub use client::{Client, CrawlDelay, OriginRest};
pub use config::WebConfig;
pub use credentials::{Credential, CredentialError, Secret};
pub use error::{ConnectFault, ErrorKind, Phase, WebError};
pub use observer::{Exchange, Observer};
pub use range::ContentRange;
pub use redact::redacted;
pub use request::{Errand, GetRequest, PostRequest, Range};
pub use response::Response;
pub use robots::{Disallow, Robots, RobotsPolicy, RobotsStanding};
pub use terms::{CommonPlace, Places, Terms};
pub use transport::{Carried, Transport};
