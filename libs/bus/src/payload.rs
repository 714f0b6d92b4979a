//! The payload of a message: bytes from a server, or the message itself if it never leaves the process.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use model::WireError;

use crate::{BusError, Queue};

/// The longest payload that any bus accepts, in bytes: a NATS server's default of 1 MiB, less room for headers.
pub const MAX_PAYLOAD: usize = 1024 * 1024 - 4096;

/// The payload of a message: bytes from a server, or the message itself if sender and reader share a process. Readers
/// see no difference ([`read`](Self::read)). Cheap to clone.
///
/// A message is shared, never copied. A bus keeps it for redelivery while a worker reads it.
#[derive(Clone)]
pub struct Payload(Form);

/// A message of a queue that carries two kinds.
#[derive(Debug)]
pub enum OneOf<A, B> {
    /// Of the first kind.
    First(Arc<A>),
    /// Of the second kind.
    Second(Arc<B>),
}

#[derive(Clone)]
enum Form {
    Written(Bytes),
    Whole(Arc<dyn Whole>),
}

/// A message of any kind.
trait Whole: Any + Send + Sync {
    fn kind(&self) -> &'static str;
    fn version(&self) -> u16;
    fn size(&self) -> Option<usize>;
    fn length(&self) -> usize;
    fn encode(&self) -> Vec<u8>;
}

impl<M: model::Message> Whole for M {
    fn kind(&self) -> &'static str {
        M::KIND
    }

    fn version(&self) -> u16 {
        M::VERSION
    }

    fn size(&self) -> Option<usize> {
        model::Message::size(self)
    }

    fn length(&self) -> usize {
        model::length(self)
    }

    fn encode(&self) -> Vec<u8> {
        model::encode(self)
    }
}

impl Payload {
    /// A message that is serialized only if it leaves the process.
    pub fn of<M: model::Message>(message: Arc<M>) -> Self {
        Self(Form::Whole(message))
    }

    /// The message, parsed from the bytes or the very one that was sent. It is shared, so a reader that wants to change
    /// it copies what it needs.
    ///
    /// # Errors
    /// [`WireError`], the same for both forms: it is another message, a newer version, or no message at all.
    pub fn read<M: model::Message>(&self) -> Result<Arc<M>, WireError> {
        let whole = match &self.0 {
            Form::Written(bytes) => return model::decode(bytes).map(Arc::new),
            Form::Whole(whole) => whole,
        };
        let found = whole.kind();
        let found_version = whole.version();
        let any: Arc<dyn Any + Send + Sync> = Arc::clone(whole) as _;
        any.downcast().map_err(|_| WireError::Unexpected {
            kind: M::KIND,
            version: M::VERSION,
            found: found.to_owned(),
            found_version,
        })
    }

    /// The message of a queue that carries two kinds. The kind in the envelope tells which of them it is.
    ///
    /// # Errors
    /// As [`read`](Self::read), when it is neither.
    pub fn read_one_of<A: model::Message, B: model::Message>(&self) -> Result<OneOf<A, B>, WireError> {
        match self.read::<A>() {
            Err(WireError::Unexpected { found, .. }) if found == B::KIND => {
                self.read::<B>().map(OneOf::Second)
            }
            read => read.map(OneOf::First),
        }
    }

    /// The serialized form. A message is serialized anew each time.
    pub fn to_bytes(&self) -> Bytes {
        match &self.0 {
            Form::Written(bytes) => bytes.clone(),
            Form::Whole(whole) => whole.encode().into(),
        }
    }

    /// The same payload as bytes, as if a server had delivered it.
    #[must_use]
    pub fn written(self) -> Self {
        self.to_bytes().into()
    }

    /// Whether it is bytes.
    pub fn is_written(&self) -> bool {
        matches!(self.0, Form::Written(_))
    }

    /// Refuses a payload that is too long for any bus, even if this bus does not serialize it. So whatever works in one
    /// process works in a fleet. A message that knows that it is short enough is not serialized for the check.
    ///
    /// # Errors
    /// [`BusError::TooLarge`] over [`MAX_PAYLOAD`].
    pub(crate) fn fits(&self, queue: &Queue) -> Result<(), BusError> {
        let bytes = match &self.0 {
            Form::Written(bytes) => bytes.len(),
            Form::Whole(whole) if whole.size().is_some_and(|size| size <= MAX_PAYLOAD) => return Ok(()),
            Form::Whole(whole) => whole.length(),
        };
        if bytes > MAX_PAYLOAD {
            return Err(BusError::TooLarge { queue: queue.clone(), bytes, limit: MAX_PAYLOAD });
        }
        Ok(())
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Written(bytes) => f.debug_tuple("Payload").field(bytes).finish(),
            Form::Whole(whole) => write!(f, "Payload(a {})", whole.kind()),
        }
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Self {
        Self(Form::Written(bytes))
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

impl From<&'static str> for Payload {
    fn from(text: &'static str) -> Self {
        Bytes::from(text).into()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde::{Deserialize, Serialize, Serializer};

    use super::*;

    static WRITTEN: AtomicUsize = AtomicUsize::new(0);

    /// A message that counts how often it is serialized, and that may know its length.
    #[derive(Debug, PartialEq, Deserialize)]
    struct Counted {
        filling: String,
        #[serde(default)]
        told: Option<usize>,
    }

    impl Serialize for Counted {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            WRITTEN.fetch_add(1, Ordering::SeqCst);
            std::collections::BTreeMap::from([("filling", &self.filling)]).serialize(serializer)
        }
    }

    impl model::Message for Counted {
        const KIND: &'static str = "counted";
        const VERSION: u16 = 2;

        fn size(&self) -> Option<usize> {
            self.told
        }
    }

    #[derive(Debug, Serialize, Deserialize)]
    struct Other;

    #[test]
    fn a_message_of_two_kinds_is_read_by_the_kind_in_its_envelope() {
        let counted = || Payload::of(Arc::new(Counted { filling: "a".to_owned(), told: None }));
        let other = || Payload::of(Arc::new(Other));
        for form in [Payload::clone as fn(&Payload) -> Payload, |payload| payload.clone().written()] {
            let read = |payload: Payload| form(&payload).read_one_of::<Counted, Other>();
            assert!(matches!(read(counted()), Ok(OneOf::First(_))));
            assert!(matches!(read(other()), Ok(OneOf::Second(_))));
            assert!(form(&other()).read_one_of::<Counted, Counted>().is_err());
        }
    }

    impl model::Message for Other {
        const KIND: &'static str = "other";
        const VERSION: u16 = 1;
    }

    fn queue() -> Queue {
        Queue::Verify { source: "s".parse().unwrap() }
    }

    fn whole(filling: impl Into<String>, told: Option<usize>) -> Payload {
        Payload::of(Arc::new(Counted { filling: filling.into(), told }))
    }

    #[test]
    fn a_whole_message_is_written_only_to_be_bytes_or_to_be_weighed() {
        let begin = WRITTEN.load(Ordering::SeqCst);
        let written = || WRITTEN.load(Ordering::SeqCst) - begin;
        let sent = Arc::new(Counted { filling: "a".to_owned(), told: Some(100) });
        let payload = Payload::of(Arc::clone(&sent));
        payload.fits(&queue()).unwrap();
        assert!(Arc::ptr_eq(&payload.read::<Counted>().unwrap(), &sent), "it is the one that was sent");
        assert_eq!(written(), 0);
        assert_eq!(
            *payload.clone().written().read::<Counted>().unwrap(),
            Counted { told: None, filling: "a".into() }
        );
        assert_eq!(written(), 1);

        whole("a", None).fits(&queue()).unwrap();
        assert_eq!(written(), 2, "nobody knows how long it is");
        whole("a", Some(MAX_PAYLOAD)).fits(&queue()).unwrap();
        assert_eq!(written(), 2);
        whole("a", Some(MAX_PAYLOAD + 1)).fits(&queue()).unwrap();
        assert_eq!(written(), 3, "it may be too long, and is not");
        let refused = whole("a".repeat(MAX_PAYLOAD), Some(MAX_PAYLOAD + 1)).fits(&queue());
        assert!(
            matches!(refused, Err(BusError::TooLarge { bytes, .. }) if bytes > MAX_PAYLOAD),
            "{refused:?}"
        );
    }

    #[test]
    fn another_message_is_refused_in_the_same_words_whole_and_written() {
        let payload = Payload::of(Arc::new(Other));
        let refused = payload.read::<Counted>().unwrap_err().to_string();
        assert_eq!(refused, "expected a counted message of version 2 or older, found other 1");
        assert_eq!(payload.written().read::<Counted>().unwrap_err().to_string(), refused);
    }
}
