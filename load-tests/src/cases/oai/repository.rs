//! A repository that is harvested, and what is true of its records.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use oaipmh::{
    BaseUrl, Granularity, Limits, Options, Request, Selection, Verb, canonicalize, comparison_digest,
};
use sha2::{Digest as _, Sha256};
use simulated_source::{RepositorySpec, SimulatedRepository};

use crate::plain_http;
use crate::read_pages::ReadRecords;
use crate::source::Source;

/// About the bytes of a record's metadata.
pub(super) const METADATA_BYTES: usize = 2048;
const PREFIX: &str = "oai_dc";

/// A running repository.
pub(super) struct Repository {
    pub(super) source: Source,
    pub(super) base: BaseUrl,
    pub(super) records: Vec<Truth>,
    /// The bytes of all records, in canonical form.
    bytes: u64,
}

/// What is true of a record.
pub(super) struct Truth {
    pub(super) length: u64,
    /// Of its canonical form.
    pub(super) sha256: [u8; 32],
    /// Of its comparison form, which has no blank text between elements.
    pub(super) comparison: [u8; 32],
}

impl Repository {
    /// Starts one, and computes what is true of its records.
    pub(super) fn start(records: u64, page_size: u64) -> anyhow::Result<Self> {
        let spec = RepositorySpec::default().records(records).page_size(page_size);
        // It has a runtime of its own for the time after the start.
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let server = runtime.block_on(SimulatedRepository::start(spec.metadata_bytes(METADATA_BYTES)))?;
        let base = BaseUrl::new(server.base_url().parse()?)?;
        let limits = Limits::default();
        let mut truths = Vec::with_capacity(usize::try_from(records)?);
        let mut bytes = 0;
        for index in 0..records {
            let element = server.metadata(index, PREFIX).context("a record has no metadata")?;
            let document = canonicalize(&element, &limits)?.document;
            bytes += document.len() as u64;
            truths.push(Truth {
                length: document.len() as u64,
                sha256: Sha256::digest(&document).into(),
                comparison: comparison_digest(&document, &limits)?,
            });
        }
        Ok(Self { source: Source::Repository(Box::new(server)), base, records: truths, bytes })
    }

    /// The sums that a reader of all its pages has to find.
    pub(super) fn sums(&self) -> ReadRecords {
        ReadRecords { records: self.records.len() as u64, bytes: self.bytes, is_whole: true }
    }

    /// The URI of a record in a harvest.
    pub(super) fn uri(&self, index: usize) -> String {
        self.base.record_uri(&format!("oai:sim.example.org:{index}"), PREFIX)
    }

    /// The record that a harvest gives this URI.
    pub(super) fn record_at(&self, uri: &str) -> Option<&Truth> {
        let index = index_in(uri)?;
        self.records.get(index).filter(|_| self.uri(index) == uri)
    }

    /// Writes all pages of its records into a folder, one a file.
    pub(super) fn write_pages(&self, folder: &Path) -> anyhow::Result<()> {
        let mut request = Request::list_records(Selection::all(PREFIX), Granularity::Second);
        for number in 0.. {
            let url = url::Url::parse(&request.url(&self.base))?;
            let path = &url[url::Position::BeforePath..];
            let page = plain_http::get(&url[url::Position::BeforeHost..url::Position::AfterPort], path)?;
            fs::write(folder.join(format!("{number:08}.xml")), &page)?;
            let (_, answer, read) = oaipmh::read(page.as_bytes(), Options::default());
            read?;
            let Some(token) = answer.resumption.and_then(|resumption| resumption.token) else { break };
            request = Request::resume(Verb::ListRecords, token);
        }
        Ok(())
    }
}

/// The number in the identifier of a record's URI.
fn index_in(uri: &str) -> Option<usize> {
    let (_, rest) = uri.split_once("identifier=oai%3Asim.example.org%3A")?;
    rest.split('&').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_found_by_its_uri_and_pages_have_all_records() {
        let repository = Repository::start(250, 100).unwrap();
        let uri = repository.uri(42);
        assert!(
            repository.record_at(&uri).is_some_and(|found| found.sha256 == repository.records[42].sha256)
        );
        assert!(repository.record_at(&repository.uri(250)).is_none());
        assert!(repository.record_at(&format!("{uri}&x=1")).is_none());
        let folder = tempfile::TempDir::new().unwrap();
        repository.write_pages(folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
        let length = repository.bytes / 250;
        assert!((1_800..2_400).contains(&length), "{length}");
    }
}
