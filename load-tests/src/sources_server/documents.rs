//! The documents of a Source, written by hand: the reader is then tested against another reading of the
//! specification.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::content::{BODY_BYTES, sha256};

/// The time of every Resource List, in whole seconds since 1970: 2026-01-01T00:00:00Z.
const LISTED_AT: i64 = 1_767_225_600;

/// A Source, for its documents.
#[derive(Debug, Clone, Copy)]
pub(super) struct Described<'a> {
    /// Its number.
    pub(super) number: u32,
    /// `http://127.1.a.b:<port>`
    pub(super) base: &'a str,
    /// How many resources it has.
    pub(super) resources: u32,
    /// The times of its changes, in order. Each updates one resource, in turn.
    pub(super) changes: &'a [Timestamp],
}

/// When the Resource Lists were made.
pub(super) fn listed_at() -> Timestamp {
    Timestamp::from_second(LISTED_AT).unwrap_or(Timestamp::UNIX_EPOCH)
}

impl Described<'_> {
    /// The Source Description.
    pub(super) fn description(&self) -> String {
        let entry = self.capability("capabilitylist");
        document("<rs:md capability=\"description\"/>", None, &entry)
    }

    /// The Capability List.
    pub(super) fn capability_list(&self) -> String {
        let entries = self.capability("resourcelist") + &self.capability("changelist");
        let up = format!("{}/.well-known/resourcesync", self.base);
        document("<rs:md capability=\"capabilitylist\"/>", Some(&up), &entries)
    }

    /// The Resource List: the first version of every resource.
    pub(super) fn resource_list(&self) -> String {
        let at = listed_at();
        let mut entries = String::new();
        for resource in 0..self.resources {
            let fixity = self.fixity(resource, 0);
            // Writing to a string does not fail.
            let _ = write!(
                entries,
                "<url><loc>{}</loc><lastmod>{at}</lastmod><rs:md {fixity}/></url>",
                self.uri(resource)
            );
        }
        document(&format!("<rs:md capability=\"resourcelist\" at=\"{at}\"/>"), Some(&self.up()), &entries)
    }

    /// The open Change List: every change since the Resource List.
    pub(super) fn change_list(&self) -> String {
        let mut entries = String::new();
        for (place, time) in (0_u32..).zip(self.changes) {
            let resource = place % self.resources;
            let fixity = self.fixity(resource, place / self.resources + 1);
            let _ = write!(
                entries,
                "<url><loc>{}</loc><lastmod>{time}</lastmod>\
                 <rs:md change=\"updated\" datetime=\"{time}\" {fixity}/></url>",
                self.uri(resource)
            );
        }
        let from = listed_at();
        document(&format!("<rs:md capability=\"changelist\" from=\"{from}\"/>"), Some(&self.up()), &entries)
    }

    /// The current version of a resource, and when it came.
    pub(super) fn version(&self, resource: u32) -> (u32, Timestamp) {
        let mut times = self.changes.iter().skip(resource as usize).step_by(self.resources as usize);
        let version = u32::try_from(times.clone().count()).unwrap_or(u32::MAX);
        (version, times.next_back().copied().unwrap_or_else(listed_at))
    }

    fn uri(&self, resource: u32) -> String {
        format!("{}/resource-{resource}.txt", self.base)
    }

    fn up(&self) -> String {
        format!("{}/capabilitylist.xml", self.base)
    }

    fn capability(&self, name: &str) -> String {
        format!("<url><loc>{}/{name}.xml</loc><rs:md capability=\"{name}\"/></url>", self.base)
    }

    fn fixity(&self, resource: u32, version: u32) -> String {
        format!("hash=\"sha-256:{}\" length=\"{BODY_BYTES}\"", sha256(self.number, resource, version))
    }
}

fn document(md: &str, up: Option<&str>, entries: &str) -> String {
    let up = up.map(|up| format!("<rs:ln rel=\"up\" href=\"{up}\"/>")).unwrap_or_default();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
         xmlns:rs=\"http://www.openarchives.org/rs/terms/\">{up}{md}{entries}</urlset>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_update_the_resources_in_turn() {
        let second = |number: i64| Timestamp::from_second(1_800_000_000 + number).unwrap();
        let changes: Vec<Timestamp> = (0..4).map(second).collect();
        let source = Described { number: 7, base: "http://127.1.0.8:1", resources: 3, changes: &changes };
        assert_eq!(source.version(0), (2, second(3)));
        assert_eq!(source.version(1), (1, second(1)));
        let none = Described { changes: &[], ..source };
        assert_eq!(none.version(2), (0, listed_at()));
        let list = source.change_list();
        assert_eq!(list.matches("<url>").count(), 4);
        assert!(list.contains(&sha256(7, 0, 2)) && list.contains(&sha256(7, 0, 1)), "{list}");
        assert!(source.resource_list().contains(&sha256(7, 0, 0)));
    }

    #[test]
    fn the_resource_lists_are_of_the_first_second_of_2026() {
        assert_eq!(listed_at().to_string(), "2026-01-01T00:00:00Z");
    }
}
