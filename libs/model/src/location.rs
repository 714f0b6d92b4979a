//! Locations of bitstreams.

use fixity::Sha256;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{PackId, PackageId, SourceId};

/// The location of a verified bitstream in the store. Its bytes never change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", try_from = "Read")]
pub enum Location {
    /// An object of its own, addressed by its content.
    Object {
        /// The content's digest, which is the object's name.
        sha256: Sha256,
    },
    /// A member of a pack (`packs/<source>/<pack>.zip`).
    Pack {
        /// The Source whose pack it is.
        source: SourceId,
        /// The pack.
        pack: PackId,
        /// Offset of the member's stored bytes, from the start of the pack.
        offset: u64,
        /// How many bytes are stored.
        stored_length: u64,
        /// How they are stored.
        method: Method,
    },
    /// A member of a dump's package, used in place (`packages/<source>/<package>`).
    Package {
        /// The Source whose package it is.
        source: SourceId,
        /// The package.
        package: PackageId,
        /// Offset of the member's stored bytes, from the start of the package. 0 in the location of a whole
        /// package.
        offset: u64,
        /// How many bytes are stored.
        stored_length: u64,
        /// How they are stored.
        method: Method,
    },
}

/// The range of a member's stored bytes in an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Their offset from the start of the archive.
    pub offset: u64,
    /// Their number.
    pub stored_length: u64,
    /// How they are stored.
    pub method: Method,
}

/// A compacted pack: its live bitstreams were moved to other packs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactedPack {
    /// The pack.
    pub pack: PackId,
    /// When the records began to point to the other packs.
    pub at: Timestamp,
}

impl Location {
    /// Whether another location is in the same object.
    pub fn shares_object_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Object { sha256 }, Self::Object { sha256: other }) => sha256 == other,
            (Self::Pack { source, pack, .. }, Self::Pack { source: of, pack: other, .. }) => {
                (source, pack) == (of, other)
            }
            (Self::Package { source, package, .. }, Self::Package { source: of, package: other, .. }) => {
                (source, package) == (of, other)
            }
            _ => false,
        }
    }

    /// The range of a bitstream in its object; none for one with an object of its own.
    pub fn span(&self) -> Option<Span> {
        match *self {
            Self::Object { .. } => None,
            Self::Pack { offset, stored_length, method, .. }
            | Self::Package { offset, stored_length, method, .. } => {
                Some(Span { offset, stored_length, method })
            }
        }
    }
}

/// How a member's bytes are stored in its archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Uncompressed.
    Stored,
    /// Deflate (RFC 1951), without any frame around it.
    Deflated,
}

/// The decoded form of a location. Serde's own decoder of such an enum would first buffer all fields and then
/// decode them again, and each resource has a location.
#[derive(Deserialize)]
struct Read {
    kind: Kind,
    sha256: Option<Sha256>,
    source: Option<SourceId>,
    pack: Option<PackId>,
    package: Option<PackageId>,
    offset: Option<u64>,
    stored_length: Option<u64>,
    method: Option<Method>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Object,
    Pack,
    Package,
}

impl TryFrom<Read> for Location {
    type Error = String;

    fn try_from(read: Read) -> Result<Self, String> {
        fn there<T>(field: Option<T>, name: &str) -> Result<T, String> {
            field.ok_or_else(|| format!("missing field `{name}` of a location"))
        }
        let Read { kind, sha256, source, pack, package, offset, stored_length, method } = read;
        if let Kind::Object = kind {
            return Ok(Self::Object { sha256: there(sha256, "sha256")? });
        }
        let source = there(source, "source")?;
        let offset = there(offset, "offset")?;
        let stored_length = there(stored_length, "stored_length")?;
        let method = there(method, "method")?;
        Ok(match kind {
            Kind::Package => {
                let package = there(package, "package")?;
                Self::Package { source, package, offset, stored_length, method }
            }
            Kind::Object | Kind::Pack => {
                let pack = there(pack, "pack")?;
                Self::Pack { source, pack, offset, stored_length, method }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_share_an_object_if_all_of_its_name_is_equal() {
        let (one, other): (SourceId, SourceId) = ("s".parse().unwrap(), "t".parse().unwrap());
        let (pack, package) = (PackId::fresh(), PackageId::fresh());
        let method = Method::Stored;
        let in_pack = |source: &SourceId, pack, offset| {
            let source = source.clone();
            Location::Pack { source, pack, offset, stored_length: 3, method }
        };
        let in_package = |source: &SourceId, package| {
            let source = source.clone();
            Location::Package { source, package, offset: 0, stored_length: 3, method }
        };
        let object = |bytes: &[u8]| Location::Object { sha256: Sha256::of(bytes) };
        assert!(in_pack(&one, pack, 0).shares_object_with(&in_pack(&one, pack, 70)));
        assert!(in_package(&one, package).shares_object_with(&in_package(&one, package)));
        assert!(object(b"a").shares_object_with(&object(b"a")));
        for (this, that) in [
            (in_pack(&one, pack, 0), in_pack(&other, pack, 0)),
            (in_pack(&one, pack, 0), in_pack(&one, PackId::fresh(), 0)),
            (in_package(&one, package), in_package(&other, package)),
            (in_package(&one, package), in_package(&one, PackageId::fresh())),
            (in_pack(&one, pack, 0), in_package(&one, package)),
            (object(b"a"), object(b"b")),
        ] {
            assert!(!this.shares_object_with(&that) && !that.shares_object_with(&this), "{this:?} {that:?}");
        }
    }

    #[test]
    fn each_kind_is_read_as_it_is_written_and_not_without_one_of_its_fields() {
        let source = SourceId::try_from("s".to_owned()).unwrap();
        let span = (7, 9, Method::Deflated);
        let (offset, stored_length, method) = span;
        let pack = PackId::fresh();
        let package = PackageId::fresh();
        for location in [
            Location::Object { sha256: Sha256::of(b"abc") },
            Location::Pack { source: source.clone(), pack, offset, stored_length, method },
            Location::Package { source, package, offset, stored_length, method },
        ] {
            let written = serde_json::to_value(&location).unwrap();
            assert_eq!(serde_json::from_value::<Location>(written.clone()).unwrap(), location);
            for field in written.as_object().unwrap().keys() {
                let mut short = written.clone();
                short.as_object_mut().unwrap().remove(field);
                let error = serde_json::from_value::<Location>(short).unwrap_err().to_string();
                assert!(error.contains(field), "{error}");
            }
        }
    }
}
