//! Bitstreams.

use fixity::Computed;
use jiff::Timestamp;
use model::{Assurance, Bitstream, HeldBitstream, Validators};
use serde::{Deserialize, Serialize};

use super::digest::{DigestForm, Raw, beside_sha256};
use super::location::{Content, LocationForm};
use super::time::{HttpDate, Time};

/// A bitstream.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct BitstreamForm<'a> {
    assurance: u8,
    media_type: Option<&'a str>,
    encoding: Option<&'a str>,
    final_url: Option<&'a str>,
    #[serde(borrow)]
    beside_sha256: Vec<DigestForm<'a>>,
    #[serde(borrow)]
    location: LocationForm<'a>,
    length: u64,
    #[serde(borrow)]
    sha256: Raw<'a>,
    etag: Option<&'a str>,
    #[serde(borrow)]
    last_modified: HttpDate<'a>,
    /// When it was stored, if not when the record was written.
    stored_at: Option<Time>,
}

/// What is known around a bitstream, and not repeated in its form.
#[derive(Debug, Clone, Copy)]
pub(super) struct Around {
    /// The declared last modification.
    pub(super) lastmod: Option<Timestamp>,
    /// When the record was written.
    pub(super) written_at: Timestamp,
}

/// Bytes that a form borrows: the digest, and the name of the archive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keys {
    sha256: fixity::Sha256,
    archive: [u8; 16],
}

impl Keys {
    pub(super) fn of(bitstream: &Bitstream) -> Self {
        let archive = super::location::archive_of(&bitstream.location);
        Self { sha256: bitstream.computed.sha256(), archive }
    }
}

impl<'a> BitstreamForm<'a> {
    pub(super) fn of(bitstream: &'a Bitstream, keys: &'a Keys, around: Around) -> Self {
        let Bitstream {
            location,
            computed,
            assurance,
            media_type,
            encoding,
            validators,
            final_url,
            stored_at,
        } = bitstream;
        let Validators { etag, last_modified } = validators;
        let content = Content { length: computed.length(), sha256: keys.sha256 };
        Self {
            assurance: match assurance {
                Assurance::Digest => 0,
                Assurance::Length => 1,
                Assurance::None => 2,
            },
            media_type: media_type.as_deref(),
            encoding: encoding.as_deref(),
            final_url: final_url.as_deref(),
            beside_sha256: beside_sha256(computed),
            location: LocationForm::of(location, &keys.archive, Some(content)),
            length: computed.length(),
            sha256: Raw::of(&keys.sha256),
            etag: etag.as_deref(),
            last_modified: HttpDate::of(last_modified.as_deref(), around.lastmod),
            stored_at: (*stored_at != around.written_at).then_some((*stored_at).into()),
        }
    }

    pub(super) fn read(&self, around: Around) -> Result<Bitstream, String> {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let HeldBitstream { location, computed } = self.held()?;
        Ok(Bitstream {
            location,
            computed,
            assurance: match self.assurance {
                0 => Assurance::Digest,
                1 => Assurance::Length,
                2 => Assurance::None,
                other => return Err(format!("{other} is no assurance")),
            },
            media_type: text(self.media_type),
            encoding: text(self.encoding),
            validators: Validators {
                etag: text(self.etag),
                last_modified: self.last_modified.read(around.lastmod)?,
            },
            final_url: text(self.final_url),
            stored_at: Time::read_optional(self.stored_at)?.unwrap_or(around.written_at),
        })
    }

    /// Location, length and digests.
    pub(super) fn held(&self) -> Result<HeldBitstream, String> {
        let sha256 = self.sha256.sha256()?;
        let location = self.location.read(Some(Content { length: self.length, sha256 }))?;
        let mut digests = Vec::with_capacity(1 + self.beside_sha256.len());
        digests.push(sha256.into());
        for digest in &self.beside_sha256 {
            digests.push(digest.read()?);
        }
        let computed = Computed::new(self.length, digests).map_err(|error| error.to_string())?;
        Ok(HeldBitstream { location, computed })
    }
}
