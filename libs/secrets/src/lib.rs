#![doc = include_str!("../README.md")]

mod redact;
mod secret;
mod vars;

pub use redact::redacted;
pub use secret::{Secret, SecretError, SecretRef};
pub use vars::Vars;
