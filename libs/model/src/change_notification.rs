//! Change Notifications as delivered by a hub, stored for the owner of the Source.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::wire::Message;
use crate::{SetId, SourceId};

/// A Change Notification as delivered. Its signature is valid; its content is not parsed yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeNotification {
    /// The Source that it concerns.
    pub source: SourceId,
    /// The set of its topic.
    pub set: SetId,
    /// The topic.
    pub topic: String,
    /// The name of the subscription.
    pub subscription: String,
    /// When it was received.
    pub received_at: Timestamp,
    /// The payload, to the byte; at most [`MOST_BYTES`](Self::MOST_BYTES).
    #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
    pub body: Vec<u8>,
}

impl ChangeNotification {
    /// The longest payload that fits into a message, in bytes.
    pub const MOST_BYTES: usize = 750 * 1024;
}

impl Message for ChangeNotification {
    const KIND: &'static str = "notice";
    const VERSION: u16 = 1;
}

fn to_base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&data_encoding::BASE64.encode(bytes))
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    data_encoding::BASE64.decode(text.as_bytes()).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_payload_fits_a_message_of_any_bus() {
        let notice = ChangeNotification {
            source: "example-1".parse().unwrap(),
            set: SetId::new("s".repeat(2_000)),
            topic: "t".repeat(2_000),
            subscription: "0".repeat(32),
            received_at: Timestamp::UNIX_EPOCH,
            body: vec![0xff; ChangeNotification::MOST_BYTES],
        };
        let sent = crate::encode(&notice);
        assert!(sent.len() < 1024 * 1024 - 8192, "{}", sent.len());
        assert_eq!(crate::decode::<ChangeNotification>(&sent).unwrap(), notice);
    }
}
