//! Small charts, and those of a Source's runs. Text describes each chart, and its figures follow in a table.

use api::Run;
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Serialize;

use super::format;

/// The size of a chart, in SVG units.
const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 80.0;
/// The least number of bar slots, so that a single bar does not fill the chart.
const LEAST_BARS: usize = 10;
/// The gap between two bars, as a fraction of a slot.
const GAP: f64 = 0.2;

/// The serialized name of a value.
pub(super) fn name(choice: &impl Serialize) -> String {
    serde_json::to_value(choice).ok().and_then(|name| Some(name.as_str()?.to_owned())).unwrap_or_default()
}

/// A bar: the run, the height, and the label.
struct Bar {
    at: Timestamp,
    height: f64,
    label: String,
}

/// Charts of runs, which come newest first: speed, resources left undone, and age of the stored copy.
pub(super) fn section(runs: &[Run]) -> Markup {
    let charts = [
        ("throughput", "Throughput", "resources stored per second, by run", throughput(runs)),
        ("backlog", "Backlog", "planned resources that a run did not bring in sync", backlog(runs)),
        ("lag", "Lag", "age of the stored copy when a run brought it in sync", lag(runs)),
    ];
    html! {
        @if charts.iter().any(|(.., bars)| !bars.is_empty()) {
            section aria-labelledby="charts" {
                h2 #charts { "Last runs" }
                div.charts { @for (id, title, what, bars) in &charts { (chart(id, title, what, bars)) } }
            }
        }
    }
}

fn chart(id: &str, title: &str, what: &str, bars: &[Bar]) -> Markup {
    html! {
        figure aria-labelledby=(id) {
            figcaption #(id) {
                strong { (title) } ": " (what) ". "
                @match bars {
                    [first, .., last] | [first @ last] => {
                        (format::counted(bars.len() as u64, "run", "runs")) " from " (format::time(first.at)) ", the last one: " (last.label) "."
                    },
                    _ => "No data yet.",
                }
            }
            @if !bars.is_empty() {
                (drawing(&bars.iter().map(|bar| Some((bar.height, bar.label.as_str()))).collect::<Vec<_>>()))
                details {
                    summary { "Figures" }
                    table {
                        caption.hidden { (title) ": " (what) }
                        thead { tr { th scope="col" { "Run" } th scope="col" { (title) } } }
                        tbody { @for bar in bars { tr { th scope="row" { (format::time(bar.at)) } td { (bar.label) } } } }
                    }
                }
            }
        }
    }
}

/// Bars from left to right, each with its height and its label. A place without a value stays empty.
pub(super) fn drawing<T: AsRef<str>>(bars: &[Option<(f64, T)>]) -> Markup {
    let highest = bars.iter().flatten().map(|(height, _)| *height).fold(0.0, f64::max);
    let step = WIDTH / bars.len().max(LEAST_BARS) as f64;
    html! {
        // Hidden from screen readers, because the text and the table beside it say the same.
        svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } aria-hidden="true" focusable="false" {
            line x1="0" y1=(HEIGHT) x2=(WIDTH) y2=(HEIGHT) {}
            @for (place, bar) in bars.iter().enumerate() {
                @if let Some((value, label)) = bar {
                    @let height = if highest > 0.0 { value / highest * (HEIGHT - 4.0) } else { 0.0 };
                    rect x=(short(place as f64 * step + step * GAP / 2.0)) width=(short(step * (1.0 - GAP)))
                        y=(short(HEIGHT - height.max(1.0))) height=(short(height.max(1.0))) { title { (label.as_ref()) } }
                }
            }
        }
    }
}

fn short(number: f64) -> String {
    format!("{number:.1}")
}

/// The bars of the runs that have a value, oldest first.
fn bars(runs: &[Run], bar: impl Fn(&Run) -> Option<Bar>) -> Vec<Bar> {
    runs.iter().rev().filter_map(bar).collect()
}

fn throughput(runs: &[Run]) -> Vec<Bar> {
    bars(runs, |run| {
        let began = run.started_at?;
        let ended = run.finished_at?;
        let seconds = ended.duration_since(began).as_secs_f64().max(0.001);
        let rate = run.counters.stored as f64 / seconds;
        Some(Bar {
            at: began,
            height: rate,
            label: format!(
                "{rate:.1}/s: {}, {}, in {}",
                format::counted(run.counters.stored, "resource", "resources"),
                format::bytes(run.counters.bytes),
                format::span(ended.duration_since(began).as_secs())
            ),
        })
    })
}

fn backlog(runs: &[Run]) -> Vec<Bar> {
    bars(runs, |run| {
        let began = run.started_at.filter(|_| run.is_over())?;
        let left = run.counters.failed;
        Some(Bar {
            at: began,
            height: left as f64,
            label: format!("{} of {} planned", format::count(left), format::count(run.counters.planned)),
        })
    })
}

fn lag(runs: &[Run]) -> Vec<Bar> {
    let in_sync = |run: &&Run| run.in_sync == Some(true);
    let mut bars = Vec::new();
    let mut before: Option<Timestamp> = None;
    for run in runs.iter().rev().filter(in_sync) {
        let (Some(began), Some(ended)) = (run.started_at, run.finished_at) else { continue };
        if let Some(before) = before {
            let age = ended.duration_since(before).as_secs();
            bars.push(Bar { at: began, height: age as f64, label: format::span(age) });
        }
        before = Some(began);
    }
    bars
}

#[cfg(test)]
mod tests;
