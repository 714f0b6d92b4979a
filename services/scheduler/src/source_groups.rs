//! Metrics of Sources by the values of one label. The operator chooses the label; the number of values is bounded.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

use control::{LabelKey, SourceSpec, Spec, WatchCache};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

/// Label of all Sources without a series of their own, in a group or by themselves. No Source can have this name: their
/// names end in a digest.
pub(crate) const OTHER: &str = "other";

/// How Sources are grouped.
#[derive(Debug, Clone)]
pub(crate) struct SourceGroups {
    /// The label. Without it, all Sources are one group.
    pub(crate) label: Option<LabelKey>,
    /// How many values have a group of their own.
    pub(crate) most: usize,
}

/// A Source that this scheduler owns.
#[derive(Debug, Clone, Default)]
pub(crate) struct GroupedSource {
    /// The value of its label, by [`SourceGroups::of`].
    pub(crate) value: Option<String>,
    pub(crate) is_stale: bool,
    pub(crate) is_failing: bool,
    pub(crate) pending: f64,
    pub(crate) problems: f64,
}

/// The Sources of a group, as this scheduler counts those that it owns.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Group {
    sources: f64,
    stale: f64,
    failing: f64,
    pending: f64,
    problems: f64,
}

impl SourceGroups {
    /// The value of the label of a Source.
    pub(crate) fn of(&self, spec: &Spec) -> Option<String> {
        Some(spec.labels.get(self.label.as_ref()?)?.as_str().to_owned())
    }

    /// The values that have a group: those of the most Sources in the fleet. So all schedulers show the same ones.
    pub(crate) fn shown(&self, sources: &WatchCache<SourceSpec>) -> Vec<String> {
        let mut counts: HashMap<String, usize> = HashMap::new();
        if self.label.is_some() {
            sources.for_each(|spec| {
                if let Some(value) = self.of(spec) {
                    *counts.entry(value).or_default() += 1;
                }
            });
        }
        self.largest(counts)
    }

    fn largest(&self, counts: HashMap<String, usize>) -> Vec<String> {
        let mut counts: Vec<_> = counts.into_iter().filter(|(value, _)| !value.is_empty()).collect();
        counts.sort_by(|(a, many), (b, more)| (Reverse(many), a).cmp(&(Reverse(more), b)));
        counts.into_iter().take(self.most).map(|(value, _)| value).collect()
    }

    /// Writes the series of each shown group, and of all other Sources.
    pub(crate) fn encode(
        encoder: &mut DescriptorEncoder<'_>,
        shown: Vec<String>,
        sources: impl Iterator<Item = GroupedSource>,
    ) -> Result<(), fmt::Error> {
        let groups = grouped(shown, sources);
        type Of = fn(&Group) -> f64;
        let series: [(&str, &str, Of); 5] = [
            ("source_group_sources", "Sources of a group that this scheduler looks after", |group| {
                group.sources
            }),
            ("source_group_stale", "Sources of a group that were not in step again in time", |group| {
                group.stale
            }),
            ("source_group_failing", "Sources of a group whose last run could not go on", |group| {
                group.failing
            }),
            (
                "source_group_pending_resources",
                "Resources that are pending in runs of a group's Sources",
                |group| group.pending,
            ),
            ("source_group_problems", "Problems that runs of a group's Sources left open", |group| {
                group.problems
            }),
        ];
        for (name, help, of) in series {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (name, group) in &groups {
                ConstGauge::new(of(group)).encode(family.encode_family(&[("group", name.as_str())])?)?;
            }
        }
        Ok(())
    }
}

/// The figures of each shown group, and of all other Sources.
fn grouped(shown: Vec<String>, sources: impl Iterator<Item = GroupedSource>) -> BTreeMap<String, Group> {
    let names = shown.into_iter().chain([OTHER.to_owned()]);
    let mut groups: BTreeMap<String, Group> = names.map(|name| (name, Group::default())).collect();
    for source in sources {
        let name = source.value.as_deref().filter(|name| groups.contains_key(*name)).unwrap_or(OTHER);
        let Some(group) = groups.get_mut(name) else { continue };
        group.sources += 1.0;
        group.stale += f64::from(u8::from(source.is_stale));
        group.failing += f64::from(u8::from(source.is_failing));
        group.pending += source.pending;
        group.problems += source.problems;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(most: usize) -> SourceGroups {
        SourceGroups { label: Some("country".parse().unwrap()), most }
    }

    #[test]
    fn values_of_most_sources_have_groups_and_all_others_are_one() {
        let counts =
            [("jp", 3), ("de", 3), ("fr", 9), ("", 99)].map(|(value, count)| (value.to_owned(), count));
        let counts = HashMap::from(counts);
        assert_eq!(groups(2).largest(counts.clone()), ["fr", "de"]);
        assert_eq!(groups(0).largest(counts.clone()), Vec::<String>::new());
        let many: HashMap<String, usize> = (0..10_000).map(|n| (format!("v{n}"), 1)).collect();
        assert_eq!(groups(20).largest(many).len(), 20);

        let source = |value: Option<&str>| GroupedSource {
            value: value.map(str::to_owned),
            is_stale: true,
            is_failing: true,
            pending: 2.0,
            problems: 1.0,
        };
        let sources = [Some("fr"), Some("jp"), None, Some("fr"), Some(OTHER)].map(source);
        let told = grouped(groups(1).largest(counts), sources.into_iter());
        let of = |n: f64| Group { sources: n, stale: n, failing: n, pending: 2.0 * n, problems: n };
        assert_eq!(told, BTreeMap::from([("fr".to_owned(), of(2.0)), (OTHER.to_owned(), of(3.0))]));
        let healthy = grouped(Vec::new(), [GroupedSource::default()].into_iter());
        assert_eq!(healthy[OTHER], Group { sources: 1.0, ..Group::default() });
    }

    #[test]
    fn without_a_label_there_is_one_group() {
        let mut spec = Spec::new("https://example.org/".parse().unwrap());
        spec.labels.insert("country".parse().unwrap(), "jp".parse().unwrap());
        assert_eq!(groups(9).of(&spec).as_deref(), Some("jp"));
        let none = SourceGroups { label: None, most: 9 };
        assert_eq!(none.of(&spec), None);
    }
}
