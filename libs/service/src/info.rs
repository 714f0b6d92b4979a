//! What runs.

/// Name and version of the running program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceInfo {
    /// The name of the service; it is also the prefix of its variables.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
}
