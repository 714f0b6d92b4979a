//! The Source: tiny resources whose bytes follow from their number, so that a million of them need no million files.

use std::path::PathBuf;

use testkit::source::{Size, SourceSpec};

use crate::check::sha256;
use crate::cli::SourceKind;
use crate::documents::{Declared, LIST_PATH, ResourceList};
use crate::folder::WorkFolder;
use crate::nginx::Nginx;
use crate::peers;
use crate::source::Source;

/// `resource 0123456`
pub(crate) const BYTES_EACH: u64 = 16;

/// nginx makes the same bytes as [`body`] while it answers.
const LOCATION: &str = "location ~ ^/set/resources/[0-9]+/([0-9]+)\\.bin$ { return 200 \"resource $1\"; }";

/// A Source of many tiny resources.
#[derive(Debug)]
pub(crate) struct Million {
    pub(crate) source: Source,
    pub(crate) resources: u64,
    docroot: PathBuf,
}

impl Million {
    /// Starts it, with the first edition of its list.
    pub(crate) fn start(kind: SourceKind, work: &WorkFolder, resources: u64) -> anyhow::Result<Self> {
        let docroot = work.make("docroot")?;
        let source = match kind {
            SourceKind::Simulated => {
                let spec = SourceSpec::default().resources(resources).size(Size::Fixed(BYTES_EACH));
                Source::simulated(spec.change_list(false))?
            }
            SourceKind::Nginx => {
                let peer = peers::nginx()?;
                let server = Nginx::start(&peer.program, &docroot, LOCATION)?;
                Source::Nginx { server, version: peer.version, list: LIST_PATH }
            }
        };
        let million = Self { source, resources, docroot };
        million.publish(0)?;
        Ok(million)
    }

    /// Puts another edition of the list in the place of the one before: another time and other validators, the same
    /// entries.
    pub(crate) fn publish(&self, edition: u32) -> anyhow::Result<()> {
        match &self.source {
            Source::Simulated(source) => {
                source.advance(86_400);
                source.refresh_resource_list();
            }
            Source::Nginx { server, .. } => {
                self.list(&server.base(), edition).write(&self.docroot, |index| {
                    let body = body(index);
                    Declared { length: body.len() as u64, sha256: sha256(body.as_bytes()) }
                })?;
            }
        }
        Ok(())
    }

    /// How many documents an edition has.
    pub(crate) fn documents(&self) -> u64 {
        self.list("", 0).documents()
    }

    /// Whether a resource is listed and this is its digest. Of simulated resources the digest is not looked at: to know
    /// it, the runner would have to make them all once more.
    pub(crate) fn is_right(&self, uri: &str, digest: Option<&str>) -> bool {
        let Some(digest) = digest else { return false };
        match &self.source {
            Source::Simulated(source) => {
                source.resource_index(uri).is_some_and(|index| index < self.resources)
            }
            Source::Nginx { .. } => {
                let index = uri.rsplit('/').next().and_then(|name| name.strip_suffix(".bin")?.parse().ok());
                index.is_some_and(|index| index < self.resources && sha256(body(index).as_bytes()) == digest)
            }
        }
    }

    fn list<'a>(&self, base: &'a str, edition: u32) -> ResourceList<'a> {
        ResourceList { base, resources: self.resources, edition }
    }
}

fn body(index: u64) -> String {
    format!("resource {index:07}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resource_of_ten_million_has_the_same_length() {
        assert_eq!(body(0).len() as u64, BYTES_EACH);
        assert_eq!(body(9_999_999).len() as u64, BYTES_EACH);
    }
}
