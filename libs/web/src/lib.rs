#![doc = include_str!("../README.md")]

mod address_guard;
mod classify;
mod client;
mod config;
mod credentials;
mod error;
mod message;
mod politeness;
mod range;
mod rate;
mod redact;
mod redirect;
mod request;
mod response;
mod retry;
mod retry_after;
mod robots;

pub use address_guard::{AddressClass, AddressPolicy};
pub use client::Client;
pub use config::WebConfig;
pub use credentials::{Credential, CredentialError, Secret};
pub use error::{ConnectFault, ErrorKind, Phase, WebError};
pub use redact::redacted;
pub use request::{GetRequest, Range};
pub use response::Response;
pub use robots::{Robots, RobotsPolicy, RobotsStanding};
