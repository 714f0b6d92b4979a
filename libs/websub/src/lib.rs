#![doc = include_str!("../README.md")]

mod hub;
mod intent;
mod key;
mod lease;
mod links;
mod publish;
mod request;
mod signature;

pub use self::links::Links;
pub use hub::{RequestError, denial, grant, verification};
pub use intent::{Intent, IntentError};
pub use key::{Keys, PushKey, WeakKey};
pub use lease::{ASKED_LEASE, lease_of, pause_after, renew_at};
pub use publish::{Channel, Notification, Notifications, PublishError, publish};
pub use request::{Mode, SubscriptionRequest, UnknownMode};
pub use signature::{Authenticity, Method, Signature, SignatureError, judge};

/// The header that carries the signature of a delivery (WebSub, 8).
pub const SIGNATURE_HEADER: &str = "x-hub-signature";

/// The media type of the requests to a hub (WebSub, 5.1).
pub const FORM: &str = "application/x-www-form-urlencoded";

/// The media type of a Change Notification (CN-4, CN-6).
pub const XML: &str = "application/xml";
