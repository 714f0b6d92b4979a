//! Messages on the wire: JSON with their kind and version.

use std::fmt;
use std::io;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// A message that services exchange.
pub trait Message: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Its name on the wire.
    const KIND: &'static str;
    /// Its version. It rises with a change that an older reader would misunderstand.
    const VERSION: u16;

    /// An upper bound of the bytes on the wire, not much too high, if it is cheaper to compute than to
    /// encode. It sizes the buffer, and a message that stays within a process need not be encoded to be
    /// measured.
    fn size(&self) -> Option<usize> {
        None
    }
}

/// Why bytes are not the expected message. All of them are poison: a retry would end the same way.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// It has no envelope, or fields are missing.
    #[error("not a {kind} message: {source}")]
    Malformed {
        /// The expected kind.
        kind: &'static str,
        /// The parser's error.
        source: serde_json::Error,
    },
    /// Another kind, or a version from a later release.
    #[error("expected a {kind} message of version {version} or older, found {found} {found_version}")]
    Unexpected {
        /// The expected kind.
        kind: &'static str,
        /// The newest version of this release.
        version: u16,
        /// The kind in the message.
        found: String,
        /// The version in the message.
        found_version: u16,
    },
}

#[derive(Serialize)]
struct EnvelopeOut<'a, T> {
    kind: &'static str,
    version: u16,
    body: &'a T,
}

/// The kind and version of a message, and its body if they are the expected ones.
struct Envelope<T> {
    kind: String,
    version: u16,
    body: Option<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Field {
    Kind,
    Version,
    Body,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct EnvelopeBody<T> {
    body: T,
}

/// Initial capacity for a message of unknown length.
const USUAL: usize = 256;

/// The message as bytes.
pub fn encode<T: Message>(message: &T) -> Vec<u8> {
    let envelope = EnvelopeOut { kind: T::KIND, version: T::VERSION, body: message };
    let mut bytes = Vec::with_capacity(message.size().unwrap_or(USUAL));
    // Our messages are structs of strings, numbers and lists: no maps with other keys than text, and no
    // failing `Serialize`.
    serde_json::to_writer(&mut bytes, &envelope).expect("messages serialise to JSON");
    bytes
}

/// How many bytes [`encode`] would return. It takes about as long, and no memory.
pub fn length<T: Message>(message: &T) -> usize {
    written(&EnvelopeOut { kind: T::KIND, version: T::VERSION, body: message })
}

/// The exact length of a value on the wire: it is encoded, but not stored.
pub(crate) fn written(value: &impl Serialize) -> usize {
    struct Length(usize);

    impl io::Write for Length {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut length = Length(0);
    // As for a message: encoding our types cannot fail.
    serde_json::to_writer(&mut length, value).expect("messages serialise to JSON");
    length.0
}

/// Decodes the message in `bytes`.
///
/// # Errors
/// [`WireError`] when it is another message, a newer version, or none at all.
pub fn decode<T: Message>(bytes: &[u8]) -> Result<T, WireError> {
    let malformed = |source| WireError::Malformed { kind: T::KIND, source };
    let Envelope { kind, version, body } = serde_json::from_slice(bytes).map_err(malformed)?;
    if kind != T::KIND || version > T::VERSION {
        let found = kind;
        let found_version = version;
        return Err(WireError::Unexpected { kind: T::KIND, version: T::VERSION, found, found_version });
    }
    match body {
        Some(body) => Ok(body),
        // The body comes before its kind, or there is no kind.
        None => serde_json::from_slice(bytes).map_err(malformed).map(|EnvelopeBody { body }| body),
    }
}

/// Decodes the body in one pass; [`encode`] writes it last. Messages are long, and each is read only once.
impl<'de, T: Message> Deserialize<'de> for Envelope<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Message> Visitor<'de> for Fields<T> {
            type Value = Envelope<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a message with its kind and version")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut kind = None::<String>;
                let mut version = None::<u16>;
                let mut body = None;
                while let Some(field) = map.next_key()? {
                    let is_expected = kind.as_deref() == Some(T::KIND)
                        && version.is_some_and(|version| version <= T::VERSION);
                    match field {
                        Field::Kind => kind = Some(map.next_value()?),
                        Field::Version => version = Some(map.next_value()?),
                        Field::Body if is_expected => body = Some(map.next_value()?),
                        Field::Body | Field::Other => _ = map.next_value::<IgnoredAny>()?,
                    }
                }
                let kind = kind.ok_or_else(|| A::Error::missing_field("kind"))?;
                let version = version.ok_or_else(|| A::Error::missing_field("version"))?;
                Ok(Envelope { kind, version, body })
            }
        }

        deserializer.deserialize_map(Fields(PhantomData))
    }
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
            origin: "http://example.org".parse().unwrap(),
            terms: Terms::default(),
            items: vec![FetchItem {
                uri: "http://example.org/a".parse().unwrap(),
                seq: Seq::new(7),
                declaration: Default::default(),
                listed_until: None,
                held: Default::default(),
                repair: false,
                held_type: None,
                from: None,
                patch: None,
            }],
        }
    }

    #[test]
    fn a_message_survives_the_wire() {
        let job = job();
        assert_eq!(decode::<FetchJob>(&encode(&job)).unwrap(), job);
        assert_eq!(length(&job), encode(&job).len());
    }

    #[test]
    fn what_a_message_is_may_stand_behind_its_body() {
        let bytes = String::from_utf8(encode(&job())).unwrap();
        let head = r#""kind":"fetch-job","version":1,"#;
        let body = bytes.strip_prefix('{').unwrap().strip_prefix(head).unwrap().strip_suffix('}').unwrap();
        let turned = format!(r#"{{"more":[],{body},"version":1,"kind":"fetch-job"}}"#);
        assert_eq!(decode::<FetchJob>(turned.as_bytes()).unwrap(), decode(bytes.as_bytes()).unwrap());
    }

    #[test]
    fn a_message_without_a_body_or_a_version_is_none() {
        for rubbish in [r#"{"kind":"fetch-job","version":1}"#, r#"{"kind":"fetch-job","body":{}}"#, "[]"] {
            let read = decode::<FetchJob>(rubbish.as_bytes());
            assert!(matches!(read, Err(WireError::Malformed { .. })), "{rubbish}: {read:?}");
        }
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
