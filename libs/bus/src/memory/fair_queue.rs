//! A queue in which Sources take turns.

use std::collections::{HashMap, VecDeque};

use model::SourceId;

/// A queue in which Sources take turns, and each keeps its own order. A Source with thousands of messages does not
/// delay another one.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    /// Sources with queued messages, in the order of their turns.
    turns: VecDeque<SourceId>,
    waiting: HashMap<SourceId, VecDeque<T>>,
}

impl<T> FairQueue<T> {
    pub(super) fn push(&mut self, source: &SourceId, item: T) {
        match self.waiting.get_mut(source) {
            Some(queue) => queue.push_back(item),
            None => {
                self.turns.push_back(source.clone());
                self.waiting.insert(source.clone(), VecDeque::from([item]));
            }
        }
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let source = self.turns.pop_front()?;
        let queue = self.waiting.get_mut(&source)?;
        let item = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&source);
        } else {
            self.turns.push_back(source);
        }
        item
    }

    /// Drops the queued messages of a Source, and returns their number.
    pub(super) fn remove(&mut self, source: &SourceId) -> usize {
        self.turns.retain(|other| other != source);
        self.waiting.remove(source).map_or(0, |queue| queue.len())
    }

    pub(super) fn len_of(&self, source: &SourceId) -> usize {
        self.waiting.get(source).map_or(0, VecDeque::len)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self { turns: VecDeque::new(), waiting: HashMap::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_take_turns_and_each_keeps_its_order() {
        let [a, b] = ["a", "b"].map(|s| s.parse::<SourceId>().unwrap());
        let mut turns = FairQueue::default();
        for n in [1, 2, 3] {
            turns.push(&a, n);
        }
        turns.push(&b, 10);
        turns.push(&b, 11);
        assert_eq!(turns.len(), 5);
        let order: Vec<i32> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(order, [1, 10, 2, 11, 3]);
        assert!(turns.is_empty());
    }

    #[test]
    fn a_removed_source_leaves_the_others_and_may_come_again() {
        let [a, b] = ["a", "b"].map(|s| s.parse::<SourceId>().unwrap());
        let mut turns = FairQueue::default();
        turns.push(&a, 1);
        turns.push(&a, 2);
        turns.push(&b, 10);
        assert_eq!((turns.remove(&a), turns.remove(&a)), (2, 0));
        turns.push(&a, 3);
        assert_eq!([turns.pop(), turns.pop(), turns.pop()], [Some(10), Some(3), None]);
    }
}
