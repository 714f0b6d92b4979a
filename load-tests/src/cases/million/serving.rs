//! The Source: tiny resources whose bytes follow from their number, so that a million of them need no files.

use std::cell::Cell;
use std::path::PathBuf;

use simulated_source::{Size, SourceSpec};

use crate::check::sha256;
use crate::cli::SourceKind;
use crate::documents::changes::{CAPABILITIES_PATH, Change, ChangeLists, write_capability_list};
use crate::documents::{Declared, LIST_PATH, ResourceList};
use crate::folder::WorkFolder;
use crate::nginx::Nginx;
use crate::peers;
use crate::source::Source;

/// `resource 0123456`
pub(crate) const BYTES_EACH: u64 = 16;

/// nginx generates the same bytes as [`body`]. Once there is a file of the name [`CHANGED`], it generates
/// other bytes, and logs each request with its time.
const LOCATION: &str = r#"location ~ ^/set/resources/[0-9]+/([0-9]+)\.bin$ {
            if (-f $document_root/changed) { access_log requests.log times; return 200 "changed  $1"; }
            return 200 "resource $1";
        }"#;
const CHANGED: &str = "changed";

/// A Source of many tiny resources.
#[derive(Debug)]
pub(crate) struct Million {
    pub(crate) source: Source,
    pub(crate) resources: u64,
    docroot: PathBuf,
    /// Links of each entry of the list.
    links: usize,
    /// Whether the resources have changed.
    is_changed: Cell<bool>,
}

impl Million {
    /// Starts it, with the first edition of its list, whose entries have this many links.
    pub(crate) fn start(
        kind: SourceKind,
        work: &WorkFolder,
        resources: u64,
        links: usize,
    ) -> anyhow::Result<Self> {
        match kind {
            SourceKind::Simulated => {
                anyhow::ensure!(links == 0, "this case is served by nginx alone: leave --source out");
                let spec = SourceSpec::default().resources(resources).size(Size::Fixed(BYTES_EACH));
                let source = Source::simulated(spec.change_list(false))?;
                let docroot = work.make("docroot")?;
                Self { source, resources, docroot, links, is_changed: Cell::new(false) }.published()
            }
            SourceKind::Nginx => Self::served_by_nginx(work, resources, LIST_PATH, links),
        }
    }

    /// Starts it with a Capability List as its entry, and an empty Change List.
    pub(crate) fn start_telling(kind: SourceKind, work: &WorkFolder, resources: u64) -> anyhow::Result<Self> {
        anyhow::ensure!(kind == SourceKind::Nginx, "this case is served by nginx alone: leave --source out");
        let million = Self::served_by_nginx(work, resources, CAPABILITIES_PATH, 0)?;
        write_capability_list(&million.docroot, &million.source.base())?;
        million.tell(0)?;
        Ok(million)
    }

    fn served_by_nginx(
        work: &WorkFolder,
        resources: u64,
        list: &'static str,
        links: usize,
    ) -> anyhow::Result<Self> {
        let docroot = work.make("docroot")?;
        let peer = peers::nginx()?;
        let server = Nginx::start(&peer.program, &docroot, LOCATION)?;
        let source = Source::Nginx { server, version: peer.version, list };
        Self { source, resources, docroot, links, is_changed: Cell::new(false) }.published()
    }

    fn published(self) -> anyhow::Result<Self> {
        self.publish(0)?;
        Ok(self)
    }

    /// Changes the resources, one after another, repeatedly, and lists all changes; returns the number of
    /// documents. Only the last change of each resource affects the served bytes.
    pub(crate) fn change(&self, changes: u64) -> anyhow::Result<u64> {
        std::fs::write(self.docroot.join(CHANGED), "")?;
        self.is_changed.set(true);
        self.tell(changes)
    }

    fn tell(&self, changes: u64) -> anyhow::Result<u64> {
        let lists = ChangeLists { base: &self.source.base(), changes };
        lists.write(&self.docroot, |number| {
            let index = number % self.resources;
            let is_last = number + self.resources >= changes;
            let body = if is_last { body(index, true) } else { format!("{number:07} {index:08}") };
            Change { index, declared: declared(&body) }
        })?;
        Ok(lists.documents())
    }

    /// Replaces the edition of the list: another time and other validators, the same entries.
    pub(crate) fn publish(&self, edition: u32) -> anyhow::Result<()> {
        match &self.source {
            Source::Simulated(source) => {
                source.advance(86_400);
                source.refresh_resource_list();
            }
            Source::Nginx { server, .. } => {
                let base = server.base();
                self.list(&base, edition).write(&self.docroot, |index| declared(&body(index, false)))?;
            }
            Source::Repository(_) => anyhow::bail!("a repository has no Resource List"),
        }
        Ok(())
    }

    /// The number of documents of an edition.
    pub(crate) fn documents(&self) -> u64 {
        self.list("", 0).documents()
    }

    /// Whether a resource is listed and has this digest. For simulated resources the digest is not checked:
    /// the runner would have to generate them all once more.
    pub(crate) fn is_right(&self, uri: &str, digest: Option<&str>) -> bool {
        let Some(digest) = digest else { return false };
        match &self.source {
            Source::Simulated(source) => {
                source.resource_index(uri).is_some_and(|index| index < self.resources)
            }
            Source::Nginx { .. } => {
                let is_right = |index| sha256(body(index, self.is_changed.get()).as_bytes()) == digest;
                index_of(uri).is_some_and(|index| index < self.resources && is_right(index))
            }
            Source::Repository(_) => false,
        }
    }

    fn list<'a>(&self, base: &'a str, edition: u32) -> ResourceList<'a> {
        ResourceList { base, resources: self.resources, edition, links: self.links }
    }
}

/// The number of a resource, from the end of its URI.
pub(crate) fn index_of(uri: &str) -> Option<u64> {
    uri.rsplit('/').next()?.strip_suffix(".bin")?.parse().ok()
}

fn body(index: u64, is_changed: bool) -> String {
    let word = if is_changed { "changed " } else { "resource" };
    format!("{word} {index:07}")
}

fn declared(body: &str) -> Declared {
    Declared { length: body.len() as u64, sha256: sha256(body.as_bytes()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resource_of_ten_million_has_the_same_length() {
        for is_changed in [false, true] {
            assert_eq!(body(0, is_changed).len() as u64, BYTES_EACH);
            assert_eq!(body(9_999_999, is_changed).len() as u64, BYTES_EACH);
        }
    }

    #[test]
    fn a_uri_tells_the_number_of_its_resource() {
        assert_eq!(index_of("http://h/set/resources/0012/0012345.bin"), Some(12_345));
        assert_eq!(index_of("http://h/set/resourcelist.xml"), None);
    }
}
