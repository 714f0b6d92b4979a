//! Locations of bitstreams.

use fixity::Sha256;
use model::{Location, Method, PackId, PackageId};
use serde::{Deserialize, Serialize};

use super::digest::Raw;

/// A location. What follows from length and digest of its bitstream is left out.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum LocationForm<'a> {
    /// An object with the digest of the bitstream.
    Object,
    /// An object with this digest.
    OtherObject(#[serde(borrow)] Raw<'a>),
    /// A member of a pack.
    Pack(#[serde(borrow)] Member<'a>),
    /// A member of a package.
    Package(#[serde(borrow)] Member<'a>),
}

/// A member of an archive.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Member<'a> {
    source: &'a str,
    #[serde(borrow)]
    archive: Raw<'a>,
    is_deflated: bool,
    /// How many bytes are stored, if not as many as the bitstream has.
    stored_length: Option<u64>,
    offset: u64,
}

/// Length and digest of the bitstream at a location.
#[derive(Debug, Clone, Copy)]
pub(super) struct Content {
    pub(super) length: u64,
    pub(super) sha256: Sha256,
}

/// The bytes of the name of an archive, which a form borrows.
pub(super) fn archive_of(location: &Location) -> [u8; 16] {
    match location {
        Location::Object { .. } => [0; 16],
        Location::Pack { pack, .. } => pack.to_bytes(),
        Location::Package { package, .. } => package.to_bytes(),
    }
}

impl<'a> LocationForm<'a> {
    /// The form of a location. `archive` has the bytes of [`archive_of`].
    pub(super) fn of(location: &'a Location, archive: &'a [u8; 16], content: Option<Content>) -> Self {
        let member = |source: &'a model::SourceId, offset, stored_length, method| Member {
            source: source.as_str(),
            archive: Raw(archive),
            is_deflated: method == Method::Deflated,
            stored_length: Some(stored_length).filter(|stored| content.map(|of| of.length) != Some(*stored)),
            offset,
        };
        match location {
            Location::Object { sha256 } if content.is_some_and(|of| of.sha256 == *sha256) => Self::Object,
            Location::Object { sha256 } => Self::OtherObject(Raw::of(sha256)),
            Location::Pack { source, pack: _, offset, stored_length, method } => {
                Self::Pack(member(source, *offset, *stored_length, *method))
            }
            Location::Package { source, package: _, offset, stored_length, method } => {
                Self::Package(member(source, *offset, *stored_length, *method))
            }
        }
    }

    pub(super) fn read(self, content: Option<Content>) -> Result<Location, String> {
        const MISSING: &str = "its location leaves out what no bitstream says";
        let (Self::Pack(member) | Self::Package(member)) = self else {
            let sha256 = match self {
                Self::OtherObject(sha256) => sha256.sha256()?,
                _ => content.ok_or(MISSING)?.sha256,
            };
            return Ok(Location::Object { sha256 });
        };
        let source = member.source.parse().map_err(|error: model::IdError| error.to_string())?;
        let stored_length = member.stored_length.or(content.map(|of| of.length)).ok_or(MISSING)?;
        let method = if member.is_deflated { Method::Deflated } else { Method::Stored };
        let offset = member.offset;
        let archive = member.archive.array()?;
        Ok(match self {
            Self::Package(_) => {
                let package = PackageId::from_bytes(archive);
                Location::Package { source, package, offset, stored_length, method }
            }
            _ => {
                let pack = PackId::from_bytes(archive);
                Location::Pack { source, pack, offset, stored_length, method }
            }
        })
    }
}
