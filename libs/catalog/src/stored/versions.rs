//! Kept versions of resources.

use std::borrow::Cow;

use jiff::Timestamp;
use model::{Linked, Version, Versions};
use serde::{Deserialize, Serialize};

use super::bitstream::{Around, BitstreamForm, Keys};
use super::declaration::DeclarationForm;
use super::listing::ListingForm;
use super::time::Time;
use super::{COMPACT, json_unless_default, read_json, read_next, write};

/// What is said of all versions; each of them follows.
#[derive(Debug, Serialize, Deserialize)]
struct VersionsForm<'a> {
    /// [`RareOfAll`] as JSON.
    rare: Option<&'a str>,
}

/// A version.
#[derive(Debug, Serialize, Deserialize)]
struct VersionForm<'a> {
    #[serde(borrow)]
    listing: ListingForm<'a>,
    /// [`Rare`] as JSON.
    rare: Option<&'a str>,
    #[serde(borrow)]
    bitstream: BitstreamForm<'a>,
    #[serde(borrow)]
    declaration: DeclarationForm<'a>,
    from: Time,
    until: Time,
}

/// Fields that few resources have. A later optional field goes here.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct RareOfAll {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
}

/// Fields that few versions have. A later optional field goes here.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Rare<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_from: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lost: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    linked: Option<Cow<'a, Linked>>,
}

/// Writes versions in the compact form.
pub(crate) fn write_versions(to: &mut Vec<u8>, versions: &Versions) {
    let Versions { kept, since } = versions;
    let rare = json_unless_default(&RareOfAll { since: *since });
    to.push(COMPACT);
    write(to, &VersionsForm { rare: rare.as_deref() });
    for version in kept {
        write_version(to, version);
    }
}

/// Reads versions from their compact form.
pub(crate) fn read_versions(form: &[u8]) -> Result<Versions, String> {
    let (all, mut rest) = read_next::<VersionsForm<'_>>(form)?;
    let RareOfAll { since } = all.rare.map_or(Ok(RareOfAll::default()), read_json)?;
    let mut kept = Vec::new();
    while !rest.is_empty() {
        let (version, behind) = read_next::<VersionForm<'_>>(rest)?;
        kept.push(version.read()?);
        rest = behind;
    }
    Ok(Versions { kept, since })
}

fn write_version(to: &mut Vec<u8>, version: &Version) {
    let Version { bitstream, declaration, listing, from, until, source_from, lost } = version;
    let (listing, linked) = ListingForm::of(listing);
    let linked = linked.map(Cow::Borrowed);
    let rare = json_unless_default(&Rare { source_from: *source_from, lost: *lost, linked });
    let keys = Keys::of(bitstream);
    let around = Around { lastmod: declaration.lastmod, written_at: *from };
    let form = VersionForm {
        listing,
        rare: rare.as_deref(),
        bitstream: BitstreamForm::of(bitstream, &keys, around),
        declaration: DeclarationForm::of(declaration, Some(bitstream)),
        from: (*from).into(),
        until: (*until).into(),
    };
    write(to, &form);
}

impl VersionForm<'_> {
    fn read(self) -> Result<Version, String> {
        let Rare { source_from, lost, linked } = self.rare.map_or(Ok(Rare::default()), read_json)?;
        let from = self.from.read()?;
        let lastmod = Time::read_optional(self.declaration.lastmod)?;
        let bitstream = self.bitstream.read(Around { lastmod, written_at: from })?;
        Ok(Version {
            declaration: self.declaration.read(Some(&bitstream))?,
            listing: self.listing.read(linked.map(Cow::into_owned))?,
            bitstream,
            from,
            until: self.until.read()?,
            source_from,
            lost,
        })
    }
}
