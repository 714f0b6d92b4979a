//! Listings: the document that listed a resource.

use model::{Linked, Links, Listing, SetId};
use resourcesync::Change;
use serde::{Deserialize, Serialize};

use super::time::Time;

/// A listing, without `linked`, which few have.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct ListingForm<'a> {
    document: &'a str,
    pub(super) set: &'a str,
    as_of: Option<Time>,
    latest: Option<Time>,
    change: Option<u8>,
    change_time: Option<Time>,
    /// As encoded by [`Links`].
    links: Option<&'a str>,
}

impl<'a> ListingForm<'a> {
    /// The form of a listing, and the part that is not in it.
    pub(super) fn of(listing: &'a Listing) -> (Self, Option<&'a Linked>) {
        let Listing { document, set, change, change_time, as_of, latest, links, linked } = listing;
        let form = Self {
            document,
            set: set.as_str(),
            as_of: as_of.map(Into::into),
            latest: latest.map(Into::into),
            change: change.map(|change| match change {
                Change::Created => 0,
                Change::Updated => 1,
                Change::Deleted => 2,
            }),
            change_time: change_time.map(Into::into),
            links: links.as_ref().map(Links::as_str),
        };
        (form, linked.as_deref())
    }

    pub(super) fn read(self, linked: Option<Linked>) -> Result<Listing, String> {
        let change = self.change.map(|change| match change {
            0 => Ok(Change::Created),
            1 => Ok(Change::Updated),
            2 => Ok(Change::Deleted),
            other => Err(format!("{other} is no kind of change")),
        });
        Ok(Listing {
            document: self.document.into(),
            set: SetId::new(self.set),
            change: change.transpose()?,
            change_time: Time::read_optional(self.change_time)?,
            as_of: Time::read_optional(self.as_of)?,
            latest: Time::read_optional(self.latest)?,
            // Checked, since records are passed on as JSON.
            links: self.links.map(super::read_json).transpose()?,
            linked: linked.map(Box::new),
        })
    }

    /// The links as they are stored. Not checked: a comparison of all resources takes them as text.
    pub(super) fn links(self) -> Option<Links> {
        self.links.map(Links::from_encoded)
    }
}
