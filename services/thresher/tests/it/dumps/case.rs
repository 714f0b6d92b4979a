//! A Source of dumps, and a copy of it.

use std::collections::BTreeMap;

use testkit::scripted::Reply;

use crate::common::{Destination, Package, Site, package, resource, urlset};
use crate::dumps::{CHANGES, DUMP};

/// A Source of dumps, and a copy of it.
pub(crate) struct Case {
    pub(crate) site: Site,
    pub(crate) copy: Destination,
}

impl Case {
    pub(crate) async fn new() -> Self {
        Self { site: Site::start().await, copy: Destination::directory() }
    }

    /// Serves a package and returns its entry in a dump.
    pub(crate) fn package(&self, path: &str, bytes: Vec<u8>, more: &str) -> String {
        let entry = package(&self.site.uri(path), &bytes, more);
        self.site.reply(path, Reply::ok(bytes));
        entry
    }

    /// Serves `/dump.xml`.
    pub(crate) fn dump(&self, packages: &[String]) -> String {
        self.site.serve("/dump.xml", urlset(DUMP, packages))
    }

    /// Serves `/changes.xml`, and the Capability List of both dumps.
    pub(crate) fn changes(&self, packages: &[String]) -> String {
        self.site.serve("/changes.xml", urlset(CHANGES, packages));
        self.capabilities(&[("/dump.xml", "resourcedump"), ("/changes.xml", "changedump")])
    }

    /// The entry of a package, with a copy of its manifest at `path`.
    pub(crate) fn with_contents(&self, entry: &str, path: &str, manifest: String) -> String {
        let copy = self.site.serve(path, manifest);
        entry.replace("</url>", &format!("<rs:ln rel=\"contents\" href=\"{copy}\"/></url>"))
    }

    /// The entry of a package of changes that is no archive, with a copy of its manifest: `b` was created.
    pub(crate) fn unreadable_change(&self) -> String {
        let b = self.site.serve("/b", "b");
        let changes = Package::of_changes("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z").changed(
            &b,
            "created",
            "2026-01-01T05:00:00Z",
            "b",
        );
        let entry = self.package("/1.zip", b"PK no archive".to_vec(), "");
        self.with_contents(&entry, "/1.xml", changes.manifest())
    }

    pub(crate) fn capabilities(&self, documents: &[(&str, &str)]) -> String {
        let entry =
            |(path, name): &(&str, &str)| resource(&self.site.uri(path), &format!("capability=\"{name}\""));
        let entries: Vec<String> = documents.iter().map(entry).collect();
        self.site.serve("/caps.xml", urlset("capability=\"capabilitylist\"", &entries))
    }

    pub(crate) fn uri(&self, name: &str) -> String {
        self.site.uri(&format!("/{name}"))
    }

    /// Checks that these are present with these bytes, by `ls`, by `cat` and in the view, and nothing else.
    #[track_caller]
    pub(crate) fn holds(&self, expected: &[(&str, &str)]) {
        let expected: BTreeMap<String, String> =
            expected.iter().map(|(name, bytes)| (self.uri(name), (*bytes).to_owned())).collect();
        let present = self.copy.present();
        assert_eq!(present.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (uri, bytes) in &expected {
            assert_eq!(String::from_utf8_lossy(&self.copy.cat(uri)), *bytes, "{uri}");
            assert_eq!(self.copy.file(uri).as_deref(), Some(bytes.as_bytes()), "{uri}");
        }
        assert_eq!(self.copy.view().len(), expected.len());
    }
}
