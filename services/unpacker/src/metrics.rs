//! Metrics of an unpacker.

use model::{Assurance, MemberResult, PackageResult};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use service::Metrics;

/// Metrics of an unpacker. Cheap to clone; not exported until registered.
#[derive(Debug, Clone, Default)]
pub struct UnpackerMetrics {
    packages: Family<PackageLabel, Counter>,
    slices: Counter,
    members: Family<MemberLabel, Counter>,
    pub(crate) bytes: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PackageLabel {
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MemberLabel {
    verdict: &'static str,
}

impl UnpackerMetrics {
    /// Registers the metrics with a service.
    pub fn register(metrics: &Metrics) -> Self {
        let counted = Self::default();
        // Initialized to zero before the first package.
        drop(counted.packages.get_or_create(&PackageLabel { result: "opened" }));
        drop(counted.members.get_or_create(&MemberLabel { verdict: "digest" }));
        metrics.register(|registry| {
            registry.register(
                "unpack_packages",
                "Packages that were opened, or the reason why not",
                counted.packages.clone(),
            );
            registry.register("unpack_slices", "Slices of packages that were judged", counted.slices.clone());
            registry.register(
                "unpack_members",
                "Entries of manifests by the verdict on their member",
                counted.members.clone(),
            );
            registry.register("unpack_bytes", "Bytes of members inflated and hashed", counted.bytes.clone());
        });
        counted
    }

    pub(crate) fn count(&self, result: &PackageResult) {
        let package = |result| self.packages.get_or_create(&PackageLabel { result }).inc();
        match result {
            PackageResult::Opened(_) => drop(package("opened")),
            PackageResult::Failed(failure) => drop(package(failure.reason.as_str())),
            PackageResult::Slice { items, .. } => {
                self.slices.inc();
                for item in items {
                    let verdict = verdict(&item.result);
                    self.members.get_or_create(&MemberLabel { verdict }).inc();
                }
            }
            PackageResult::Interrupted { .. } => drop(package("interrupted")),
            PackageResult::Stored(_) | PackageResult::NotModified | PackageResult::Deferred { .. } => {}
        }
    }
}

fn verdict(result: &MemberResult) -> &'static str {
    match result {
        MemberResult::Verified { assurance: Assurance::Digest, .. } => "digest",
        MemberResult::Verified { assurance: Assurance::Length, .. } => "length",
        MemberResult::Verified { assurance: Assurance::None, .. } => "nothing-declared",
        MemberResult::NoMember => "no-member",
        MemberResult::BadEntry(_) => "bad-entry",
        MemberResult::Failed(failure) => failure.reason.as_str(),
    }
}
