//! The paths of the documents below the base.

use jiff::Timestamp;

/// The Source Description.
pub const DESCRIPTION: &str = ".well-known/resourcesync";
/// The Capability List.
pub const CAPABILITIES: &str = "capabilitylist.xml";
/// The Resource List, or the index of its parts.
pub const RESOURCES: &str = "resourcelist.xml";
/// The Change List Index.
pub const CHANGES: &str = "changelist.xml";
/// The Resource Dump.
pub const DUMP: &str = "resourcedump.xml";
/// The folder of its packages and their manifests.
pub const DUMP_PARTS: &str = "resourcedump";
/// The Change Dump.
pub const CHANGE_DUMP: &str = "changedump.xml";
/// The folder of its packages and their manifests.
pub const CHANGE_DUMP_PARTS: &str = "changedump";
/// The folder of parts of the Resource List.
pub const RESOURCE_PARTS: &str = "resourcelist";
/// The folder of Change Lists.
pub const CHANGE_PARTS: &str = "changelist";
/// The Archive of Resource Lists that were replaced.
pub const RESOURCES_ARCHIVE: &str = "resourcelist-archive.xml";
/// The Archive of Change Lists that left the index.
pub const CHANGES_ARCHIVE: &str = "changelist-archive.xml";
/// The folder of versions of resources: each is at its digest, then at the path of its resource. It is served, and
/// never laid down.
pub const VERSIONS: &str = "versions";
/// The topic of Change Notifications. It is served, and never laid down.
pub const TOPIC: &str = "notifications.xml";
/// The publisher's own hub, if it has one. It is no document.
pub const HUB: &str = "hub";
/// The OAI-PMH repository beside a set whose Source is one. It is served, and never laid down.
pub const OAI: &str = "oai";
/// The folder of sets by rule: the documents of each are in a folder with its name.
pub const SETS: &str = "sets";
/// The page for people.
pub const PAGE: &str = "index.html";
/// The file for crawlers; servers find it where the base is a whole host.
pub const ROBOTS: &str = "robots.txt";

/// The name of a document that begins at a moment. Names sort as their times, since some readers take parts in that
/// order.
pub(crate) fn name_of(folder: &str, at: Timestamp, number: usize) -> String {
    name_with(folder, at, number, ".xml")
}

/// The same with another ending.
pub(crate) fn name_with(folder: &str, at: Timestamp, number: usize, ending: &str) -> String {
    let part = if number == 0 { String::new() } else { format!("-{number:05}") };
    let micros = at.as_microsecond().rem_euclid(1_000_000);
    format!("{folder}/{}{micros:06}Z{part}{ending}", at.strftime("%Y%m%dT%H%M%S"))
}

/// A path as that of a set by rule: its name, and the path below its folder. None for any other path.
pub fn of_set(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix(SETS)?.strip_prefix('/')?.split_once('/')
}

/// Whether a path is that of a document, so that it may be served. Everything else at a place is the publisher's own.
pub fn is_document(path: &str) -> bool {
    [DESCRIPTION, CAPABILITIES, RESOURCES, CHANGES, DUMP, CHANGE_DUMP, PAGE, ROBOTS].contains(&path)
        || [RESOURCES_ARCHIVE, CHANGES_ARCHIVE].contains(&path)
        || [RESOURCE_PARTS, CHANGE_PARTS, DUMP_PARTS, CHANGE_DUMP_PARTS]
            .iter()
            .any(|folder| is_in(path, folder, ".xml"))
        || is_package(path)
}

/// Whether a path is that of a package.
pub fn is_package(path: &str) -> bool {
    [DUMP_PARTS, CHANGE_DUMP_PARTS].iter().any(|folder| is_in(path, folder, ".zip"))
}

/// Whether a document or package never changes once it is there. A Change List may be open, so it is not meant.
pub(crate) fn is_immutable(path: &str) -> bool {
    [RESOURCE_PARTS, DUMP_PARTS, CHANGE_DUMP_PARTS].iter().any(|folder| is_below(path, folder))
}

/// Whether a path is that of a Change List.
pub(crate) fn is_change_list(path: &str) -> bool {
    is_below(path, CHANGE_PARTS)
}

/// Whether a path is below a folder: of the publication, or of a set by rule.
fn is_below(path: &str, folder: &str) -> bool {
    let path = of_set(path).map_or(path, |(_, rest)| rest);
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a path is that of a file of a folder, with a plain name and this ending.
fn is_in(path: &str, folder: &str, ending: &str) -> bool {
    let name = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    name.and_then(|name| name.strip_suffix(ending)).is_some_and(|stem| stem.chars().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_as_their_times() {
        let name = |text: &str, number| name_of(CHANGE_PARTS, text.parse().unwrap(), number);
        let one = name("2026-01-05T00:00:00Z", 0);
        assert_eq!(one, "changelist/20260105T000000000000Z.xml");
        let later = name("2026-01-05T00:00:00.000001Z", 0);
        assert!(one < later && later < name("2026-01-05T00:00:00.5Z", 0), "{later}");
        assert_eq!(name("2026-01-05T00:00:00Z", 7), "changelist/20260105T000000000000Z-00007.xml");
    }

    #[test]
    fn parts_and_packages_never_change_and_change_lists_may() {
        for path in ["resourcelist/a.xml", "sets/pdf/resourcelist/a.xml", "changedump/a.zip"] {
            assert!(is_immutable(path) && !is_change_list(path), "{path}");
        }
        for path in ["changelist/a.xml", "sets/pdf/changelist/a.xml"] {
            assert!(!is_immutable(path) && is_change_list(path), "{path}");
        }
        for path in ["resourcelist.xml", "changelist.xml", "sets/changelist.xml"] {
            assert!(!is_immutable(path) && !is_change_list(path), "{path}");
        }
    }

    #[test]
    fn only_documents_are_served() {
        for good in [
            DESCRIPTION,
            RESOURCES,
            RESOURCES_ARCHIVE,
            ROBOTS,
            &name_of(RESOURCE_PARTS, Timestamp::UNIX_EPOCH, 3),
            &name_with(CHANGE_DUMP_PARTS, Timestamp::UNIX_EPOCH, 0, "-0a1b.zip"),
        ] {
            assert!(is_document(good), "{good}");
        }
        for bad in [
            "",
            ".thresher/publication.json",
            "changelist/../x.xml",
            "changelist/a.json",
            "changelist/a.zip",
            ".thresher/changes/a.zip",
            "resources/http/1/h",
        ] {
            assert!(!is_document(bad), "{bad}");
        }
    }
}
