//! Which Sources are published, for whom, and with which sets: the publications follow their specs.

use std::collections::BTreeMap;

use model::{Archive, SetRule, SourceId};
use publish::{MOST_SETS, PartSet};
use store::SourceMarker;

use super::Keeper;
use crate::daemon::admission::readers;
use crate::readers::Readers;
use crate::set::Set;
use crate::several::Member;

/// What is to be published of a Source.
struct Wanted {
    marker: SourceMarker,
    readers: Readers,
    archive: Archive,
    sets: Vec<SetRule>,
}

impl Keeper {
    /// Takes the Sources that are to be published now, and leaves the others.
    pub(super) fn take_sources(&mut self) {
        let wanted = self.wanted();
        for source in self.agenda.sources() {
            if !wanted.contains_key(&source) {
                tracing::info!(source.id = %source, "a Source is published no longer");
                self.agenda.remove(&source);
                self.all.remove(source.as_str());
            }
        }
        for (source, wanted) in wanted {
            self.take(source, wanted);
        }
        self.share();
    }

    /// The Sources that are to be published, as many as one publisher can.
    fn wanted(&self) -> BTreeMap<SourceId, Wanted> {
        let tokens = self.server.settings.readers.tokens.clone();
        let mut wanted: BTreeMap<SourceId, Wanted> = BTreeMap::new();
        let (mut taken, mut beyond) = (0_usize, 0_usize);
        let matching = self.recipe.matching.as_ref();
        self.views.sources.for_each(|source| {
            let Some(readers) = readers(source, tokens.as_ref()) else { return };
            if matching.is_some_and(|matching| !matching.matches(&source.labels)) {
                return;
            }
            // The Source Description names both.
            let with_parts = 1 + source.publish_sets.len();
            if taken + with_parts > MOST_SETS {
                beyond += 1;
                return;
            }
            taken += with_parts;
            let marker = SourceMarker::new(source.id.clone(), source.entry.as_str());
            let archive = source.publish_archive.unwrap_or(self.recipe.archive);
            let sets = source.publish_sets.clone();
            wanted.insert(source.id.clone(), Wanted { marker, readers, archive, sets });
        });
        if beyond > 0 {
            tracing::error!(
                beyond,
                most = MOST_SETS,
                "more Sources and sets by rule are to be published than one publisher can"
            );
        }
        wanted
    }

    /// Publishes a Source from now on, or as its spec says now.
    fn take(&mut self, source: SourceId, wanted: Wanted) {
        let Wanted { marker, readers, archive, sets } = wanted;
        let has_these = |set: &Set| set.shared.publication().sets.iter().map(PartSet::rule).eq(&sets);
        if self.agenda.get(&source).is_some_and(|item| !has_these(&item.set)) {
            tracing::info!(source.id = %source, "a Source is published with other sets from now on");
            self.agenda.remove(&source);
        }
        if let Some(item) = self.agenda.get(&source) {
            item.set.shared.admit(&readers);
            self.all.set_readers(source.as_str(), readers);
            if item.set.shared.archive_for(archive) {
                tracing::info!(source.id = %source, %archive, "published lists of the past stay for another time");
                self.agenda.look_anew(&source);
            }
            return;
        }
        match self.open(&marker, archive, sets) {
            Ok(set) => {
                tracing::info!(source.id = %source, "a Source is published from now on");
                set.shared.admit(&readers);
                self.agenda.add(source, set.clone());
                self.all.put(Member { marker, readers, set: Some(set) });
            }
            Err(error) => tracing::error!(source.id = %source, %error, "a Source cannot be published"),
        }
    }
}
