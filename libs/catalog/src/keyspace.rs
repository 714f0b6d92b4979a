//! Key spaces: the format of the keys and records of each kind.
//!
//! A key is one byte for its space, then the name of the thing in it. The bytes are stable: they are the
//! format.

use std::marker::PhantomData;
use std::ops::Bound;

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest key, in bytes. The LSM allows 64 KiB; a longer name than this is an attack.
pub(crate) const LONGEST_KEY: usize = 32 * 1024;

/// One kind of record and its keys.
pub(crate) trait KeySpace: 'static {
    /// The first byte of its keys.
    const PREFIX: u8;
    /// The name of its records in messages.
    const NAME: &'static str;
    /// The type of a key's name part.
    type Name: Send + 'static;
    /// The type of its records.
    type Record: Serialize + DeserializeOwned + Send + 'static;

    /// Parses the name part of a key.
    fn read_name(name: &[u8]) -> Result<Self::Name, String>;

    /// Appends a record as it is stored: as JSON, unless the space has a form of its own.
    fn write(to: &mut Vec<u8>, record: &Self::Record) {
        write_json(to, record);
    }

    /// Reads a stored record.
    fn read(value: &[u8]) -> Result<Self::Record, String> {
        serde_json::from_slice(value).map_err(|error| error.to_string())
    }

    /// The name part as readable text.
    fn show_name(name: &[u8]) -> String {
        String::from_utf8_lossy(name).into_owned()
    }
}

/// A key of the space `S`.
pub(crate) struct Key<S> {
    bytes: Bytes,
    space: PhantomData<fn() -> S>,
}

/// Declares a space with text names. Its records are JSON, or have a compact form with these two functions.
macro_rules! text_space {
    (
        $(#[$doc:meta])* $space:ident, $registered:expr, $shown:literal, $name:ty => $record:ty
        $(, compact $write:path, $read:path)?
    ) => {
        $(#[$doc])*
        pub(crate) enum $space {}

        impl $crate::keyspace::KeySpace for $space {
            const PREFIX: u8 = $registered.letter();
            const NAME: &'static str = $shown;
            type Name = $name;
            type Record = $record;

            fn read_name(name: &[u8]) -> Result<$name, String> {
                $crate::keyspace::read_text(name).and_then($space::name_of)
            }

            $(
                fn write(to: &mut Vec<u8>, record: &$record) {
                    $write(to, record);
                }

                fn read(value: &[u8]) -> Result<$record, String> {
                    $crate::stored::read_either(value, $read)
                }
            )?
        }
    };
}
pub(crate) use text_space;

impl<S: KeySpace> Key<S> {
    /// The key of the thing called `name`.
    pub(crate) fn of(name: impl AsRef<[u8]>) -> Self {
        let name = name.as_ref();
        let mut bytes = BytesMut::with_capacity(1 + name.len());
        bytes.put_u8(S::PREFIX);
        bytes.put_slice(name);
        Self { bytes: bytes.freeze(), space: PhantomData }
    }

    /// The key as it is stored.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

/// A stored key in messages: the record's kind and its name.
pub(crate) fn show<S: KeySpace>(key: &[u8]) -> String {
    format!("{} {}", S::NAME, S::show_name(key.get(1..).unwrap_or_default()))
}

/// The first key after all those that begin with `prefix`, which has at least the space's byte.
pub(crate) fn end_of(prefix: &[u8]) -> Bytes {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            break;
        }
    }
    // A space's byte is a letter, so the result is never empty.
    end.into()
}

/// All keys of a space.
pub(crate) fn all_of<S: KeySpace>() -> (Bound<Bytes>, Bytes) {
    let first = Key::<S>::of("").bytes().clone();
    let end = end_of(&first);
    (Bound::Included(first), end)
}

/// Writes a record as JSON, so that an operator can read and repair it.
pub(crate) fn write_json(to: &mut Vec<u8>, record: &(impl Serialize + ?Sized)) {
    // Records are structs of strings, numbers and lists: no maps with other keys than text, and no failing
    // `Serialize`.
    serde_json::to_writer(to, record).expect("records serialise to JSON");
}

/// A name part as text.
pub(crate) fn read_text(name: &[u8]) -> Result<String, String> {
    std::str::from_utf8(name).map(str::to_owned).map_err(|error| format!("its key is not text: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change_page::Changes;
    use crate::documents::Documents;
    use crate::held_digests::HeldDigests;
    use crate::meta::Meta;
    use crate::package_names::NamesOfPackages;
    use crate::packages::Packages;
    use crate::pages::LandingPages;
    use crate::pending::Pending;
    use crate::problems::Problems;
    use crate::resources::Resources;
    use crate::runs::Runs;
    use crate::sets::Sets;
    use crate::versions::History;

    #[test]
    fn every_space_has_a_byte_of_its_own() {
        let prefixes = [
            Changes::PREFIX,
            Documents::PREFIX,
            HeldDigests::PREFIX,
            History::PREFIX,
            LandingPages::PREFIX,
            Meta::PREFIX,
            NamesOfPackages::PREFIX,
            Packages::PREFIX,
            Pending::PREFIX,
            Problems::PREFIX,
            Resources::PREFIX,
            Runs::PREFIX,
            Sets::PREFIX,
        ];
        let mut unique = prefixes.to_vec();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), prefixes.len());
        assert!(prefixes.iter().all(u8::is_ascii_lowercase));
    }

    #[test]
    fn the_end_of_a_prefix_lies_right_after_all_that_begin_with_it() {
        assert_eq!(end_of(b"ra"), b"rb".as_slice());
        assert_eq!(end_of(b"r\xff\xff"), b"s".as_slice());
        assert!(end_of(b"r").as_ref() > b"r\xff\xff\xff".as_slice());
    }
}
