//! Lease and renewal of a subscription (CN-3). Pure functions.

use std::time::Duration;

use jiff::Timestamp;

const DAY: Duration = Duration::from_secs(24 * 3_600);
/// The lease that is requested.
pub const ASKED_LEASE: Duration = Duration::from_secs(10 * 24 * 3_600);
/// The longest lease that is accepted: a hub that promises years may be gone tomorrow.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3_600);
/// The longest time until a renewal.
const LATEST_RENEWAL: Duration = Duration::from_secs(10 * 24 * 3_600);
/// The shortest time until a renewal: no hub can make the fleet send requests without a pause.
const EARLIEST_RENEWAL: Duration = Duration::from_secs(10);
/// The pause after the first failed request.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// The longest such pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(3_600);
/// The pause after the first denial. A denial is deliberate, so the pause is long.
const FIRST_DENIED: Duration = Duration::from_secs(3_600);

/// The lease of a subscription: what the hub granted, within limits, or the requested one if the hub did not
/// say.
pub fn lease_of(granted_seconds: Option<u64>) -> Duration {
    match granted_seconds {
        None | Some(0) => ASKED_LEASE,
        Some(seconds) => Duration::from_secs(seconds).min(LONGEST),
    }
}

/// When to renew a subscription that was verified at `verified` with this `lease`: at two thirds of it, or up
/// to a tenth of the lease earlier. `name` decides how much earlier, so that subscriptions made in the same
/// hour are not renewed in the same second.
pub fn renew_at(verified: Timestamp, lease: Duration, name: &str) -> Timestamp {
    let two_thirds = lease * 2 / 3;
    // FNV-1a: small, and the same in every process.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let earlier = two_thirds / 10_000 * u32::try_from(hash % 1_000).unwrap_or_default();
    let wait = (two_thirds - earlier).clamp(EARLIEST_RENEWAL, LATEST_RENEWAL);
    verified.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

/// The pause after this many requests in a row that failed, or were denied.
pub fn pause_after(tries: u32, denied: bool) -> Duration {
    let (first, longest) = if denied { (FIRST_DENIED, DAY) } else { (FIRST_PAUSE, LONGEST_PAUSE) };
    first.saturating_mul(2_u32.saturating_pow(tries.saturating_sub(1))).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_lease_is_what_was_granted_within_reason() {
        assert_eq!(lease_of(Some(300)), seconds(300));
        assert_eq!(lease_of(None), ASKED_LEASE);
        assert_eq!(lease_of(Some(0)), ASKED_LEASE);
        assert_eq!(lease_of(Some(u64::MAX)), 30 * DAY);
    }

    #[test]
    fn a_renewal_comes_well_before_the_end_and_neither_at_once_nor_after_weeks() {
        let now = Timestamp::UNIX_EPOCH;
        for lease in [30, 300, 3_600, 86_400, 2_678_400_u64] {
            for name in ["01J", "01K", "x"] {
                let wait = renew_at(now, seconds(lease), name).as_second().unsigned_abs();
                assert!(
                    wait * 3 <= lease * 2 && wait * 10 >= (lease * 6).min(864_000 * 6),
                    "{lease}: {wait}"
                );
            }
        }
        let wait = |lease| renew_at(now, seconds(lease), "x").as_second();
        assert_eq!(wait(1), 10, "nobody is asked more often than every ten seconds");
        assert_eq!(renew_at(now, 30 * DAY, "x").as_second(), 864_000);
        assert!(renew_at(Timestamp::MAX, DAY, "x") == Timestamp::MAX);
    }

    #[test]
    fn subscriptions_of_the_same_moment_are_renewed_at_different_ones() {
        let at = |name: u32| renew_at(Timestamp::UNIX_EPOCH, seconds(36_000), &name.to_string());
        let mut all: Vec<_> = (0..20).map(at).collect();
        all.sort();
        all.dedup();
        assert!(all.len() > 15, "{all:?}");
    }

    #[test]
    fn pauses_double_up_to_an_hour_and_after_denials_up_to_a_day() {
        let pauses: Vec<_> = (1..=11).map(|tries| pause_after(tries, false).as_secs()).collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600]);
        assert_eq!((pause_after(1, true), pause_after(9, true)), (seconds(3_600), DAY));
        assert_eq!(pause_after(u32::MAX, false), seconds(3_600));
        assert_eq!(pause_after(0, false), seconds(10));
    }
}
