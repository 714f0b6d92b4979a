//! Dead letters: messages that were given up, kept for operators.

use model::SourceId;
use serde::{Deserialize, Serialize};

use crate::{Bus, BusError, Message, MessageId, Payload, Queue};

/// The most payload bytes of a dead letter. Even with every byte escaped, the dead letter stays under the limit of the
/// bus.
const KEPT: usize = 128 * 1024;

/// A message that was given up, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// The ID of the message.
    pub id: MessageId,
    /// The subject that it was published under.
    pub subject: String,
    /// The number of deliveries.
    pub attempts: u32,
    /// Why it was given up.
    pub why: String,
    /// The length of its payload, in bytes.
    pub length: usize,
    /// Its payload, at most the first 128 KiB.
    pub payload: DeadPayload,
}

/// The payload of a dead letter, as readable as possible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeadPayload {
    /// Text.
    Text(String),
    /// Binary data, in base64.
    Base64(String),
}

impl model::Message for DeadLetter {
    const KIND: &'static str = "dead-letter";
    const VERSION: u16 = 1;
}

impl DeadLetter {
    /// The dead letter of `message`.
    pub fn new(message: &Message, why: impl Into<String>) -> Self {
        // Operators read it, so it is serialized even if the bus did not do that.
        let payload = message.payload.to_bytes();
        Self {
            id: message.id.clone(),
            subject: message.queue.subject(),
            attempts: message.attempt,
            why: why.into(),
            length: payload.len(),
            payload: DeadPayload::of(&payload),
        }
    }

    /// The dead letter of a message that was delivered too often, and its reason.
    pub(crate) fn worn(message: &Message) -> (Self, String) {
        let why = format!("handed out {} times and never acknowledged", message.attempt);
        (Self::new(message, &why), why)
    }

    /// Queues a dead letter of `message` for its Source. After that the message may be dropped.
    ///
    /// # Errors
    /// [`BusError::Unavailable`]: the message must not be dropped then.
    pub async fn bury(bus: &dyn Bus, message: &Message, why: &str) -> Result<(), BusError> {
        let (queue, id, payload) = Self::new(message, why).addressed(message.queue.source());
        bus.publish(queue, id, payload).await?;
        log(message, why);
        Ok(())
    }

    /// The queue, the ID and the payload of the dead letter. A message that is dead-lettered twice makes one dead
    /// letter.
    pub(crate) fn addressed(&self, source: &SourceId) -> (Queue, MessageId, Payload) {
        let queue = Queue::Dead { source: source.clone() };
        (queue, self.id.of_letter(), model::encode(self).into())
    }
}

impl DeadPayload {
    fn of(payload: &[u8]) -> Self {
        let kept = &payload[..payload.len().min(KEPT)];
        match std::str::from_utf8(kept) {
            Ok(text) => Self::Text(text.to_owned()),
            // Text that was cut inside a character is still text.
            Err(error) if error.error_len().is_none() && kept.len() < payload.len() => {
                Self::Text(String::from_utf8_lossy(&kept[..error.valid_up_to()]).into_owned())
            }
            Err(_) => Self::Base64(data_encoding::BASE64.encode(kept)),
        }
    }
}

/// Logs that a message became a dead letter.
pub(crate) fn log(message: &Message, why: &str) {
    tracing::error!(
        message.id = %message.id, queue = %message.queue, attempts = message.attempt, why,
        "a message became a dead letter of its Source"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_PAYLOAD;

    fn message(payload: impl Into<Payload>) -> Message {
        let queue = Queue::Verify { source: "s".parse().unwrap() };
        Message { id: MessageId::new("verify-1"), queue, payload: payload.into(), attempt: 3 }
    }

    #[test]
    fn text_stays_readable_and_other_bytes_become_base64() {
        let letter = DeadLetter::new(&message("{\"a\":1}"), "no such kind");
        assert_eq!(letter.payload, DeadPayload::Text("{\"a\":1}".to_owned()));
        assert_eq!((letter.subject.as_str(), letter.attempts, letter.length), ("verify.s", 3, 7));
        let letter = DeadLetter::new(&message(vec![0xff, 0]), "no text");
        assert_eq!(letter.payload, DeadPayload::Base64("/wA=".to_owned()));
    }

    #[test]
    fn the_letter_of_the_largest_message_fits_the_bus() {
        for filling in ["\u{1}", "ä", "\""] {
            let payload = filling.repeat(MAX_PAYLOAD / filling.len());
            let letter = DeadLetter::new(&message(payload.clone().into_bytes()), "why");
            assert_eq!(letter.length, payload.len());
            assert!(matches!(letter.payload, DeadPayload::Text(_)), "{filling:?}");
            assert!(model::encode(&letter).len() <= MAX_PAYLOAD, "{filling:?}");
        }
        let letter = DeadLetter::new(&message(vec![0xff; MAX_PAYLOAD]), "why");
        assert!(model::encode(&letter).len() <= MAX_PAYLOAD);
    }

    #[test]
    fn text_cut_inside_a_character_is_still_text() {
        let payload = format!("a{}", "ä".repeat(KEPT));
        let DeadPayload::Text(text) = DeadPayload::of(payload.as_bytes()) else { panic!("not text") };
        assert!(payload.starts_with(&text));
        assert_eq!(text.len(), KEPT - 1);
    }

    #[test]
    fn a_letter_survives_the_wire() {
        let letter = DeadLetter::new(&message("x"), "why");
        assert_eq!(model::decode::<DeadLetter>(&model::encode(&letter)).unwrap(), letter);
    }
}
