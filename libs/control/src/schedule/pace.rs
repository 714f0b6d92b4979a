//! The poll interval of a Source that is followed continuously.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::seconds;

/// The longest poll interval.
const LONGEST_SECONDS: u64 = 24 * 3600;

/// The bounds of the pause between two polls of a followed Source. Polls are frequent while the Source changes often.
// The pause halves when a poll found changes, and grows by half when it found none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Follow))]
pub struct PollInterval {
    /// The shortest pause, in seconds.
    #[cfg_attr(feature = "openapi", schema(minimum = 1))]
    pub min_seconds: u64,
    /// The longest pause, in seconds, at most a day.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 86400))]
    pub max_seconds: u64,
}

/// Why bounds are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{least} to {most} seconds is not a valid range of pauses; the minimum is 1 or more, and the maximum is between it \
     and a day"
)]
pub struct PaceError {
    least: u64,
    most: u64,
}

impl PollInterval {
    /// Checks the bounds.
    ///
    /// # Errors
    /// [`PaceError`] when they are invalid.
    pub fn check(&self) -> Result<(), PaceError> {
        let Self { min_seconds: least, max_seconds: most } = *self;
        if least >= 1 && least <= most && most <= LONGEST_SECONDS {
            Ok(())
        } else {
            Err(PaceError { least, most })
        }
    }

    /// The pause after a poll. `last` is the previous pause, if any, and `found` the number of changes.
    pub fn next_pause(&self, last: Option<Duration>, found: u64) -> Duration {
        let least = seconds(self.min_seconds);
        let most = seconds(self.max_seconds);
        let pause = match (last, found) {
            (None, _) => least,
            (Some(last), 0) => last.saturating_mul(3) / 2,
            (Some(last), _) => last / 2,
        };
        pause.min(most).max(least)
    }
}

impl Default for PollInterval {
    /// Ten seconds to ten minutes.
    fn default() -> Self {
        Self { min_seconds: 10, max_seconds: 600 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOUNDS: PollInterval = PollInterval { min_seconds: 4, max_seconds: 60 };

    fn pauses(found: &[u64]) -> Vec<u128> {
        let mut last = None;
        let next = |&found| {
            let pause = BOUNDS.next_pause(last, found);
            last = Some(pause);
            pause.as_millis()
        };
        found.iter().map(next).collect()
    }

    #[test]
    fn an_idle_source_is_looked_at_ever_less_often() {
        assert_eq!(pauses(&[0; 9]), [4000, 6000, 9000, 13500, 20250, 30375, 45562, 60000, 60000]);
    }

    #[test]
    fn changes_bring_it_back_in_a_few_looks() {
        let mut found = vec![0; 9];
        found.extend([3, 1, 500, 1, 1]);
        assert_eq!(pauses(&found)[9..], [30000, 15000, 7500, 4000, 4000]);
    }

    #[test]
    fn bounds_that_are_none_are_refused() {
        BOUNDS.check().unwrap();
        PollInterval::default().check().unwrap();
        for (min_seconds, max_seconds) in [(0, 5), (6, 5), (1, 86_401)] {
            assert!(PollInterval { min_seconds, max_seconds }.check().is_err());
        }
    }

    proptest! {
        #[test]
        fn a_pause_never_leaves_its_bounds(
            least in 1u64..100, more in 0u64..1000, last in proptest::option::of(0u64..10_000_000), found in 0u64..3
        ) {
            let bounds = PollInterval { min_seconds: least, max_seconds: least + more };
            let pause = bounds.next_pause(last.map(Duration::from_millis), found);
            prop_assert!(pause >= seconds(least) && pause <= seconds(least + more));
        }
    }
}
