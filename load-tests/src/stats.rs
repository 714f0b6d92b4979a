//! Statistics of several rounds.

use serde::Serialize;

/// The median and the range of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Spread {
    /// Half of the rounds were at most this, half at least.
    pub(crate) median: f64,
    /// The lowest of all rounds.
    pub(crate) min: f64,
    /// The highest of all rounds.
    pub(crate) max: f64,
}

impl Spread {
    /// The spread of some numbers; `None` without numbers.
    pub(crate) fn of(numbers: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = numbers.into_iter().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let min = *sorted.first()?;
        let max = *sorted.last()?;
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Self { median, min, max })
    }
}

/// The number that this percentage of numbers does not exceed; `None` without numbers.
pub(crate) fn percentile(numbers: &[f64], percent: usize) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let place = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied()
}

/// Rounds to three decimals: further ones are noise, and make the figure hard to read.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_odd_count_is_the_middle_one() {
        assert_eq!(Spread::of([3.0, 1.0, 9.0]), Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
    }

    #[test]
    fn the_median_of_an_even_count_lies_between_the_middle_two() {
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 9.0]), Some(Spread { median: 3.0, min: 1.0, max: 9.0 }));
    }

    #[test]
    fn one_round_has_no_spread() {
        assert_eq!(Spread::of([2.5]), Some(Spread { median: 2.5, min: 2.5, max: 2.5 }));
    }

    #[test]
    fn nothing_has_no_median() {
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn of_a_hundred_numbers_the_95th_percentile_is_the_96th() {
        let numbers: Vec<f64> = (0..100).rev().map(f64::from).collect();
        assert_eq!(percentile(&numbers, 95), Some(95.0));
        assert_eq!(percentile(&[7.0], 95), Some(7.0));
        assert_eq!(percentile(&[], 95), None);
    }

    #[test]
    fn figures_keep_three_decimals() {
        assert_eq!(rounded(1.234_56), 1.235);
    }
}
