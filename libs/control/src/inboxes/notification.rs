//! A notification that a sender has posted, and its ID.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use model::{Message, Persisted, SourceId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// How many digits of the digest an ID contains: enough that it cannot be guessed.
const MARK: usize = 16;
/// How many digits of a digest stand for a sender.
const SENDER: usize = 20;

/// A notification as it was posted to an inbox. The body is untrusted and never changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptNotification {
    /// The Source of the inbox; None for the common one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox: Option<SourceId>,
    /// The name of the sender.
    pub sender: String,
    /// When it arrived.
    pub received_at: Timestamp,
    /// The media type, as the sender declares.
    pub media_type: String,
    /// The notification, at most [`MOST_BYTES`](Self::MOST_BYTES).
    pub body: String,
}

/// The ID of a notification: its position in the stream, and a mark derived from its content, so that two are never
/// confused.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NotificationId {
    pub(super) sequence: u64,
    pub(super) mark: String,
}

/// The text is no notification ID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("that is no name of a notification")]
pub struct NotificationIdError;

impl KeptNotification {
    /// The longest body that fits in a message of the server, in bytes. JSON as text within JSON is at most twice as
    /// long: it has quotes, backslashes and line breaks, and no other control characters.
    pub const MOST_BYTES: usize = 500 * 1024;

    /// The digest in hexadecimal. It is the same only for the same notification of the same sender in the same inbox.
    pub(super) fn digest(&self) -> String {
        let inbox = self.inbox.as_ref().map_or("", SourceId::as_str);
        let mut hasher = Sha256::new();
        for part in [inbox, &self.sender, &self.media_type, &self.body] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        HEXLOWER.encode(&hasher.finalize())
    }
}

impl NotificationId {
    pub(super) fn new(sequence: u64, digest: &str) -> Self {
        Self { sequence, mark: digest.chars().take(MARK).collect() }
    }
}

/// The digest of a sender's name, for subjects, where the name itself is not allowed.
pub(super) fn sender_token(sender: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(sender.as_bytes()))[..SENDER].to_owned()
}

impl fmt::Display for NotificationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.sequence, self.mark)
    }
}

impl FromStr for NotificationId {
    type Err = NotificationIdError;

    fn from_str(text: &str) -> Result<Self, NotificationIdError> {
        let (sequence, mark) = text.split_once('-').ok_or(NotificationIdError)?;
        let is_mark =
            mark.len() == MARK && mark.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let id = sequence.parse().ok().map(|sequence| Self { sequence, mark: mark.to_owned() });
        // Not `+1` or `01`: each notification has only one ID.
        id.filter(|id| is_mark && id.sequence > 0 && id.to_string() == text).ok_or(NotificationIdError)
    }
}

impl Message for KeptNotification {
    const KIND: &'static str = "kept-notification";
    const VERSION: u16 = Persisted::Inbox.version();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_back_and_nothing_else_is_one() {
        let id = NotificationId::new(7, &"0a".repeat(32));
        assert_eq!(id.to_string(), "7-0a0a0a0a0a0a0a0a");
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in [
            "",
            "7",
            "7-",
            "-0a0a0a0a0a0a0a0a",
            "07-0a0a0a0a0a0a0a0a",
            "0-0a0a0a0a0a0a0a0a",
            "7-0A0a0a0a0a0a0a0a",
            "7-0a0a0a0a0a0a0a0a0a",
        ] {
            assert_eq!(wrong.parse::<NotificationId>(), Err(NotificationIdError), "{wrong}");
        }
    }

    #[test]
    fn the_longest_body_fits_a_message_of_the_server() {
        let longest = KeptNotification {
            inbox: Some("s".repeat(60).parse().unwrap()),
            sender: "\u{1}".repeat(100),
            received_at: Timestamp::UNIX_EPOCH,
            media_type: "\"".repeat(500),
            body: "\n".repeat(KeptNotification::MOST_BYTES),
        };
        let sent = model::encode(&longest);
        // The default limit of a server, less room for headers.
        assert!(sent.len() < 1024 * 1024 - 8192, "{}", sent.len());
        assert_eq!(model::decode::<KeptNotification>(&sent).unwrap(), longest);
    }

    #[test]
    fn the_digest_follows_from_all_that_makes_a_notification_and_not_from_when_it_came() {
        let one = KeptNotification {
            inbox: Some("a".parse().unwrap()),
            sender: "s".to_owned(),
            received_at: Timestamp::UNIX_EPOCH,
            media_type: "application/ld+json".to_owned(),
            body: "{}".to_owned(),
        };
        assert_eq!(one.digest(), KeptNotification { received_at: Timestamp::MAX, ..one.clone() }.digest());
        for other in [
            KeptNotification { inbox: None, ..one.clone() },
            KeptNotification { sender: "t".to_owned(), ..one.clone() },
            KeptNotification { media_type: "application/json".to_owned(), ..one.clone() },
            KeptNotification { body: "{ }".to_owned(), ..one.clone() },
        ] {
            assert_ne!(one.digest(), other.digest());
        }
    }
}
