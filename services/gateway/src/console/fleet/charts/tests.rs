use control::{SampledRuns, SampledSources};

use super::*;

fn at(minute: i64) -> Timestamp {
    // 1,800,000,000 is a full hour.
    Timestamp::from_second(1_800_000_000 + minute * 60).unwrap()
}

fn sample(minute: i64, active: u32, stored: Option<u64>) -> Arc<Sample> {
    let runs = SampledRuns { active, queued: 2 * active, ..SampledRuns::default() };
    let sources = SampledSources { failed: 1, stale: 2, in_sync: 90, ..SampledSources::default() };
    Arc::new(Sample { at: at(minute), runs, sources, pending: 7, stored, bytes: None })
}

fn values(id: &str, slots: &[Slot]) -> Vec<Option<u64>> {
    let chart = CHARTS.iter().find(|chart| chart.id == id).unwrap();
    slots.iter().map(|slot| (chart.value)(slot)).collect()
}

#[test]
fn each_minute_has_a_bar_at_first_and_a_minute_without_a_sample_stays_empty() {
    let slots = slots(&[sample(0, 3, None), sample(1, 4, Some(60)), sample(3, 5, Some(90))], at(5));
    assert_eq!(values("runs", &slots), [Some(3), Some(4), None, Some(5), None]);
    assert_eq!(values("stored", &slots), [None, Some(60), None, Some(90), None]);
    assert_eq!(values("waits", &slots)[0], Some(6));
    assert_eq!(values("trouble", &slots)[3], Some(3));
    assert_eq!(slots[0].at, at(0));
}

#[test]
fn later_a_bar_is_the_highest_of_ten_minutes_and_the_mean_of_the_throughput() {
    let samples: Vec<_> = (0..360).map(|n| sample(n, n as u32, Some(n as u64 % 10))).collect();
    let slots = slots(&samples, at(360));
    assert_eq!(slots.len(), 36);
    assert_eq!(values("runs", &slots)[..2], [Some(9), Some(19)]);
    assert_eq!(values("stored", &slots)[0], Some(4));
}

#[test]
fn a_sample_from_a_clock_that_is_ahead_does_no_harm() {
    assert_eq!(slots(&[sample(0, 1, None), sample(2, 1, None)], at(1)).len(), 3);
    assert!(slots(&[], at(1)).is_empty());
}

#[test]
fn charts_are_told_in_words_and_stay_small() {
    let samples: Vec<_> = (0..360).map(|n| sample(n, 4_000_000, Some(4_000_000_000))).collect();
    let text = section(&samples, at(360)).into_string();
    assert!(text.contains("The last value is 4\u{202f}000\u{202f}000\u{202f}000, the highest"), "{text}");
    assert_eq!(text.matches("aria-hidden=\"true\"").count(), CHARTS.len());
    assert!(text.contains("<caption>The highest value of each span"), "{text}");
    assert!(text.len() < 50_000, "{}", text.len());
    assert!(section(&[], at(0)).into_string().contains("No data yet."));
}
