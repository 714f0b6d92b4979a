//! The result of a case, as JSON and as a table.

mod figures;

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::check::Check;
use crate::machine::Machine;
use crate::measure::Usage;
use crate::stats::{Spread, rounded};

/// The count of a round that compares its time with the shortest possible one, where the case knows that.
pub(crate) const REACHED: &str = "percent_of_what_can_be_reached";

/// The result of a case.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The case.
    pub(crate) case: &'static str,
    /// When it ended.
    pub(crate) finished_at: jiff::Timestamp,
    /// The machine it ran on.
    pub(crate) machine: Machine,
    /// The Source, and how it was served.
    pub(crate) setup: BTreeMap<&'static str, serde_json::Value>,
    /// The compared programs.
    pub(crate) versions: Vec<String>,
    /// One per command.
    pub(crate) rows: Vec<Row>,
}

/// The result of one command.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    /// Its name here.
    pub(crate) name: &'static str,
    /// The command line.
    pub(crate) command: String,
    /// Resources (or entries of a list, or megabytes of content) per run.
    pub(crate) resources: u64,
    /// Each run.
    pub(crate) rounds: Vec<Round>,
    /// The summary of the rounds.
    #[serde(flatten)]
    pub(crate) summary: Option<Summary>,
}

/// One run of one command.
#[derive(Debug, Serialize)]
pub(crate) struct Round {
    /// The resources it used.
    #[serde(flatten)]
    pub(crate) usage: Usage,
    /// Processor time of the Source meanwhile, on the same processors.
    pub(crate) source_cpu_seconds: f64,
    /// Processor time of the kernel and everything else on the machine meanwhile: the less, the better the
    /// figure.
    pub(crate) other_cpu_seconds: f64,
    /// Checks of its work.
    pub(crate) checks: Vec<Check>,
    /// Other counts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) counted: BTreeMap<String, u64>,
}

/// The summary of a command's rounds.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    /// Over all rounds.
    pub(crate) seconds: Spread,
    /// From the median of the seconds.
    pub(crate) resources_per_second: f64,
    /// The highest of all rounds.
    pub(crate) peak_rss_bytes: u64,
    /// Its resources per second as a multiple of these other rows', by the medians.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) times_as_fast_as: BTreeMap<&'static str, f64>,
    /// The median of the percentages of what can be reached, where the case knows that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) percent_of_what_can_be_reached: Option<f64>,
}

impl Round {
    /// This command and then another one, counted as one.
    pub(crate) fn and_then(mut self, next: &Self) -> Self {
        let own = &mut self.usage;
        let other = &next.usage;
        own.seconds = rounded(own.seconds + other.seconds);
        own.cpu_seconds = rounded(own.cpu_seconds + other.cpu_seconds);
        own.peak_rss_bytes = own.peak_rss_bytes.max(other.peak_rss_bytes);
        self.source_cpu_seconds = rounded(self.source_cpu_seconds + next.source_cpu_seconds);
        self.other_cpu_seconds = rounded(self.other_cpu_seconds + next.other_cpu_seconds);
        self
    }
}

impl Row {
    /// A row without rounds.
    pub(crate) fn new(name: &'static str, resources: u64) -> Self {
        Self { name, command: String::new(), resources, rounds: Vec::new(), summary: None }
    }
}

impl Report {
    /// Sums up the rounds of each row, and compares the rows with those named in `against`.
    pub(crate) fn summed_up(mut self, against: &[&'static str]) -> Self {
        let spreads: Vec<(&'static str, u64, Option<Spread>)> = self
            .rows
            .iter()
            .map(|row| (row.name, row.resources, Spread::of(row.rounds.iter().map(|r| r.usage.seconds))))
            .collect();
        // Rows may have different numbers of resources, so rates are compared.
        let rate = |name: &str| {
            let (_, resources, spread) = spreads.iter().find(|(row, ..)| *row == name)?;
            Some(*resources as f64 / spread.as_ref()?.median)
        };
        for (row, (.., spread)) in self.rows.iter_mut().zip(&spreads) {
            let Some(spread) = *spread else { continue };
            let own = row.resources as f64 / spread.median;
            let others = against.iter().filter(|other| **other != row.name);
            let ratios = others.filter_map(|other| Some((*other, rounded(own / rate(other)?))));
            row.summary = Some(Summary {
                seconds: spread,
                resources_per_second: (row.resources as f64 / spread.median).round(),
                peak_rss_bytes: row.rounds.iter().map(|round| round.usage.peak_rss_bytes).max().unwrap_or(0),
                times_as_fast_as: ratios.collect(),
                percent_of_what_can_be_reached: row.median_of(REACHED),
            });
        }
        self
    }

    /// The checks that fail.
    pub(crate) fn broken(&self) -> Vec<String> {
        let checks = self.rows.iter().flat_map(|row| {
            let rounds = row.rounds.iter().enumerate();
            rounds.flat_map(move |(nth, round)| {
                round.checks.iter().map(move |check| (row.name, nth + 1, check))
            })
        });
        let broken = checks.filter(|(.., check)| !check.holds);
        broken.map(|(row, round, check)| format!("{row}, round {round}: {check}")).collect()
    }

    /// One line for each row.
    pub(crate) fn table(&self) -> Table {
        let mut others: Vec<&'static str> = Vec::new();
        for other in
            self.rows.iter().flat_map(|row| row.summary.iter().flat_map(|s| s.times_as_fast_as.keys()))
        {
            if !others.contains(other) {
                others.push(other);
            }
        }
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        let mut header: Vec<String> =
            ["command", "median s", "min–max s", "per second"].map(str::to_owned).to_vec();
        header.extend(others.iter().map(|other| format!("× {other}")));
        let knows_least = self.rows.iter().any(|row| row.median_of(REACHED).is_some());
        header.extend(knows_least.then(|| "% of what can be reached".to_owned()));
        header.extend(["peak MiB", "cpu s", "source cpu s", "other cpu s", "checks"].map(str::to_owned));
        table.set_header(header);
        for row in &self.rows {
            if let Some(summary) = &row.summary {
                table.add_row(row.cells(summary, &others, knows_least));
            }
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

impl Row {
    /// The median of a count over the rounds that have it.
    fn median_of(&self, count: &str) -> Option<f64> {
        let counts = self.rounds.iter().filter_map(|round| round.counted.get(count));
        Spread::of(counts.map(|count| *count as f64)).map(|spread| spread.median)
    }

    fn cells(&self, summary: &Summary, others: &[&str], knows_least: bool) -> Vec<String> {
        let median = |of: fn(&Round) -> f64| Spread::of(self.rounds.iter().map(of)).map_or(0.0, |s| s.median);
        let Spread { median: seconds, min, max } = summary.seconds;
        let mut cells = vec![
            self.name.to_owned(),
            format!("{seconds:.2}"),
            format!("{min:.2}–{max:.2}"),
            format!("{:.0}", summary.resources_per_second),
        ];
        cells.extend(others.iter().map(|other| {
            summary.times_as_fast_as.get(other).map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
        }));
        if knows_least {
            let reached = summary.percent_of_what_can_be_reached;
            cells.push(reached.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.0}")));
        }
        let all_hold = self.rounds.iter().flat_map(|round| &round.checks).all(|check| check.holds);
        cells.extend([
            format!("{:.0}", summary.peak_rss_bytes as f64 / f64::from(1 << 20)),
            format!("{:.2}", median(|round| round.usage.cpu_seconds)),
            format!("{:.2}", median(|round| round.source_cpu_seconds)),
            format!("{:.2}", median(|round| round.other_cpu_seconds)),
            if all_hold { "hold" } else { "BROKEN" }.to_owned(),
        ]);
        cells
    }
}

#[cfg(test)]
mod tests;
