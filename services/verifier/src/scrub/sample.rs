//! Random samples, and the bounds that they prove for the whole collection.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// The probability with which a bound holds.
pub const CONFIDENCE: f64 = 0.95;
/// Bisection steps until a bound is exact to the last digit.
const HALVINGS: u32 = 200;

/// A random sample without replacement of a stream of unknown length: each of its items is in it with the same
/// probability (reservoir sampling, Vitter's algorithm R).
#[derive(Debug)]
pub struct Reservoir<T> {
    size: usize,
    seen: u64,
    held: Vec<T>,
    random: ChaCha8Rng,
}

impl<T> Reservoir<T> {
    /// A sample of `size` items at most. The same seed and the same stream give the same sample.
    pub fn new(size: usize, seed: u64) -> Self {
        Self { size, seen: 0, held: Vec::new(), random: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// Offers the next item, which is created only if it is selected.
    pub fn offer(&mut self, item: impl FnOnce() -> T) {
        self.seen += 1;
        if self.held.len() < self.size {
            self.held.push(item());
            return;
        }
        let place = self.random.random_range(0..self.seen);
        if let Some(held) = usize::try_from(place).ok().and_then(|place| self.held.get_mut(place)) {
            *held = item();
        }
    }

    /// The selected items.
    pub fn into_items(self) -> Vec<T> {
        self.held
    }
}

/// Upper bound of the share of divergent items, when `divergent` were found in a random sample of `size`: the exact
/// one-sided bound after Clopper and Pearson at [`CONFIDENCE`]. Between 0 and 1.
///
/// At this share, a sample has so few divergent items with a probability of 5 %. With none found it is 1 −
/// 0.05^(1/size). It holds for samples of any collection; for a small collection it is larger than necessary.
pub fn upper_bound(size: u64, divergent: u64) -> f64 {
    if divergent >= size {
        return 1.0;
    }
    let mut low = 0.0;
    let mut high = 1.0;
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if at_most(size, divergent, middle) > 1.0 - CONFIDENCE { low = middle } else { high = middle }
    }
    high
}

/// The probability of at most `divergent` among `size`, if each is with probability `share`.
#[expect(clippy::cast_precision_loss, reason = "counts beyond 2^53 are none")]
fn at_most(size: u64, divergent: u64, share: f64) -> f64 {
    if share <= 0.0 {
        return 1.0;
    }
    if share >= 1.0 {
        return 0.0;
    }
    let n = size as f64;
    let odds = share.ln() - (-share).ln_1p();
    let mut term = n * (-share).ln_1p();
    let mut sum = term.exp();
    for k in 1..=divergent {
        let k = k as f64;
        term += ((n - k + 1.0) / k).ln() + odds;
        sum += term.exp();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 5e-5, "{found} instead of {expected}");
    }

    #[test]
    fn bounds_are_those_of_the_tables() {
        is_near(upper_bound(100, 0), 0.0295);
        is_near(upper_bound(10_000, 0), 1.0 - 0.05_f64.powf(1.0 / 10_000.0));
        // One-sided 95 % limits, as printed in tables of the binomial distribution.
        is_near(upper_bound(20, 1), 0.2161);
        is_near(upper_bound(100, 5), 0.10225);
        is_near(upper_bound(50, 10), 0.31560);
        is_near(upper_bound(1, 0), 0.95);
        is_near(upper_bound(7, 7), 1.0);
        assert!(upper_bound(1_000_000, 3) < 8e-6);
    }

    #[test]
    fn each_item_is_drawn_as_often_as_any_other() {
        let mut drawn = [0_u32; 40];
        for seed in 0..4_000 {
            let mut sample = Reservoir::new(10, seed);
            (0..40).for_each(|n: usize| sample.offer(|| n));
            let items = sample.into_items();
            assert_eq!(items.len(), 10);
            items.iter().for_each(|&n| drawn[n] += 1);
        }
        // 1,000 are expected of each; six standard deviations are 165.
        assert!(drawn.iter().all(|count| (835..=1_165).contains(count)), "{drawn:?}");
    }

    #[test]
    fn the_same_seed_draws_the_same_and_few_are_drawn_whole() {
        let draw = |seed, of: u32| {
            let mut sample = Reservoir::new(5, seed);
            (0..of).for_each(|n| sample.offer(|| n));
            sample.into_items()
        };
        assert_eq!(draw(1, 1_000), draw(1, 1_000));
        assert_ne!(draw(1, 1_000), draw(2, 1_000));
        assert_eq!(draw(1, 3), [0, 1, 2]);
    }
}
