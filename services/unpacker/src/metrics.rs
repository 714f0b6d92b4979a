//! What an unpacker counts.

use prometheus_client::metrics::counter::Counter;
use service::Metrics;

/// What an unpacker counts. Cheap to clone; counts nobody sees until it is registered.
#[derive(Debug, Clone, Default)]
pub struct UnpackerMetrics {
    pub(crate) refused: Counter,
}

impl UnpackerMetrics {
    /// Registers them with a service.
    pub fn register(metrics: &Metrics) -> Self {
        let counted = Self::default();
        metrics.register(|registry| {
            registry.register(
                "unpack_packages_refused",
                "Packages that were not read, since this version reads none",
                counted.refused.clone(),
            );
        });
        counted
    }
}
