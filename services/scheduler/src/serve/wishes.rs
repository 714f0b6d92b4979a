//! From what the operator wants of a Source to what a harvest is told.

use control::{Absent, RunMode, RunSpec, SourceSpec};
use model::Mode;
use regex::Regex;

use crate::{AbsentPolicy, Filter, HarvestOptions};

/// What a harvest of `source` is told in the run `run`.
///
/// # Errors
/// When a regular expression is none; what was accepted was checked, so it is one of another version.
pub(crate) fn options(source: &SourceSpec, run: &RunSpec) -> Result<HarvestOptions, regex::Error> {
    let read = |text: &Option<String>| text.as_deref().map(Regex::new).transpose();
    let mode = match (run.mode, source.mode) {
        (RunMode::Auto, wanted) | (wanted, _) => wanted,
    };
    Ok(HarvestOptions {
        mode: match mode {
            RunMode::Auto => None,
            // What a baseline finds out is what an audit of the whole list needs.
            RunMode::Baseline | RunMode::Audit => Some(Mode::Baseline),
            RunMode::Incremental => Some(Mode::Incremental),
        },
        strict: source.strict,
        filter: Filter { include: read(&source.include)?, exclude: read(&source.exclude)? },
        jobs_per_lane: source.concurrency.into(),
        absent: match source.absent {
            Absent::Confirm => AbsentPolicy::Confirm,
            Absent::Delete => AbsentPolicy::Delete,
            Absent::Keep => AbsentPolicy::Keep,
        },
        max_deletes_percent: if run.allow_deletes { 100 } else { source.max_deletes_percent },
        ..HarvestOptions::default()
    })
}

#[cfg(test)]
mod tests {
    use control::AskedBy;
    use jiff::Timestamp;
    use model::RunId;

    use super::*;

    fn wanted(change: impl FnOnce(&mut SourceSpec, &mut RunSpec)) -> HarvestOptions {
        let mut source = SourceSpec::new("http://h/".parse().unwrap());
        let mut run = RunSpec {
            id: RunId::fresh(),
            source: source.id.clone(),
            mode: RunMode::Auto,
            asked_by: AskedBy::Operator,
            asked_at: Timestamp::UNIX_EPOCH,
            allow_deletes: false,
        };
        change(&mut source, &mut run);
        options(&source, &run).unwrap()
    }

    #[test]
    fn a_run_may_go_another_way_than_its_source() {
        assert_eq!(wanted(|_, _| {}).mode, None);
        assert_eq!(wanted(|source, _| source.mode = RunMode::Incremental).mode, Some(Mode::Incremental));
        let forced = wanted(|source, run| {
            source.mode = RunMode::Incremental;
            run.mode = RunMode::Baseline;
        });
        assert_eq!(forced.mode, Some(Mode::Baseline));
    }

    #[test]
    fn the_guard_is_lifted_by_a_run_that_says_so_and_by_nothing_else() {
        assert_eq!(wanted(|source, _| source.max_deletes_percent = 3).max_deletes_percent, 3);
        assert_eq!(wanted(|_, run| run.allow_deletes = true).max_deletes_percent, 100);
    }

    #[test]
    fn filters_and_limits_are_handed_on() {
        let options = wanted(|source, _| {
            source.include = Some("/a/".to_owned());
            source.concurrency = 7.try_into().unwrap();
            source.absent = Absent::Keep;
            source.strict = true;
        });
        assert!(options.filter.takes("http://h/a/1") && !options.filter.takes("http://h/b/1"));
        assert_eq!((options.jobs_per_lane.get(), options.absent), (7, AbsentPolicy::Keep));
        assert!(options.strict);
    }
}
