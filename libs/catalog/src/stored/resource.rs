//! Records of resources.

use std::borrow::Cow;

use jiff::Timestamp;
use model::{Absence, HeldListing, Holding, Linked, ResourceRecord, SetId};
use serde::{Deserialize, Serialize};

use super::bitstream::{Around, BitstreamForm, Keys};
use super::declaration::DeclarationForm;
use super::listing::ListingForm;
use super::time::Time;
use super::{COMPACT, json_unless_default, read, read_json, write};

/// The record of a resource.
#[derive(Debug, Serialize, Deserialize)]
struct ResourceForm<'a> {
    #[serde(borrow)]
    listing: ListingForm<'a>,
    /// The sets that list it; none if only that of the listing does.
    sets: Option<Vec<&'a str>>,
    /// [`Rare`] as JSON.
    rare: Option<&'a str>,
    #[serde(borrow)]
    deleted: Option<BitstreamForm<'a>>,
    #[serde(borrow)]
    bitstream: Option<BitstreamForm<'a>>,
    #[serde(borrow)]
    declaration: DeclarationForm<'a>,
    settled_at: Time,
}

/// Fields that few resources have. A later optional field goes here.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Rare<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    collected: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    absent: Option<Cow<'a, Absence>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    linked: Option<Cow<'a, Linked>>,
}

/// Writes a record in the compact form.
pub(crate) fn write_resource(to: &mut Vec<u8>, record: &ResourceRecord) {
    let ResourceRecord { bitstream, declaration, listing, sets, deleted, collected, absent, settled_at } =
        record;
    let (listing_form, linked) = ListingForm::of(listing);
    let rare = json_unless_default(&Rare {
        collected: *collected,
        absent: absent.as_ref().map(Cow::Borrowed),
        linked: linked.map(Cow::Borrowed),
    });
    let around = Around { lastmod: declaration.lastmod, written_at: *settled_at };
    let [deleted_keys, keys] = [deleted, bitstream].map(|bitstream| bitstream.as_ref().map(Keys::of));
    let form = |bitstream, keys| Some(BitstreamForm::of(bitstream, keys, around));
    let is_of_one_set = matches!(sets.as_slice(), [only] if *only == listing.set);
    let form = ResourceForm {
        listing: listing_form,
        sets: (!is_of_one_set).then(|| sets.iter().map(SetId::as_str).collect()),
        rare: rare.as_deref(),
        deleted: deleted.as_ref().zip(deleted_keys.as_ref()).and_then(|(it, keys)| form(it, keys)),
        bitstream: bitstream.as_ref().zip(keys.as_ref()).and_then(|(it, keys)| form(it, keys)),
        declaration: DeclarationForm::of(declaration, bitstream.as_ref().or(deleted.as_ref())),
        settled_at: (*settled_at).into(),
    };
    to.push(COMPACT);
    write(to, &form);
}

/// Reads a record from its compact form.
pub(crate) fn read_resource(form: &[u8]) -> Result<ResourceRecord, String> {
    let form: ResourceForm<'_> = read(form)?;
    let Rare { collected, absent, linked } = form.rare()?;
    let settled_at = form.settled_at.read()?;
    let around = Around { lastmod: Time::read_optional(form.declaration.lastmod)?, written_at: settled_at };
    let bitstream = form.bitstream.as_ref().map(|form| form.read(around)).transpose()?;
    let deleted = form.deleted.as_ref().map(|form| form.read(around)).transpose()?;
    Ok(ResourceRecord {
        declaration: form.declaration.read(bitstream.as_ref().or(deleted.as_ref()))?,
        listing: form.listing.read(linked.map(Cow::into_owned))?,
        sets: sets(form.sets, form.listing),
        bitstream,
        deleted,
        collected,
        absent: absent.map(Cow::into_owned),
        settled_at,
    })
}

/// Reads the stored version from the compact form of a record.
pub(crate) fn read_holding(form: &[u8]) -> Result<Holding, String> {
    let form: ResourceForm<'_> = read(form)?;
    let Rare { collected: _, absent, linked } = form.rare()?;
    let linked = linked.map(|linked| Box::new(linked.into_owned()));
    Ok(Holding {
        bitstream: form.bitstream.as_ref().map(BitstreamForm::held).transpose()?,
        listing: HeldListing { links: form.listing.links(), linked },
        sets: sets(form.sets, form.listing),
        absent: absent.map(Cow::into_owned),
    })
}

impl<'a> ResourceForm<'a> {
    fn rare(&self) -> Result<Rare<'a>, String> {
        self.rare.map_or(Ok(Rare::default()), read_json)
    }
}

fn sets(sets: Option<Vec<&str>>, listing: ListingForm<'_>) -> Vec<SetId> {
    sets.unwrap_or_else(|| vec![listing.set]).into_iter().map(SetId::new).collect()
}
