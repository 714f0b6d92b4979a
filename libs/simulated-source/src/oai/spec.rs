//! The properties of a simulated OAI-PMH repository, set before it starts.

use std::time::Duration;

use crate::spec::Size;

/// The granularity that the repository announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// `YYYY-MM-DD`
    Day,
    /// `YYYY-MM-DDThh:mm:ssZ`
    Second,
}

/// How the repository tells deletions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletions {
    /// Records vanish.
    No,
    /// Shown until [`forget_deletions`](super::SimulatedRepository::forget_deletions).
    Transient,
    /// Shown for ever.
    Persistent,
}

/// A metadata format that names the files of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// `oai_dc`: each file as an `identifier`, in step with its `format`.
    OaiDc,
    /// `mets`: with lengths and MD5.
    Mets,
    /// `xoai`: with lengths and MD5.
    Xoai,
    /// `oai_openaire`: with media types.
    OaiOpenaire,
}

/// The spec of a simulated repository. Two with equal specs and equal commands give equal answers (except for the
/// port).
#[derive(Debug, Clone)]
pub struct RepositorySpec {
    /// The seed of everything random.
    pub seed: u64,
    /// Records at the start, deleted ones included.
    pub records: u64,
    /// Every so many records, one is deleted at the start; none when 0.
    pub deleted_every: u64,
    /// Seconds between the datestamps of one record and the next, before the simulation begins.
    pub seconds_apart: u32,
    /// Records of one page.
    pub page_size: u64,
    /// Sets below the set `group`; a record is in one of them. None when 0: then there is no set at all.
    pub sets: u64,
    /// The granularity.
    pub unit: Unit,
    /// How deletions are told.
    pub deletions: Deletions,
    /// About how many bytes of metadata a record has.
    pub metadata_bytes: usize,
    /// Files of each record; with some, the formats that name them are offered beside `oai_dc`.
    pub files: u64,
    /// The formats that name the files.
    pub file_formats: Vec<FileFormat>,
    /// How large the files are.
    pub file_size: Size,
    /// The site of the landing pages that records name; none for its own.
    pub pages_at: Option<String>,
    /// Whether all records name the landing page of the first one.
    pub one_page: bool,
    /// Whether tokens have `completeListSize` and `cursor`.
    pub sizes: bool,
    /// Whether answers are sent with gzip to those who accept it.
    pub gzip: bool,
    /// The delay of every response.
    pub latency: Option<Duration>,
    /// The port to listen on; 0 takes a free one.
    pub port: u16,
}

impl Default for RepositorySpec {
    /// 1,000 records in 4 sets with pages of 100, seconds, persistent deletions, no file.
    fn default() -> RepositorySpec {
        RepositorySpec {
            seed: 1,
            records: 1_000,
            deleted_every: 0,
            seconds_apart: 600,
            page_size: 100,
            sets: 4,
            unit: Unit::Second,
            deletions: Deletions::Persistent,
            metadata_bytes: 800,
            files: 0,
            file_formats: vec![FileFormat::Mets],
            file_size: Size::Range(1024, 4096),
            pages_at: None,
            one_page: false,
            sizes: true,
            gzip: false,
            latency: None,
            port: 0,
        }
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty;)+) => {
        impl RepositorySpec {
            $(
                $(#[$doc])*
                pub fn $name(mut self, $name: $type) -> RepositorySpec {
                    self.$name = $name;
                    self
                }
            )+
        }
    };
}

setters! {
    /// Derives everything from another seed.
    seed: u64;
    /// Sets the number of records at the start.
    records: u64;
    /// Deletes one of so many records before the start.
    deleted_every: u64;
    /// Sets the distance of the datestamps before the start.
    seconds_apart: u32;
    /// Sets the number of records of a page; at least one is sent.
    page_size: u64;
    /// Sets the number of sets.
    sets: u64;
    /// Sets the granularity.
    unit: Unit;
    /// Sets how deletions are told.
    deletions: Deletions;
    /// Sets about how many bytes of metadata a record has.
    metadata_bytes: usize;
    /// Sets how many files a record has.
    files: u64;
    /// Sets which formats name the files.
    file_formats: Vec<FileFormat>;
    /// Sets how large files are.
    file_size: Size;
    /// Lets all records name the landing page of the first one, or not.
    one_page: bool;
    /// Tells `completeListSize` and `cursor` or not.
    sizes: bool;
    /// Sends gzip or not.
    gzip: bool;
    /// Listens on this port.
    port: u16;
}

impl FileFormat {
    /// Its `metadataPrefix`.
    pub fn prefix(self) -> &'static str {
        match self {
            FileFormat::OaiDc => "oai_dc",
            FileFormat::Mets => "mets",
            FileFormat::Xoai => "xoai",
            FileFormat::OaiOpenaire => "oai_openaire",
        }
    }
}

impl RepositorySpec {
    /// Whether the format of this prefix names files.
    pub(super) fn names_files(&self, prefix: &str) -> bool {
        self.files > 0 && self.file_formats.iter().any(|format| format.prefix() == prefix)
    }

    /// Whether records come in the format of this prefix.
    pub(super) fn offers(&self, prefix: &str) -> bool {
        prefix == FileFormat::OaiDc.prefix() || self.names_files(prefix)
    }

    /// Names landing pages at another site.
    pub fn pages_at(mut self, site: impl Into<String>) -> RepositorySpec {
        self.pages_at = Some(site.into());
        self
    }

    /// Delays every response.
    pub fn latency(mut self, latency: Duration) -> RepositorySpec {
        self.latency = Some(latency);
        self
    }
}
