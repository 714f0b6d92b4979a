//! Records that tests of several modules need.

use model::{Links, Listing, SetId};
use resourcesync::{Change, Link};

/// The listing of an entry with these links.
pub(crate) fn listing(links: &[Link], change: Option<Change>) -> Listing {
    Listing {
        document: "http://h/list".into(),
        set: SetId::new("s"),
        change,
        change_time: None,
        as_of: None,
        latest: None,
        links: Links::of(links),
        linked: None,
    }
}
