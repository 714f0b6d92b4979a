//! Converts a Source's spec to the options of a harvest.

use control::{AskedBy, RunSpec, SourceSpec};
use model::{HomeSite, Mode, OaiOptions, Origin, RunMode, Terms};
use planning::follow::FollowRules;
use planning::{Filter, HarvestOptions};
use regex::Regex;

/// A spec that cannot be executed. An accepted spec was checked, so this one is of another version.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OptionsError {
    /// Its filter is invalid.
    #[error("its filter is no regular expression: {0}; correct `include` and `exclude` of the Source")]
    Filter(#[from] regex::Error),
    /// Its mode is unknown.
    #[error("its mode is none of this version: {0}")]
    Mode(&'static str),
}

/// Options of a harvest of `source` in the run `run`.
///
/// # Errors
/// When this version cannot execute the spec.
pub(crate) fn options(source: &SourceSpec, run: &RunSpec) -> Result<HarvestOptions, OptionsError> {
    let read = |text: &Option<String>| text.as_deref().map(Regex::new).transpose();
    let mode = match (run.mode, source.mode) {
        (RunMode::Auto, wanted) | (wanted, _) => wanted,
    };
    if run.mode == RunMode::Auto {
        mode.check().map_err(OptionsError::Mode)?;
    }
    Ok(HarvestOptions {
        mode: match mode {
            RunMode::Auto => None,
            RunMode::Audit => Some(Mode::Audit),
            RunMode::Baseline => Some(Mode::Baseline),
            RunMode::Incremental => Some(Mode::Incremental),
        },
        prefer: source.prefer,
        repair: run.repair,
        strict: source.strict,
        filter: Filter {
            include: read(&source.include)?,
            exclude: read(&source.exclude)?,
            only_of: (source.origins == model::Origins::Same).then(|| HomeSite::of(&source.entry)),
            only: source.only.clone(),
            // The run reads it from the store.
            published: Vec::new(),
        },
        oai: OaiOptions {
            metadata_prefix: source.metadata_prefix.clone(),
            sets: source.sets.clone(),
            encoding: source.encoding,
        },
        landing_pages: source.landing_pages,
        jobs_per_origin: source.concurrency.into(),
        terms: terms(source),
        absent: source.absent,
        mirrors: source.mirrors,
        patches: source.patches,
        follow: FollowRules {
            relations: source.follow_links.clone(),
            types: source.follow_types.clone(),
            most: source.follow_max.unwrap_or(FollowRules::default().most),
            rules: source.follow_rules.clone(),
        },
        keep_versions: source.keep_versions,
        notified: run.asked_by == AskedBy::Notification && mode != RunMode::Audit,
        max_deletes_percent: if run.allow_deletes { 100 } else { source.max_deletes_percent },
        ..HarvestOptions::default()
    })
}

/// Request limits and identity of a Source.
fn terms(source: &SourceSpec) -> Terms {
    Terms {
        requests_per_second: source.requests_per_second,
        robots: Some(source.robots),
        contact: source.contact.clone(),
        credential: source.credential.as_ref().map(ToString::to_string),
        allow_networks: source.allow_networks.clone(),
        entry: Origin::of(&source.entry).ok(),
        per_origin: Some(source.concurrency),
        max_body_bytes: source.max_body_bytes,
        accept_html: source.accept_html,
    }
}

#[cfg(test)]
mod tests {
    use std::num::{NonZeroU16, NonZeroU32};

    use jiff::Timestamp;
    use model::{Absent, Robots, RunId};

    use super::*;

    fn wanted(change: impl FnOnce(&mut SourceSpec, &mut RunSpec)) -> HarvestOptions {
        answer(change).unwrap()
    }

    fn answer(change: impl FnOnce(&mut SourceSpec, &mut RunSpec)) -> Result<HarvestOptions, OptionsError> {
        let mut source = SourceSpec::new("http://h/".parse().unwrap());
        let mut run = RunSpec {
            id: RunId::fresh(),
            source: source.id.clone(),
            mode: RunMode::Auto,
            asked_by: AskedBy::Operator,
            asked_at: Timestamp::UNIX_EPOCH,
            allow_deletes: false,
            repair: false,
            task: None,
        };
        change(&mut source, &mut run);
        options(&source, &run)
    }

    #[test]
    fn a_run_may_be_an_audit_and_a_source_that_is_only_audited_is_refused() {
        assert_eq!(wanted(|_, run| run.mode = RunMode::Audit).mode, Some(Mode::Audit));
        let of_source = answer(|source, _| source.mode = RunMode::Audit).unwrap_err().to_string();
        assert!(of_source.contains("auto, baseline or incremental"), "{of_source}");
        assert!(
            answer(|source, run| {
                source.mode = RunMode::Audit;
                run.mode = RunMode::Baseline;
            })
            .is_ok()
        );
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
    fn only_what_a_hub_has_asked_for_may_do_without_a_look_at_the_lists() {
        let is_notified = |asked_by| wanted(|_, run| run.asked_by = asked_by).notified;
        assert!(is_notified(AskedBy::Notification));
        for asked_by in [AskedBy::Hint, AskedBy::Schedule, AskedBy::Operator] {
            assert!(!is_notified(asked_by), "{asked_by:?}");
        }
    }

    #[test]
    fn the_guard_is_lifted_by_a_run_that_says_so_and_by_nothing_else() {
        assert_eq!(wanted(|source, _| source.max_deletes_percent = 3).max_deletes_percent, 3);
        assert_eq!(wanted(|_, run| run.allow_deletes = true).max_deletes_percent, 100);
    }

    #[test]
    fn of_which_sites_resources_are_taken_is_handed_on() {
        let same = wanted(|source, _| source.origins = model::Origins::Same).filter;
        assert!(
            !same.takes("https://other.invalid/") && wanted(|_, _| {}).filter.takes("https://other.invalid/")
        );
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
        assert_eq!((options.jobs_per_origin.get(), options.absent), (7, Absent::Keep));
        assert!(options.strict);
    }

    #[test]
    fn which_links_are_followed_is_handed_on() {
        let none = wanted(|_, _| {}).follow;
        assert!(none.is_empty());
        let pdf = wanted(|source, _| {
            source.follow_links = vec!["item".parse().unwrap()];
            source.follow_types = vec!["application/pdf".parse().unwrap()];
            source.follow_max = NonZeroU16::new(3);
            source.follow_rules = vec!["rel=describedby,host=h".parse().unwrap()];
        })
        .follow;
        let selects = |rel, media_type, uri: &str| pdf.may_select(rel, media_type, &uri.parse().unwrap());
        assert!(
            selects("item", Some("application/pdf"), "http://h/a") && !selects("item", None, "http://h/a")
        );
        assert!(
            selects("describedby", None, "http://h/a") && !selects("describedby", None, "http://other/a")
        );
        assert_eq!((pdf.most.get(), none.most.get()), (3, 20));
    }

    #[test]
    fn how_a_source_is_asked_is_handed_on_without_a_secret() {
        let terms = wanted(|source, _| {
            source.requests_per_second = NonZeroU32::new(3);
            source.robots = Robots::Obey;
            source.contact = Some("mailto:a@example.org".to_owned());
            source.credential = Some("partner-1".parse().unwrap());
            source.allow_networks = vec!["10.1.0.0/16".parse().unwrap()];
        })
        .terms;
        assert_eq!((terms.requests_per_second, terms.robots), (NonZeroU32::new(3), Some(Robots::Obey)));
        assert_eq!(terms.contact.as_deref(), Some("mailto:a@example.org"));
        assert_eq!(terms.credential.as_deref(), Some("partner-1"));
        assert_eq!(terms.entry, Some("http://h:80".parse().unwrap()));
        assert_eq!(terms.per_origin.map(NonZeroU16::get), Some(4));
        assert_eq!(terms.allow_networks, ["10.1.0.0/16".parse().unwrap()]);
    }
}
