//! The request rates of origins at which several Sources are entered.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

use control::{SourceSpec, WatchCache};
use model::Origin;

/// The lowest rate of the Sources that are entered at each origin. Each run, probe and poll asks for one, so the rates
/// are gathered once after a change of any Source.
#[derive(Debug)]
pub(crate) struct OriginRates(Mutex<Gathered>);

#[derive(Debug)]
struct Gathered {
    sources: WatchCache<SourceSpec>,
    /// None before the first question.
    rates: Option<HashMap<Origin, NonZeroU32>>,
}

impl OriginRates {
    pub(crate) fn new(sources: WatchCache<SourceSpec>) -> Self {
        Self(Mutex::new(Gathered { sources, rates: None }))
    }

    /// The rate that holds for a Source, in requests a second: the lowest of its own and those of its neighbours.
    pub(crate) fn of(&self, source: &SourceSpec) -> Option<NonZeroU32> {
        let own = source.requests_per_second;
        let Ok(origin) = Origin::of(&source.entry) else { return own };
        let mut gathered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        own.into_iter().chain(gathered.rates().get(&origin).copied()).min()
    }
}

impl Gathered {
    fn rates(&mut self) -> &HashMap<Origin, NonZeroU32> {
        if self.sources.has_changed() {
            self.rates = None;
        }
        self.rates.get_or_insert_with(|| {
            // Before it is read: what changes meanwhile is gathered by the next question.
            self.sources.mark_seen();
            let mut rates = HashMap::new();
            self.sources.for_each(|source| add(&mut rates, source));
            rates
        })
    }
}

fn add(rates: &mut HashMap<Origin, NonZeroU32>, source: &SourceSpec) {
    let Some(rate) = source.requests_per_second.filter(|_| source.enabled) else { return };
    let Ok(origin) = Origin::of(&source.entry) else { return };
    rates.entry(origin).and_modify(|lowest| *lowest = rate.min(*lowest)).or_insert(rate);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use control::Spec;

    use super::*;
    use crate::tests::context;

    fn source(entry: &str, rate: Option<u32>) -> SourceSpec {
        let requests_per_second = rate.and_then(NonZeroU32::new);
        SourceSpec::from(Spec { requests_per_second, ..Spec::new(entry.parse().unwrap()) })
    }

    #[tokio::test]
    async fn of_the_sources_entered_at_one_origin_the_strictest_rate_holds_for_all() {
        let folder = tempfile::tempdir().unwrap();
        let context = context(folder.path()).await;
        let all = [source("http://h/a", Some(9)), source("http://h/b", Some(4)), source("http://h/c", None)];
        let others = [source("https://h/", Some(1)), source("http://h:81/", Some(2))];
        let disabled = SourceSpec::from(Spec { enabled: false, ..source("http://h/d", Some(3)).spec });
        assert_eq!(context.rates.of(&all[0]), NonZeroU32::new(9), "no other Source is known");

        for spec in all.iter().chain(&others).chain([&disabled]) {
            context.control.sources().create(spec).await.unwrap();
        }
        let mut sources = context.sources.clone();
        let shown = sources.wait_for(|sources| (sources.all().len() == 6).then_some(()));
        tokio::time::timeout(Duration::from_secs(20), shown).await.unwrap();
        for one in &all {
            assert_eq!(context.rates.of(one), NonZeroU32::new(4), "{}", one.entry);
        }
        assert_eq!(context.rates.of(&source("http://unknown/", None)), None);
    }
}
