//! The first few of many items, and how many there are.

/// Keeps the items with the smallest keys, and counts all.
#[derive(Debug)]
pub(super) struct Top<K, T> {
    limit: usize,
    items: Vec<(K, T)>,
    count: u64,
}

impl<K: Ord, T> Top<K, T> {
    /// Keeps at most `limit` items.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, items: Vec::with_capacity(limit + 1), count: 0 }
    }

    /// Counts an item, and keeps it if it is among the first. Others are not made.
    pub(super) fn offer(&mut self, key: K, item: impl FnOnce() -> T) {
        self.count += 1;
        let place = self.items.partition_point(|(before, _)| *before <= key);
        if place < self.limit {
            self.items.insert(place, (key, item()));
            self.items.truncate(self.limit);
        }
    }

    /// The kept items, by key.
    pub(super) fn items(&self) -> impl ExactSizeIterator<Item = &T> {
        self.items.iter().map(|(_, item)| item)
    }

    /// How many items were offered.
    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_kept_in_order_and_all_are_counted() {
        let mut made = 0;
        let mut top = Top::new(3);
        for key in [5, 1, 4, 2, 9, 3, 9] {
            top.offer(key, || {
                made += 1;
                key
            });
        }
        assert_eq!((top.items().copied().collect::<Vec<_>>(), top.count()), (vec![1, 2, 3], 7));
        assert_eq!(made, 5, "what is not kept is not made");
    }
}
