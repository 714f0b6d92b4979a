//! The Source that is harvested, independent of its server.

use std::process;

use simulated_source::{SimulatedRepository, SimulatedSource, SourceSpec};

use crate::meter;
use crate::nginx::Nginx;

/// A running Source.
#[derive(Debug)]
pub(crate) enum Source {
    /// Static files.
    Nginx {
        /// The server.
        server: Nginx,
        /// The version of nginx.
        version: String,
        /// The path of the harvested document.
        list: &'static str,
    },
    /// In this process.
    Simulated(SimulatedSource),
    /// An OAI-PMH repository in this process.
    Repository(Box<SimulatedRepository>),
}

impl Source {
    /// Starts a simulated Source.
    pub(crate) fn simulated(spec: SourceSpec) -> anyhow::Result<Self> {
        // It has a runtime of its own for the time after the start.
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        Ok(Self::Simulated(runtime.block_on(SimulatedSource::start(spec))?))
    }

    /// `http://127.0.0.1:<port>`
    pub(crate) fn base(&self) -> String {
        match self {
            Self::Nginx { server, .. } => server.base(),
            Self::Simulated(source) => source.url(),
            Self::Repository(repository) => repository.url(),
        }
    }

    /// The URL of the Resource List or its index, of the Resource Dump, or of the repository.
    pub(crate) fn list(&self) -> String {
        match self {
            Self::Nginx { server, list, .. } => format!("{}{list}", server.base()),
            Self::Simulated(source) => source.resource_list(),
            Self::Repository(repository) => repository.base_url(),
        }
    }

    /// The version of the server.
    pub(crate) fn version(&self) -> String {
        match self {
            Self::Nginx { version, .. } => version.clone(),
            Self::Simulated(_) | Self::Repository(_) => {
                format!("simulated Source of testkit {}", env!("CARGO_PKG_VERSION"))
            }
        }
    }

    /// Its processor time so far, in seconds.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        match self {
            Self::Nginx { server, .. } => server.cpu_seconds(),
            Self::Simulated(_) | Self::Repository(_) => meter::process_cpu_seconds(process::id()),
        }
    }

    /// The requests it got so far.
    pub(crate) fn requests(&self) -> anyhow::Result<u64> {
        match self {
            Self::Nginx { server, .. } => server.requests(),
            Self::Simulated(source) => {
                let log = source.requests();
                Ok(log.documents + log.resources)
            }
            Self::Repository(repository) => Ok(repository.requests().by_verb.values().sum()),
        }
    }
}
