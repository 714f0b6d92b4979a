//! Charts of the last hours, from the samples of the fleet. Text describes each chart, and one table has all figures.

use std::sync::Arc;

use control::Sample;
use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use crate::console::layout::Column::{Number, Text};
use crate::console::{chart, format, layout};
use crate::state::Gateway;

/// The span of the charts; samples are not stored longer.
const SPAN_SECONDS: i64 = 6 * 3_600;
/// Within this span each minute has a bar of its own.
const SHORT_SECONDS: i64 = 3_600;
/// The minutes of a bar in a longer span.
const MINUTES: i64 = 10;
/// How far ahead the clock of another gateway may be.
const AHEAD_SECONDS: i64 = 120;

/// The samples of one bar; none if no gateway recorded any.
struct Slot {
    at: Timestamp,
    samples: Vec<Arc<Sample>>,
}

/// A chart: its title, its description, and the value of a slot.
struct Chart {
    id: &'static str,
    title: &'static str,
    what: &'static str,
    value: fn(&Slot) -> Option<u64>,
}

const CHARTS: [Chart; 5] = [
    Chart { id: "stored", title: "Throughput", what: "resources stored per minute", value: Slot::stored },
    Chart {
        id: "runs",
        title: "Active runs",
        what: "runs that schedulers worked on",
        value: |slot| slot.most(|sample| sample.runs.active.into()),
    },
    Chart {
        id: "waits",
        title: "Waiting runs",
        what: "runs without a place: queued, or waiting for their Sources",
        value: |slot| {
            slot.most(|sample| {
                let runs = &sample.runs;
                [runs.queued, runs.unreachable, runs.retry_after, runs.turn].map(u64::from).iter().sum()
            })
        },
    },
    Chart {
        id: "pending",
        title: "Backlog",
        what: "resources pending in runs that are not over",
        value: |slot| slot.most(|sample| sample.pending),
    },
    Chart {
        id: "trouble",
        title: "Sources in trouble",
        what: "Sources that failed, are blocked or are stale",
        value: |slot| {
            slot.most(|sample| {
                let sources = &sample.sources;
                [sources.failed, sources.blocked, sources.stale].map(u64::from).iter().sum()
            })
        },
    },
];

/// The samples of the last hours, oldest first.
pub(super) fn recent(gateway: &Gateway, now: Timestamp) -> Vec<Arc<Sample>> {
    let samples = gateway.views.samples.all().into_iter().map(|sample| sample.value);
    let in_span = |sample: &Arc<Sample>| {
        (-AHEAD_SECONDS..SPAN_SECONDS).contains(&now.duration_since(sample.at).as_secs())
    };
    samples.filter(in_span).collect()
}

/// The charts.
pub(super) fn section(samples: &[Arc<Sample>], now: Timestamp) -> Markup {
    let slots = slots(samples, now);
    html! {
        section aria-labelledby="hours" {
            h2 #hours { "Last hours" }
            @if slots.is_empty() {
                p { "No data yet. Gateways record a sample each minute, and keep samples for 6 hours." }
            } @else {
                div.charts { @for chart in &CHARTS { (figure(chart, &slots)) } }
                (table(&slots))
            }
        }
    }
}

fn figure(chart: &Chart, slots: &[Slot]) -> Markup {
    let values: Vec<Option<u64>> = slots.iter().map(|slot| (chart.value)(slot)).collect();
    let last = values.iter().rev().flatten().next();
    let most = values.iter().flatten().max();
    html! {
        figure aria-labelledby=(chart.id) {
            figcaption #(chart.id) {
                strong { (chart.title) } ": " (chart.what) ". "
                @match last.zip(most) {
                    Some((last, most)) => { "The last value is " (format::count(*last)) ", the highest " (format::count(*most)) "." },
                    None => "No data yet.",
                }
            }
            @if last.is_some() {
                (chart::drawing(&values.iter().zip(slots).map(|(value, slot)| {
                    value.map(|value| (value as f64, format!("{}: {}", minute(slot.at), format::count(value))))
                }).collect::<Vec<_>>()))
            }
        }
    }
}

fn table(slots: &[Slot]) -> Markup {
    let mut columns = vec![Text("From (UTC)")];
    columns.extend(CHARTS.iter().map(|chart| Number(chart.title)));
    let row = |slot: &Slot| {
        html! {
            th scope="row" { (minute(slot.at)) }
            @for chart in &CHARTS {
                td.number { ((chart.value)(slot).map_or("no data".to_owned(), format::count)) }
            }
        }
    };
    html! {
        details {
            summary { "Figures" }
            (layout::table("Figures of the charts", "The highest value of each span; of the throughput, the mean", &columns, slots.iter().map(row)))
        }
    }
}

/// The bars from the first sample until now, oldest first: of one minute each, or of ten in a longer span.
fn slots(samples: &[Arc<Sample>], now: Timestamp) -> Vec<Slot> {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Vec::new() };
    let is_short = now.duration_since(first.at).as_secs() < SHORT_SECONDS;
    let step = if is_short { 60 } else { MINUTES * 60 };
    let number = |at: Timestamp| at.as_second().div_euclid(step);
    let begin = number(first.at);
    // The minute of now is not over. Its sample comes with the next one.
    let end = number(last.at).max(number(now - SignedDuration::from_secs(60)));
    let mut slots: Vec<Slot> = (begin..=end)
        .filter_map(|number| Timestamp::from_second(number * step).ok())
        .map(|at| Slot { at, samples: Vec::new() })
        .collect();
    for sample in samples {
        let place = usize::try_from(number(sample.at) - begin);
        if let Some(slot) = place.ok().and_then(|place| slots.get_mut(place)) {
            slot.samples.push(Arc::clone(sample));
        }
    }
    slots
}

fn minute(at: Timestamp) -> String {
    at.strftime("%H:%M").to_string()
}

impl Slot {
    fn most(&self, value: impl Fn(&Sample) -> u64) -> Option<u64> {
        self.samples.iter().map(|sample| value(sample)).max()
    }

    /// Resources stored per minute, the mean of the minutes that were measured.
    fn stored(&self) -> Option<u64> {
        let (mut sum, mut minutes) = (0_u64, 0);
        for stored in self.samples.iter().filter_map(|sample| sample.stored) {
            sum = sum.saturating_add(stored);
            minutes += 1;
        }
        sum.checked_div(minutes)
    }
}

#[cfg(test)]
mod tests;
