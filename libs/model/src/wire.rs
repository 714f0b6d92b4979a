//! Messages on the wire: JSON that says what it is and of which version.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A message that services exchange.
pub trait Message: Serialize + DeserializeOwned {
    /// Its name on the wire.
    const KIND: &'static str;
    /// Its version. A change that an older reader would misunderstand raises it.
    const VERSION: u16;
}

/// Why bytes are not the message that was expected. All of them are poison: a retry would end the same way.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// No envelope around it, or fields missing.
    #[error("not a {kind} message: {source}")]
    Malformed {
        /// What was expected.
        kind: &'static str,
        /// What the parser says.
        source: serde_json::Error,
    },
    /// Another kind, or a version from a later release.
    #[error("expected a {kind} message of version {version} or older, found {found} {found_version}")]
    Unexpected {
        /// What was expected.
        kind: &'static str,
        /// The newest version understood here.
        version: u16,
        /// The kind it says it is.
        found: String,
        /// The version it says it has.
        found_version: u16,
    },
}

#[derive(Serialize)]
struct EnvelopeOut<'a, T> {
    kind: &'static str,
    version: u16,
    body: &'a T,
}

#[derive(Deserialize)]
struct EnvelopeHead {
    kind: String,
    version: u16,
}

#[derive(Deserialize)]
struct EnvelopeBody<T> {
    body: T,
}

/// The message as bytes.
pub fn encode<T: Message>(message: &T) -> Vec<u8> {
    let envelope = EnvelopeOut { kind: T::KIND, version: T::VERSION, body: message };
    // Our messages are structs of strings, numbers and lists: no map with non-text keys, no failing Serialize.
    serde_json::to_vec(&envelope).expect("messages serialise to JSON")
}

/// The message in `bytes`.
///
/// # Errors
/// [`WireError`] when it is another message, a newer version, or none at all.
pub fn decode<T: Message>(bytes: &[u8]) -> Result<T, WireError> {
    let malformed = |source| WireError::Malformed { kind: T::KIND, source };
    let head: EnvelopeHead = serde_json::from_slice(bytes).map_err(malformed)?;
    if head.kind != T::KIND || head.version > T::VERSION {
        return Err(WireError::Unexpected {
            kind: T::KIND,
            version: T::VERSION,
            found: head.kind,
            found_version: head.version,
        });
    }
    let envelope: EnvelopeBody<T> = serde_json::from_slice(bytes).map_err(malformed)?;
    Ok(envelope.body)
}

/// The kind of the message in `bytes`, for a queue that carries several; none when it is no message at all.
pub fn kind_of(bytes: &[u8]) -> Option<String> {
    serde_json::from_slice::<EnvelopeHead>(bytes).ok().map(|head| head.kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FetchItem, FetchJob, JobId, Outcomes, RunId, Seq, Terms};

    fn job() -> FetchJob {
        FetchJob {
            id: JobId::fresh(),
            source: "example-0".parse().unwrap(),
            run: RunId::fresh(),
            lane: "http://example.org".parse().unwrap(),
            terms: Terms::default(),
            items: vec![FetchItem {
                uri: "http://example.org/a".parse().unwrap(),
                seq: Seq::new(7),
                declaration: Default::default(),
                listed_until: None,
                held: Default::default(),
                mend: false,
            }],
        }
    }

    #[test]
    fn a_message_survives_the_wire() {
        let job = job();
        assert_eq!(decode::<FetchJob>(&encode(&job)).unwrap(), job);
    }

    #[test]
    fn the_kind_is_told_without_the_body() {
        assert_eq!(kind_of(&encode(&job())).as_deref(), Some("fetch-job"));
        assert_eq!(kind_of(br#"{"kind":"later","version":9,"body":[]}"#).as_deref(), Some("later"));
        assert_eq!(kind_of(b"{"), None);
    }

    #[test]
    fn another_kind_a_later_version_and_rubbish_are_told_apart() {
        let bytes = encode(&job());
        assert!(matches!(decode::<Outcomes>(&bytes), Err(WireError::Unexpected { .. })));
        let later = String::from_utf8(bytes).unwrap().replace("\"version\":1", "\"version\":2");
        assert!(matches!(
            decode::<FetchJob>(later.as_bytes()),
            Err(WireError::Unexpected { found_version: 2, .. })
        ));
        assert!(matches!(decode::<FetchJob>(b"{"), Err(WireError::Malformed { .. })));
        assert!(matches!(
            decode::<FetchJob>(br#"{"kind":"fetch-job","version":1,"body":{}}"#),
            Err(WireError::Malformed { .. })
        ));
    }
}
