//! Whether what was harvested is stored, read from the store by `thresher ls`.

use std::collections::BTreeMap;

use super::Bench;
use super::snapshot::Processes;
use crate::check::Check;
use crate::sources_server::{Kind, sha256};
use crate::thresher::Held;

/// Healthy Sources whose catalogs are read, unless all of them are.
const SAMPLE: usize = 50;
/// Up to so many Sources, all of them are read.
const FEW: u32 = 500;

/// Compares the catalogs of healthy Sources with what these have: of all Sources, or of a sample.
pub(super) fn stored_checks(
    bench: &Bench<'_>,
    processes: &Processes<'_>,
    all: bool,
) -> anyhow::Result<Vec<Check>> {
    let population = bench.population;
    let healthy: Vec<u32> = population.of_kind(Kind::Ok).collect();
    let reads_all = all || population.sources <= FEW;
    let step = if reads_all { 1 } else { (healthy.len() / SAMPLE).max(1) };
    let sample: Vec<u32> = healthy.into_iter().step_by(step).collect();
    let mut truth = BTreeMap::new();
    for number in &sample {
        for resource in 0..population.resources {
            truth.insert(processes.sources.uri(*number, resource), sha256(*number, resource, 0));
        }
    }
    let mut right = 0;
    let mut compare = |held: Held| {
        let is_right =
            held.state == "present" && held.sha256.is_some() && held.sha256.as_ref() == truth.get(&held.uri);
        right += u64::from(is_right);
    };
    let place = processes.fleet.place();
    if reads_all {
        bench.thresher.held(&place, &mut compare)?;
    } else {
        for number in &sample {
            let source = processes.sources.id(*number)?.to_string();
            bench.thresher.held_of(&place, &source, &mut compare)?;
        }
    }
    let what = format!("stored with the right sha-256 by thresher ls, of {} Sources", sample.len());
    Ok(vec![Check::equal(&what, truth.len() as u64, right)])
}
