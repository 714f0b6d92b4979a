//! The properties of a simulated Source, set before it starts.

use std::time::Duration;

/// The size of the resources, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Every resource has this many bytes.
    Fixed(u64),
    /// Each version of each resource has a seeded size between these two, both included.
    Range(u64, u64),
}

/// A digest algorithm that the Source declares in `rs:md hash`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// `md5:` and 32 hex digits.
    Md5,
    /// `sha-1:` and 40 hex digits.
    Sha1,
    /// `sha-256:` and 64 hex digits.
    Sha256,
}

/// The spec of a simulated Source. Two Sources with equal specs and equal commands serve equal documents and
/// equal bytes (except for the port in their URIs).
#[derive(Debug, Clone)]
pub struct SourceSpec {
    /// The seed of everything random.
    pub seed: u64,
    /// How many resources there are at the start.
    pub resources: u64,
    /// How large they are.
    pub size: Size,
    /// More resources than this make a Resource List Index with parts of this many entries.
    pub entries_per_list: u64,
    /// The digests that lists declare; none when empty.
    pub digests: Vec<Algorithm>,
    /// Whether lists declare the length.
    pub declare_length: bool,
    /// Whether lists declare `lastmod`.
    pub declare_lastmod: bool,
    /// Whether the Source keeps a Change List.
    pub change_list: bool,
    /// More changes than this make a Change List Index: full lists are closed with `until`, the last stays open.
    pub entries_per_change_list: u64,
    /// The hub of its changes, whose topic the Capability List has; none when empty.
    pub hub: String,
    /// The delay of every response.
    pub latency: Option<Duration>,
    /// The `Crawl-delay` of `robots.txt`.
    pub crawl_delay: Option<Duration>,
    /// The name of the one set of resources: the first path segment of all its documents.
    pub set: String,
    /// Whether ResourceSync documents are served as gzip files.
    pub gzip: bool,
    /// Whether requests are counted for each path (memory grows with the number of paths).
    pub count_paths: bool,
    /// The port to listen on; 0 takes a free one.
    pub port: u16,
}

impl Default for SourceSpec {
    /// 100 resources of 1 to 4 KiB with length, `lastmod` and sha-256, and a Change List.
    fn default() -> SourceSpec {
        SourceSpec {
            seed: 1,
            resources: 100,
            size: Size::Range(1024, 4096),
            entries_per_list: 50_000,
            digests: vec![Algorithm::Sha256],
            declare_length: true,
            declare_lastmod: true,
            change_list: true,
            entries_per_change_list: 50_000,
            hub: String::new(),
            latency: None,
            crawl_delay: None,
            set: "set".to_owned(),
            gzip: false,
            count_paths: false,
            port: 0,
        }
    }
}

impl SourceSpec {
    /// Derives everything from another seed.
    pub fn seed(mut self, seed: u64) -> SourceSpec {
        self.seed = seed;
        self
    }

    /// Sets the number of resources at the start.
    pub fn resources(mut self, resources: u64) -> SourceSpec {
        self.resources = resources;
        self
    }

    /// Sets the size of the resources.
    pub fn size(mut self, size: Size) -> SourceSpec {
        self.size = size;
        self
    }

    /// Splits the Resource List into parts of this many entries (at least one).
    pub fn entries_per_list(mut self, entries: u64) -> SourceSpec {
        self.entries_per_list = entries.max(1);
        self
    }

    /// Declares these digests.
    pub fn digests(mut self, digests: impl Into<Vec<Algorithm>>) -> SourceSpec {
        self.digests = digests.into();
        self
    }

    /// Declares lengths or not.
    pub fn declare_length(mut self, declare: bool) -> SourceSpec {
        self.declare_length = declare;
        self
    }

    /// Declares `lastmod` or not.
    pub fn declare_lastmod(mut self, declare: bool) -> SourceSpec {
        self.declare_lastmod = declare;
        self
    }

    /// Keeps a Change List or not.
    pub fn change_list(mut self, keep: bool) -> SourceSpec {
        self.change_list = keep;
        self
    }

    /// Splits the Change List into lists of this many entries (at least one).
    pub fn entries_per_change_list(mut self, entries: u64) -> SourceSpec {
        self.entries_per_change_list = entries.max(1);
        self
    }

    /// Sets a hub for the topic of its changes.
    pub fn hub(mut self, url: impl Into<String>) -> SourceSpec {
        self.hub = url.into();
        self
    }

    /// Delays every response.
    pub fn latency(mut self, latency: Duration) -> SourceSpec {
        self.latency = Some(latency);
        self
    }

    /// Sets the crawl-delay in `robots.txt`.
    pub fn crawl_delay(mut self, delay: Duration) -> SourceSpec {
        self.crawl_delay = Some(delay);
        self
    }

    /// Names the set of resources. The name is used in paths as it is.
    pub fn set(mut self, name: impl Into<String>) -> SourceSpec {
        self.set = name.into();
        self
    }

    /// Serves ResourceSync documents as gzip files or not.
    pub fn gzip(mut self, gzip: bool) -> SourceSpec {
        self.gzip = gzip;
        self
    }

    /// Counts requests for each path or not.
    pub fn count_paths(mut self, count: bool) -> SourceSpec {
        self.count_paths = count;
        self
    }

    /// Listens on this port.
    pub fn port(mut self, port: u16) -> SourceSpec {
        self.port = port;
        self
    }
}

impl Algorithm {
    /// The name in a `hash` attribute.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Md5 => "md5",
            Algorithm::Sha1 => "sha-1",
            Algorithm::Sha256 => "sha-256",
        }
    }
}

impl std::str::FromStr for Algorithm {
    type Err = String;

    fn from_str(name: &str) -> Result<Algorithm, String> {
        match name {
            "md5" => Ok(Algorithm::Md5),
            "sha-1" => Ok(Algorithm::Sha1),
            "sha-256" => Ok(Algorithm::Sha256),
            other => Err(format!("unknown digest algorithm {other:?}: use md5, sha-1 or sha-256")),
        }
    }
}
