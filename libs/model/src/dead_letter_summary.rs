//! Dead letters of the fleet, as they are kept for inspection by an operator.

use serde::{Deserialize, Serialize};

use crate::RunId;

/// A dead letter, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetterSummary {
    /// The run that found it; the next run that ends without it resolves it.
    pub run: RunId,
    /// Its queue.
    pub queue: String,
    /// The reason.
    pub why: String,
    /// How often it was delivered.
    pub attempts: u32,
    /// The length of its payload, in bytes.
    pub length: u64,
    /// The beginning of its payload.
    pub payload: KeptPayload,
}

/// The beginning of a payload, readable if possible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeptPayload {
    /// It is text.
    Text(String),
    /// It is not: base64.
    Base64(String),
}

impl KeptPayload {
    /// The text itself.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text(text) | Self::Base64(text) => text,
        }
    }

    /// The same, cut to at most this many bytes of text; the rest stays valid text or base64.
    #[must_use]
    pub fn cut_to(self, bytes: usize) -> Self {
        match self {
            Self::Text(mut text) => {
                text.truncate(text.floor_char_boundary(bytes));
                Self::Text(text)
            }
            // Base64 is decoded four letters at a time.
            Self::Base64(mut text) => {
                text.truncate(bytes / 4 * 4);
                Self::Base64(text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Evidence, ProblemRecord};

    #[test]
    fn a_cut_payload_is_still_text_or_base64() {
        assert_eq!(KeptPayload::Text("aä".to_owned()).cut_to(2), KeptPayload::Text("a".to_owned()));
        assert_eq!(
            KeptPayload::Base64("AAAABBBB".to_owned()).cut_to(7),
            KeptPayload::Base64("AAAA".to_owned())
        );
        assert_eq!(KeptPayload::Text("ab".to_owned()).cut_to(9), KeptPayload::Text("ab".to_owned()));
    }

    #[test]
    fn evidence_of_a_message_survives_storage_and_older_records_have_none() {
        let kept = DeadLetterSummary {
            run: RunId::fresh(),
            queue: "verify.s".to_owned(),
            why: "no such kind".to_owned(),
            attempts: 3,
            length: 7,
            payload: KeptPayload::Text("{\"a\":1}".to_owned()),
        };
        let evidence = Evidence { given_up: Some(Box::new(kept)), ..Evidence::default() };
        let stored = serde_json::to_string(&evidence).unwrap();
        assert_eq!(serde_json::from_str::<Evidence>(&stored).unwrap(), evidence);
        let older = r#"{"reason":"poison","message":"m","first_seen":"2026-01-01T00:00:00Z",
            "last_seen":"2026-01-01T00:00:00Z","attempts":1,"retry":true,"evidence":{"status":404}}"#;
        assert_eq!(serde_json::from_str::<ProblemRecord>(older).unwrap().evidence.given_up, None);
    }
}
