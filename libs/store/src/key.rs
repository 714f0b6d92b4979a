//! Object keys: the only module that composes them.

use std::fmt;
use std::str::FromStr;

use fixity::Sha256;
use model::{DamageId, Location, PackId, PackageId, Persisted, Seq, SourceId};
use object_store::path::Path;

/// The key of an object. No other code of the project composes one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// A bitstream of its own: `bitstreams/sha256/ab/cd/<hex>`.
    Bitstream(Sha256),
    /// A pack of small bitstreams: `packs/<source>/<ulid>.zip`.
    Pack {
        /// The Source whose bitstreams it holds.
        source: SourceId,
        /// The pack.
        pack: PackId,
    },
    /// A package of a dump, as received: `packages/<source>/<ulid>`.
    Package {
        /// The Source whose package it is.
        source: SourceId,
        /// The package.
        package: PackageId,
    },
    /// The checkpoint of a package upload: `uploads/<source>/<plan>.json`.
    Upload {
        /// The Source whose package it is.
        source: SourceId,
        /// The plan that the package is fetched for.
        seq: Seq,
    },
    /// The bytes received behind its last part: `uploads/<source>/<plan>.tail`.
    UploadTail {
        /// The Source whose package it is.
        source: SourceId,
        /// The plan that the package is fetched for.
        seq: Seq,
    },
    /// A Source's catalog, a folder of its own: `catalogs/<source>`.
    Catalog(SourceId),
    /// The marker of a Source in this store: `sources/<source>.json`.
    Source(SourceId),
    /// The move of a Source to another entry URL: `moves/<source>.json`, by the Source that was left.
    Move(SourceId),
    /// Where something of this store is published: `publications/.bases/<hex>.json`, by the digest of the base URL. No
    /// Source has such a name.
    PublicationBase(Sha256),
    /// The object that tests conditional puts: `probe/conditional-put`.
    Probe,
    /// A quarantined bitstream: `damaged/<ulid>/<hex>`, by the digest that it should have.
    Damaged {
        /// The time and a unique number.
        id: DamageId,
        /// The digest that it should have.
        sha256: Sha256,
    },
    /// Exists while bitstreams are being removed: `gc/sweeping`.
    Sweeping,
}

/// A text that is not the key of one of our objects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a key of Thresher's store")]
pub struct KeyError(String);

const BITSTREAMS: &str = Persisted::Bitstreams.name();
const PACKS: &str = Persisted::Packs.name();
const PACKAGES: &str = Persisted::Packages.name();
const UPLOADS: &str = Persisted::Uploads.name();
const CATALOGS: &str = Persisted::Catalogs.name();
const SOURCES: &str = Persisted::SourceMarkers.name();
const MOVES: &str = Persisted::Moves.name();
const DAMAGED: &str = Persisted::Damaged.name();
const PROBE: &str = Persisted::Probe.name();
const PUBLICATIONS: &str = Persisted::Publications.name();
/// The folder of bases among those of publications.
const BASES: &str = ".bases";
const SWEEPING: &str = Persisted::SweepLock.name();

impl Key {
    /// The object that contains a location.
    pub fn of(location: &Location) -> Self {
        match location {
            Location::Object { sha256 } => Self::Bitstream(*sha256),
            Location::Pack { source, pack, .. } => Self::Pack { source: source.clone(), pack: *pack },
            Location::Package { source, package, .. } => {
                Self::Package { source: source.clone(), package: *package }
            }
        }
    }

    /// The key as the object store takes it.
    pub fn path(&self) -> Path {
        // Keys are made of lower-case letters, digits, `-`, `.` and `/`: nothing here is ever escaped.
        Path::from(self.to_string())
    }

    /// The media type the object is stored with, where the store keeps one.
    pub fn content_type(&self) -> &'static str {
        match self {
            Self::Bitstream(_)
            | Self::Catalog(_)
            | Self::Damaged { .. }
            | Self::Package { .. }
            | Self::UploadTail { .. } => "application/octet-stream",
            Self::Pack { .. } => "application/zip",
            Self::Source(_) | Self::Move(_) | Self::PublicationBase(_) | Self::Upload { .. } => {
                "application/json"
            }
            Self::Probe | Self::Sweeping => "text/plain",
        }
    }

    /// The folder of all Sources' markers.
    pub fn sources() -> Path {
        Path::from(SOURCES)
    }

    /// The folder of all moves.
    pub fn moves() -> Path {
        Path::from(MOVES)
    }

    /// The folder of all Sources' catalogs.
    pub fn catalogs() -> Path {
        Path::from(CATALOGS)
    }

    /// The folder of all bitstreams that are objects of their own.
    pub fn bitstreams() -> Path {
        Path::from(BITSTREAMS)
    }

    /// The folder of those bitstreams whose digest begins with this byte.
    pub fn bitstreams_of(first: u8) -> Path {
        Path::from(format!("{BITSTREAMS}/{first:02x}"))
    }

    /// The folder of a Source's packages.
    pub fn packages(source: &SourceId) -> Path {
        Path::from(format!("{PACKAGES}/{source}"))
    }

    /// The folder of a Source's unfinished uploads.
    pub fn uploads(source: &SourceId) -> Path {
        Path::from(format!("{UPLOADS}/{source}"))
    }

    /// The folders with a subfolder per Source, except the catalogs'.
    pub fn folders_of_sources() -> [Path; 3] {
        [PACKS, PACKAGES, UPLOADS].map(Path::from)
    }

    /// The folder of the documents that are published of a Source.
    pub fn publication(source: &SourceId) -> Path {
        Path::from(format!("{PUBLICATIONS}/{source}"))
    }

    /// The folder of the bases at which something is published.
    pub fn publication_bases() -> Path {
        Path::from(format!("{PUBLICATIONS}/{BASES}"))
    }

    /// The folder of a Source's packs.
    pub fn packs(source: &SourceId) -> Path {
        Path::from(format!("{PACKS}/{source}"))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bitstream(sha256) => {
                let hex = sha256.to_string();
                write!(f, "{BITSTREAMS}/{}/{}/{hex}", &hex[..2], &hex[2..4])
            }
            Self::Pack { source, pack } => write!(f, "{PACKS}/{source}/{pack}.zip"),
            Self::Package { source, package } => write!(f, "{PACKAGES}/{source}/{package}"),
            Self::Upload { source, seq } => write!(f, "{UPLOADS}/{source}/{}.json", seq.get()),
            Self::UploadTail { source, seq } => write!(f, "{UPLOADS}/{source}/{}.tail", seq.get()),
            Self::Catalog(source) => write!(f, "{CATALOGS}/{source}"),
            Self::Source(source) => write!(f, "{SOURCES}/{source}.json"),
            Self::Move(source) => write!(f, "{MOVES}/{source}.json"),
            Self::Damaged { id, sha256 } => write!(f, "{DAMAGED}/{id}/{sha256}"),
            Self::PublicationBase(sha256) => write!(f, "{PUBLICATIONS}/{BASES}/{sha256}.json"),
            Self::Probe => f.write_str(PROBE),
            Self::Sweeping => f.write_str(SWEEPING),
        }
    }
}

impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let key = parse(text).ok_or_else(|| KeyError(text.to_owned()))?;
        // Only this spelling is accepted: another would name another object.
        if key.to_string() == text { Ok(key) } else { Err(KeyError(text.to_owned())) }
    }
}

fn parse(text: &str) -> Option<Key> {
    if text == PROBE {
        return Some(Key::Probe);
    }
    if text == SWEEPING {
        return Some(Key::Sweeping);
    }
    let (folder, rest) = text.split_once('/')?;
    match folder {
        PACKS => {
            let (source, name) = rest.split_once('/')?;
            let pack = name.strip_suffix(".zip")?.parse().ok()?;
            Some(Key::Pack { source: source.parse().ok()?, pack })
        }
        PACKAGES => {
            let (source, name) = rest.split_once('/')?;
            Some(Key::Package { source: source.parse().ok()?, package: name.parse().ok()? })
        }
        UPLOADS => {
            let (source, name) = rest.split_once('/')?;
            let (seq, kind) = name.split_once('.')?;
            let source = source.parse().ok()?;
            let seq = Seq::new(seq.parse().ok()?);
            match kind {
                "json" => Some(Key::Upload { source, seq }),
                "tail" => Some(Key::UploadTail { source, seq }),
                _ => None,
            }
        }
        DAMAGED => {
            let (id, hex) = rest.split_once('/')?;
            Some(Key::Damaged { id: id.parse().ok()?, sha256: hex.parse().ok()? })
        }
        CATALOGS => Some(Key::Catalog(rest.parse().ok()?)),
        PUBLICATIONS => {
            let name = rest.strip_prefix(BASES)?.strip_prefix('/')?;
            Some(Key::PublicationBase(name.strip_suffix(".json")?.parse().ok()?))
        }
        MOVES => Some(Key::Move(rest.strip_suffix(".json")?.parse().ok()?)),
        SOURCES => Some(Key::Source(rest.strip_suffix(".json")?.parse().ok()?)),
        _ => Some(Key::Bitstream(text.rsplit('/').next()?.parse().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Vec<Key> {
        let source: SourceId = "example-org-0123".parse().unwrap();
        vec![
            Key::Bitstream(Sha256::of(b"a")),
            Key::Pack { source: source.clone(), pack: PackId::fresh() },
            Key::Package { source: source.clone(), package: PackageId::fresh() },
            Key::Upload { source: source.clone(), seq: Seq::new(7) },
            Key::UploadTail { source: source.clone(), seq: Seq::new(u64::MAX) },
            Key::Catalog(source.clone()),
            Key::Source(source.clone()),
            Key::Move(source),
            Key::PublicationBase(Sha256::of(b"http://h/")),
            Key::Damaged { id: DamageId::fresh(), sha256: Sha256::of(b"a") },
            Key::Probe,
            Key::Sweeping,
        ]
    }

    #[test]
    fn every_key_is_read_back_and_reaches_the_store_unescaped() {
        for key in keys() {
            assert_eq!(key.to_string().parse::<Key>().unwrap(), key);
            assert_eq!(key.path().as_ref(), key.to_string());
        }
    }

    #[test]
    fn a_bitstream_lies_in_folders_of_its_first_digits() {
        let key = Key::Bitstream(Sha256::of(b""));
        assert_eq!(
            key.to_string(),
            "bitstreams/sha256/e3/b0/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }

    #[test]
    fn other_names_and_other_spellings_are_refused() {
        let hex = Sha256::of(b"").to_string();
        for bad in [
            "",
            "packs/a",
            "packs/a/b.zip",
            "sources/a.xml",
            "uploads/a/07.json",
            "uploads/a/7.part",
            "uploads/a/7.lock",
            "damaged/7",
            "catalogs/../x",
            &format!("bitstreams/sha256/00/00/{hex}"),
            &format!("bitstreams/sha256/e3/b0/{}", hex.to_uppercase()),
            &hex,
        ] {
            assert!(bad.parse::<Key>().is_err(), "{bad}");
        }
    }
}
