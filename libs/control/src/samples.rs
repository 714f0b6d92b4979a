//! Samples: the state of the fleet once a minute, for charts over the last hours.
//!
//! All gateways see the same state, so the first of them records the sample of a minute for all.

use std::time::Duration;

use jiff::Timestamp;
use model::{Message, Persisted};
use serde::{Deserialize, Serialize};

use crate::error::{ControlError, unless_changed};
use crate::kept::Kept;
use crate::table::Table;
use crate::versioned::Revision;

/// How long a sample is stored. With one a minute, at most 360 are.
const KEPT: Duration = Duration::from_secs(6 * 3_600);

/// The state of the fleet at a full minute. Counts that are zero are not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The minute.
    pub at: Timestamp,
    /// Runs by state.
    #[serde(default, skip_serializing_if = "SampledRuns::is_empty")]
    pub runs: SampledRuns,
    /// Sources by health.
    #[serde(default, skip_serializing_if = "SampledSources::is_empty")]
    pub sources: SampledSources,
    /// Pending records of runs that are not over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pending: u64,
    /// Resources stored since the minute before; none if the gateway did not see that minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<u64>,
    /// Bytes received since the minute before, as for `stored`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// Runs that are not over, by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SampledRuns {
    /// A scheduler works on them.
    #[serde(skip_serializing_if = "is_zero")]
    pub active: u32,
    /// They wait for a place.
    #[serde(skip_serializing_if = "is_zero")]
    pub queued: u32,
    /// Their Sources do not answer.
    #[serde(skip_serializing_if = "is_zero")]
    pub unreachable: u32,
    /// Their Sources asked for a pause.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after: u32,
    /// Other runs have their turn.
    #[serde(skip_serializing_if = "is_zero")]
    pub turn: u32,
}

/// Sources by health, as the console names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SampledSources {
    /// The last run failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: u32,
    /// The run is blocked.
    #[serde(skip_serializing_if = "is_zero")]
    pub blocked: u32,
    /// The stored copy is older than the schedule allows.
    #[serde(skip_serializing_if = "is_zero")]
    pub stale: u32,
    /// There are open problems.
    #[serde(skip_serializing_if = "is_zero")]
    pub problems: u32,
    /// The run is paused.
    #[serde(skip_serializing_if = "is_zero")]
    pub paused: u32,
    /// It was never in sync.
    #[serde(skip_serializing_if = "is_zero")]
    pub never_synced: u32,
    /// A scheduler runs it.
    #[serde(skip_serializing_if = "is_zero")]
    pub running: u32,
    /// It is in sync.
    #[serde(skip_serializing_if = "is_zero")]
    pub in_sync: u32,
    /// It is disabled.
    #[serde(skip_serializing_if = "is_zero")]
    pub disabled: u32,
}

/// The samples of the last hours.
pub type Samples = Table<Sample>;

impl Table<Sample> {
    /// Records a sample, unless another process has recorded that minute. Returns whether this process recorded it.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn record(&self, sample: &Sample) -> Result<bool, ControlError> {
        let absent = Some(Revision::new(0));
        Ok(unless_changed(self.write(&sample.at, sample, absent, Some(KEPT)).await)?.is_some())
    }
}

impl Message for Sample {
    const KIND: &'static str = "sample";
    const VERSION: u16 = Persisted::Samples.version();
}

impl Kept for Sample {
    /// Any time of the minute.
    type Id = Timestamp;

    fn key(minute: &Timestamp) -> String {
        minute.strftime("%Y%m%dT%H%MZ").to_string()
    }
}

impl SampledRuns {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl SampledSources {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn is_zero(number: &(impl PartialEq + Default)) -> bool {
    *number == Default::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_sample_is_below_500_bytes_and_an_idle_fleet_takes_few() {
        let most = u32::MAX;
        let sample = Sample {
            at: Timestamp::from_second(1_800_000_000).unwrap(),
            runs: SampledRuns {
                active: most,
                queued: most,
                unreachable: most,
                retry_after: most,
                turn: most,
            },
            sources: SampledSources {
                failed: most,
                blocked: most,
                stale: most,
                problems: most,
                paused: most,
                never_synced: most,
                running: most,
                in_sync: most,
                disabled: most,
            },
            pending: u64::MAX,
            stored: Some(u64::MAX),
            bytes: Some(u64::MAX),
        };
        let bytes = model::encode(&sample);
        assert!(bytes.len() < 500, "{}", bytes.len());
        assert_eq!(model::decode::<Sample>(&bytes).unwrap(), sample);
        let idle = Sample {
            runs: SampledRuns::default(),
            sources: SampledSources::default(),
            pending: 0,
            stored: Some(0),
            bytes: None,
            ..sample
        };
        let bytes = model::encode(&idle);
        assert!(bytes.len() < 120, "{}", String::from_utf8_lossy(&bytes));
        assert_eq!(model::decode::<Sample>(&bytes).unwrap(), idle);
    }

    #[test]
    fn all_times_of_a_minute_have_one_key_and_keys_sort_by_time() {
        let at = |second: i64| Sample::key(&Timestamp::from_second(1_800_000_000 + second).unwrap());
        assert_eq!(at(0), "20270115T0800Z");
        assert_eq!(at(0), at(59));
        assert!(at(59) < at(60) && at(60) < at(86_400));
    }
}
