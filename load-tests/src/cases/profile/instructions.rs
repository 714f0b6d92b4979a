//! Instructions and allocations, as callgrind counts them: the same on every machine, under any load.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use super::stage;

/// Functions of the allocator: a call to one of these is an allocation.
const ALLOCATE: [&str; 5] =
    ["_rjem_malloc", "_rjem_calloc", "_rjem_realloc", "_rjem_mallocx", "_rjem_rallocx"];

/// Counts outside of the kernel.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Instructions {
    /// Instructions, by the stage of their function.
    pub(super) by_stage: BTreeMap<String, f64>,
    /// Allocations, including reallocations.
    pub(super) allocations: f64,
}

/// Reads a report, line by line.
#[derive(Debug, Default)]
struct Parser {
    /// A name is given once, and later referenced by its number.
    names: HashMap<String, String>,
    /// The stage of the current function.
    stage: &'static str,
    /// Whether the called function allocates.
    allocates: bool,
    /// Whether the next line has the cost of a call, which is counted in the called function.
    is_call: bool,
    found: Instructions,
}

impl Instructions {
    /// Reads callgrind's report.
    pub(super) fn read(report: &Path) -> anyhow::Result<Self> {
        let mut parser = Parser::default();
        for line in BufReader::new(File::open(report)?).lines() {
            parser.line(&line?);
        }
        Ok(parser.found)
    }
}

impl Parser {
    fn line(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("fn=") {
            self.stage = stage::of(&self.name(name));
        } else if let Some(name) = line.strip_prefix("cfn=") {
            let name = self.name(name);
            self.allocates = ALLOCATE.contains(&name.as_str());
        } else if let Some(calls) = line.strip_prefix("calls=") {
            self.is_call = true;
            let calls = calls.split(' ').next().and_then(|calls| calls.parse::<f64>().ok());
            if self.allocates {
                self.found.allocations += calls.unwrap_or_default();
            }
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<f64>().ok()).unwrap_or_default();
            if !std::mem::take(&mut self.is_call) {
                *self.found.by_stage.entry(self.stage.to_owned()).or_default() += cost;
            }
        }
    }

    /// `(7) name` defines a name, `(7)` references it.
    fn name(&mut self, told: &str) -> String {
        match told.split_once(' ') {
            Some((number, name)) => {
                self.names.insert(number.to_owned(), name.to_owned());
                name.to_owned()
            }
            None => self.names.get(told).cloned().unwrap_or_else(|| told.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_calls_count_where_they_arise_and_allocations_are_calls() {
        let report = "events: Ir\n\nfn=(1) hyper::client::send\n12 100\n+3 20\ncfn=(2) _rjem_malloc\ncalls=3 40\n* 900\n\
            * 5\n\nfn=(2)\n312 900\n\nfn=(3) scheduler::plan::plan\n7 50\ncfn=(1)\ncalls=9 12\n+1 1025\ntotals: 1075\n";
        let mut parser = Parser::default();
        report.lines().for_each(|line| parser.line(line));
        let by_stage = [("HTTP", 125.0), ("allocator", 900.0), ("scheduler", 50.0)];
        let by_stage = by_stage.map(|(stage, cost)| (stage.to_owned(), cost));
        assert_eq!(parser.found, Instructions { by_stage: by_stage.into(), allocations: 3.0 });
    }
}
