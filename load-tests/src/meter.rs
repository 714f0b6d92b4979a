//! Measures other use of the processors. A figure from a busy machine says little, so every round reports how
//! busy it was.

use std::fs;

use anyhow::Context as _;

/// `/proc` counts time in this many ticks per second, on every Linux that we run on.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time of all processes together since the machine started, in seconds.
pub(crate) fn machine_cpu_seconds() -> anyhow::Result<f64> {
    let stat = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
    busy(&stat).context("/proc/stat is not as expected")
}

/// Processor time of a process so far, in seconds. 0 once it has ended.
pub(crate) fn process_cpu_seconds(id: u32) -> f64 {
    fs::read_to_string(format!("/proc/{id}/stat")).ok().and_then(|stat| used(&stat)).unwrap_or_default()
}

/// The most resident memory of a process at any time so far, in bytes. 0 once it has ended.
pub(crate) fn process_peak_rss_bytes(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}

/// The children of a process.
pub(crate) fn children(id: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

/// The first line: `cpu  user nice system idle iowait irq softirq steal …`.
fn busy(stat: &str) -> Option<f64> {
    let numbers: Option<Vec<f64>> = stat
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace()
        .map(|number| number.parse().ok())
        .collect();
    let numbers = numbers.filter(|numbers| numbers.len() >= 8)?;
    let idle = numbers[3] + numbers[4];
    Some((numbers[..8].iter().sum::<f64>() - idle) / TICKS_PER_SECOND)
}

/// Fields 14 and 15. The program's name before them may hold spaces and brackets.
fn used(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(str::parse::<f64>);
    Some((fields.next()?.ok()? + fields.next()?.ok()?) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_spent_idle_or_waiting_for_disks_is_not_busy() {
        let stat = "cpu  100 20 30 4000 500 6 7 8 0 0\ncpu0 1 2 3\n";
        assert_eq!(busy(stat), Some(1.71));
    }

    #[test]
    fn a_bracket_in_a_name_does_not_shift_the_fields() {
        let stat = "7 (a) (b c) S 1 7 7 0 -1 4194560 900 0 0 0 250 150 9 9 20 0 1 0 5";
        assert_eq!(used(stat), Some(4.0));
    }

    #[test]
    fn this_process_has_used_some_time_and_the_machine_more() {
        let own = process_cpu_seconds(std::process::id());
        assert!(machine_cpu_seconds().unwrap() > own);
    }
}
