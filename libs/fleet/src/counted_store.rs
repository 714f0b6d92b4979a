//! Metrics of the store: operations by result, and the size of the spool.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use service::Metrics;
use store::{Ending, Operation, Operations, Store, spooled_bytes};

/// Counts the operations of `store`, together with those of the stores that other services of this process have open.
pub(crate) fn count_operations(store: &Store, metrics: &Metrics) {
    let stores = metrics.shared(|registry| {
        let stores = Stores::default();
        registry.register_collector(Box::new(stores.clone()));
        stores
    });
    let mut open = stores.0.lock().unwrap_or_else(PoisonError::into_inner);
    open.operations.push(store.operations());
    open.spools.insert(store.spool_directory().to_owned());
}

/// The stores that a process has open.
#[derive(Debug, Clone, Default)]
struct Stores(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    operations: Vec<Operations>,
    /// A set, because stores may share a spool directory.
    spools: BTreeSet<PathBuf>,
}

impl Collector for Stores {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        // Each change is a single insertion, so the data is consistent even after a panic.
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut counts = [[0_u64; Ending::ALL.len()]; Operation::ALL.len()];
        for (operation, ending, count) in open.operations.iter().flat_map(|store| store.counted()) {
            counts[operation as usize][ending as usize] += count;
        }
        let help = "Operations of the store, by what was asked for and how it ended";
        let mut family = encoder.encode_descriptor("store_operations", help, None, MetricType::Counter)?;
        for operation in Operation::ALL {
            for ending in Ending::ALL {
                let labels = [("operation", operation.as_str()), ("result", ending.as_str())];
                let count = counts[operation as usize][ending as usize];
                ConstCounter::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        let bytes: u64 = open.spools.iter().map(|directory| spooled_bytes(directory)).sum();
        let help = "Bytes that lie in the spool directory";
        let gauge = encoder.encode_descriptor("spool_bytes", help, None, MetricType::Gauge)?;
        ConstGauge::new(bytes).encode(gauge)
    }
}

#[cfg(test)]
mod tests {
    use object_store::ObjectStoreExt as _;
    use service::ServiceInfo;

    use super::*;

    #[tokio::test]
    async fn the_stores_of_a_process_are_counted_together() {
        let metrics = Metrics::new(ServiceInfo { name: "test", version: "0" });
        let folder = tempfile::tempdir().unwrap();
        let objects = || Arc::new(object_store::memory::InMemory::new());
        let stores = [(); 2].map(|()| Store::over_objects(objects(), "memory", folder.path().to_owned()));
        for store in &stores {
            count_operations(store, &metrics);
            store.object_store().put(&"a".into(), "x".into()).await.unwrap();
        }
        std::fs::write(folder.path().join("thresher-tmp-1"), "12345").unwrap();
        let text = metrics.encode();
        for line in [
            "thresher_store_operations_total{operation=\"put\",result=\"done\"} 2",
            "thresher_store_operations_total{operation=\"get\",result=\"unavailable\"} 0",
            "thresher_spool_bytes 5",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        assert_eq!(text.matches("# TYPE thresher_store_operations counter").count(), 1, "{text}");
    }
}
