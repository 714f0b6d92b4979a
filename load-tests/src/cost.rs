//! Operations of a fleet on its store and its bus: those that a cloud would bill.

use anyhow::Context as _;

use crate::fleet::Fleet;

/// The counted operations, by metric and label, as in docs/METRICS.md.
const KINDS: [(&str, &str, &str); 9] = [
    ("store_puts", "thresher_store_operations", "operation=\"put\""),
    ("store_gets", "thresher_store_operations", "operation=\"get\""),
    ("store_lists", "thresher_store_operations", "operation=\"list\""),
    ("store_deletes", "thresher_store_operations", "operation=\"delete\""),
    ("store_copies", "thresher_store_operations", "operation=\"copy\""),
    ("messages", "thresher_bus_deliveries", ""),
    ("messages_of_fetch", "thresher_bus_deliveries", "queue=\"fetch\""),
    ("messages_of_verify", "thresher_bus_deliveries", "queue=\"verify\""),
    ("messages_of_outcomes", "thresher_bus_deliveries", "queue=\"outcomes\""),
];

/// The count of each operation so far, for all services together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost([u64; KINDS.len()]);

impl Cost {
    /// The counts from the services of a fleet.
    pub(crate) fn of(fleet: &Fleet) -> anyhow::Result<Self> {
        let mut counts = [0; KINDS.len()];
        for (count, (what, metric, label)) in counts.iter_mut().zip(KINDS) {
            *count = fleet.counted_by_all(metric, label).with_context(|| format!("no count of {what}"))?;
        }
        Ok(Self(counts))
    }

    /// The operations since `before`, in total and scaled to a million resources.
    pub(crate) fn since(self, before: Self, resources: u64) -> Vec<(String, u64)> {
        let told = self.counts_since(before).flat_map(|(what, count)| {
            let of_million = (count * 1_000_000).div_ceil(resources.max(1));
            [(what.to_owned(), count), (format!("{what}_of_a_million"), of_million)]
        });
        told.collect()
    }

    /// The operations since `before`.
    pub(crate) fn counts_since(self, before: Self) -> impl Iterator<Item = (&'static str, u64)> {
        let counts = self.0.into_iter().zip(before.0).map(|(now, before)| now.saturating_sub(before));
        KINDS.into_iter().zip(counts).map(|((what, ..), count)| (what, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_came_to_it_counts_and_a_million_takes_more_by_as_much() {
        let before = Cost([5; KINDS.len()]);
        let after = Cost([205, 5, 5, 5, 5, 605, 205, 205, 205]);
        let told = after.since(before, 20_000);
        let of = |what: &str| told.iter().find(|(name, _)| name == what).map(|(_, count)| *count);
        assert_eq!((of("store_puts"), of("store_puts_of_a_million")), (Some(200), Some(10_000)));
        assert_eq!((of("messages"), of("messages_of_a_million")), (Some(600), Some(30_000)));
        assert_eq!(of("store_gets"), Some(0));
    }
}
