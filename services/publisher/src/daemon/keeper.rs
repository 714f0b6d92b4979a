//! Keeps the publications of a fleet: which there are, for whom, who makes them, and when.

use std::collections::BTreeMap;
use std::time::Duration;

use control::{
    ChangedKey, ChangedKeys, HubHint, HubHints, Leases, Member as Process, MemberId, Role, Run, Selector,
    SourceSpec, WatchCache, assign,
};
use model::{Archive, SetRule, SourceId};
use publish::{Base, MOST_SETS, PartSet, Place, Policy, Publication, PublishError, Takedown, paths};
use serving::{Catalogs, VerifiedCache};
use store::SourceMarker;
use tokio::sync::mpsc;
use tokio::time::Instant;
use url::Url;

use super::agenda::{Agenda, Looked};
use super::config::{admits_by, readers};
use super::hubs;
use super::look::Looker;
use super::mark::Mark;
use crate::follow;
use crate::harvest::Harvest;
use crate::hub::{FleetFront, Front, Room};
use crate::notify::{self, Way};
use crate::readers::Readers;
use crate::set::{Server, Set};
use crate::several::{Member, Several};
use crate::shared::{OpenRecords, Shared};
use crate::takedowns::Takedowns;

/// How long changes of specs are gathered: many may come at once.
const GATHER: Duration = Duration::from_millis(100);
/// Results that wait to be noted. Looks beyond wait with theirs.
const RESULTS: usize = 64;

/// Views of the control store, which follow its changes.
pub(crate) struct Views {
    pub(crate) sources: WatchCache<SourceSpec>,
    pub(crate) runs: WatchCache<Run>,
    pub(crate) members: WatchCache<Process>,
    /// None without hubs of their own.
    pub(crate) hub_hints: Option<WatchCache<HubHint>>,
}

/// What publications are made of.
pub(crate) struct Recipe {
    /// How the IDs of publishers begin that publish the same Sources.
    pub(crate) name: String,
    pub(crate) catalogs: Catalogs,
    pub(crate) matching: Option<Selector>,
    pub(crate) dumps: bool,
    /// The hubs of others, however they are told.
    pub(crate) hubs: Vec<Url>,
    /// None without hubs of their own.
    pub(crate) own_hub: Option<HubRecipe>,
    /// How long lists of the past stay, where the spec of the Source does not say it.
    pub(crate) archive: Archive,
}

/// What the sets' own hubs are made of.
pub(crate) struct HubRecipe {
    /// The URL below which they are: each at `hub` in the folder of its set.
    pub(crate) base: Base,
    pub(crate) room: Room,
    pub(crate) leases: Leases,
    pub(crate) hints: HubHints,
}

/// What is to be published of a Source.
struct Wanted {
    marker: SourceMarker,
    readers: Readers,
    admits_by: String,
    archive: Archive,
    sets: Vec<SetRule>,
}

/// Keeps the publications.
pub(crate) struct Keeper {
    all: Several,
    server: Server,
    views: Views,
    recipe: Recipe,
    verified: VerifiedCache,
    looker: Looker,
    agenda: Agenda,
    /// The publishers that are alive, as of the last time that they shared the Sources.
    publishers: Vec<MemberId>,
    looked: mpsc::Sender<LookResult>,
    results: mpsc::Receiver<LookResult>,
}

/// What came of a look.
struct LookResult {
    source: SourceId,
    /// What was looked at.
    shared: Shared,
    looked: Looked,
    is_slow: bool,
}

impl Keeper {
    pub(crate) fn new(all: Several, server: Server, views: Views, recipe: Recipe, looker: Looker) -> Self {
        let (looked, results) = mpsc::channel(RESULTS);
        let (verified, agenda) = (VerifiedCache::default(), Agenda::default());
        let publishers = Vec::new();
        Self { all, server, views, recipe, verified, looker, agenda, publishers, looked, results }
    }

    /// Keeps the publications until the server is to stop. Calls `ready` when the sets are served.
    pub(crate) async fn keep(mut self, ready: impl FnOnce()) {
        let stop = self.server.stop.clone();
        let mut runs = self.views.runs.changed_keys();
        let mut hints = self.views.hub_hints.as_ref().map(WatchCache::changed_keys);
        let mut takedowns = self.server.settings.takedowns.as_ref().map(Takedowns::changes);
        self.views.sources.mark_seen();
        self.views.members.mark_seen();
        self.take_sources();
        ready();
        loop {
            let next = self.agenda.next();
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.views.sources.changed() => {
                    tokio::time::sleep(GATHER).await;
                    self.views.sources.mark_seen();
                    self.take_sources();
                }
                // Each heartbeat is a change.
                () = self.views.members.changed() => {
                    if self.alike() != self.publishers {
                        self.share();
                    }
                }
                changed = runs.next() => self.note_runs(&changed),
                changed = next_of(&mut hints) => self.call_hubs(&changed),
                Some(result) = self.results.recv() => {
                    self.end(&result);
                    self.count();
                }
                () = follow::changed(&mut takedowns) => {
                    for source in self.agenda.sources() {
                        self.agenda.look_anew(&source);
                    }
                }
                () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                    while let Some(source) = self.agenda.take_due() {
                        self.begin(source);
                    }
                }
            }
        }
    }

    /// Takes the Sources that are to be published now, and leaves the others.
    fn take_sources(&mut self) {
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
            let admits_by = admits_by(source);
            let sets = source.publish_sets.clone();
            wanted.insert(source.id.clone(), Wanted { marker, readers, admits_by, archive, sets });
        });
        if beyond > 0 {
            tracing::error!(
                beyond,
                most = MOST_SETS,
                "more Sources and sets by rule are to be published than one publisher can"
            );
        }
        for source in self.agenda.sources() {
            if !wanted.contains_key(&source) {
                tracing::info!(source.id = %source, "a Source is published no longer");
                self.agenda.remove(&source);
                self.all.remove(source.as_str());
            }
        }
        for (source, Wanted { marker, readers, admits_by, archive, sets }) in wanted {
            let has_these = |set: &Set| set.shared.publication().sets.iter().map(PartSet::rule).eq(&sets);
            if self.agenda.get(&source).is_some_and(|item| !has_these(&item.set)) {
                tracing::info!(source.id = %source, "a Source is published with other sets from now on");
                self.agenda.remove(&source);
            }
            if let Some(item) = self.agenda.get(&source) {
                self.all.set_readers(source.as_str(), readers);
                item.set.shared.admit_by(admits_by);
                if item.set.shared.archive_for(archive) {
                    tracing::info!(source.id = %source, %archive, "published lists of the past stay for another time");
                    self.agenda.look_anew(&source);
                }
                continue;
            }
            match self.open(&marker, archive, sets) {
                Ok(set) => {
                    tracing::info!(source.id = %source, "a Source is published from now on");
                    set.shared.admit_by(admits_by);
                    self.agenda.add(source, set.clone());
                    self.all.put(Member { marker, readers, set: Some(set) });
                }
                Err(error) => tracing::error!(source.id = %source, %error, "a Source cannot be published"),
            }
        }
        self.share();
    }

    /// Makes a set, which reads nothing yet.
    fn open(&self, marker: &SourceMarker, archive: Archive, sets: Vec<SetRule>) -> Result<Set, PublishError> {
        let sets = sets.into_iter().map(PartSet::new).collect::<Result<_, _>>()?;
        let source = &marker.source;
        let catalogs = &self.recipe.catalogs;
        let mut hubs = self.recipe.hubs.clone();
        let own = self.recipe.own_hub.as_ref();
        let own = own.map(|own| own_hub(&own.base, source).map(|url| (url, own))).transpose()?;
        if let Some((url, _)) = &own {
            hubs.insert(0, url.clone());
        }
        let publication = Publication {
            place: Place::of(catalogs.store().publication(source))?.shared(),
            base: self.all.base().of_set(source)?,
            source: marker.clone(),
            with_bytes: false,
            dumps: self.recipe.dumps,
            hubs,
            description: Some(self.all.base().url(publish::paths::DESCRIPTION)),
            takedown: Takedown::default(),
            sets,
            rule: None,
            policy: Policy::default().archived(archive),
        };
        let harvest = Harvest::new(source.clone(), catalogs.clone(), self.verified.clone());
        let shared = Shared::new(publication, OpenRecords::Harvest(Box::new(harvest)), &self.server.settings);
        let hub = own.map(|(url, own)| {
            Front::Fleet(FleetFront::new(shared.clone(), &url, own.room.clone(), own.hints.clone()))
        });
        Ok(Set { shared, hub })
    }

    /// Shares the publications with the other publishers: each makes those that are assigned to it.
    fn share(&mut self) {
        self.publishers = self.alike();
        for source in self.agenda.sources() {
            let is_mine = assign(&self.publishers, &source) == Some(&self.looker.me);
            let Some(item) = self.agenda.get(&source) else { continue };
            if std::mem::replace(&mut item.is_mine, is_mine) == is_mine {
                continue;
            }
            if is_mine {
                let tells = item.hubs.insert(self.server.stop.child_token()).clone();
                for hub in &self.recipe.hubs {
                    let shared = item.set.shared.clone();
                    let published = shared.published();
                    let way = Way::of(hub, &self.server.settings.pinged);
                    self.server.tasks.spawn(notify::tell(shared, hub.clone(), way, published, tells.clone()));
                }
                if let (Some(Front::Fleet(front)), Some(own)) = (&item.set.hub, &self.recipe.own_hub) {
                    let (front, leases) = (front.clone(), own.leases.clone());
                    self.server.tasks.spawn(hubs::keep(front, leases, self.looker.me.clone(), tells));
                }
                self.agenda.look_anew(&source);
            } else {
                if let Some(hubs) = item.hubs.take() {
                    hubs.cancel();
                }
                self.agenda.rest(&source);
            }
        }
        self.count();
    }

    /// The publishers that are alive and publish the same Sources.
    fn alike(&self) -> Vec<MemberId> {
        let mut publishers = self.views.members.of(Role::Publisher);
        publishers.retain(|id| id.as_str().starts_with(&self.recipe.name));
        publishers
    }

    /// Notes what runs tell of their Sources.
    fn note_runs(&mut self, changed: &ChangedKey) {
        match changed {
            ChangedKey::One(key) => {
                if let Some(run) = self.views.runs.row(key) {
                    self.agenda.note_run(&run.spec.source, &Mark::of(&run));
                }
            }
            // Any of them may have changed.
            ChangedKey::Any => {
                let agenda = &mut self.agenda;
                self.views.runs.for_each(|run| agenda.note_run(&run.spec.source, &Mark::of(run)));
            }
        }
    }

    /// Tells the hubs that requests wait for them.
    fn call_hubs(&mut self, changed: &ChangedKey) {
        let of_hint = match changed {
            // Its end is no news.
            ChangedKey::One(key) => match self.views.hub_hints.as_ref().and_then(|hints| hints.row(key)) {
                Some(hint) => Some(hint.source.clone()),
                None => return,
            },
            ChangedKey::Any => None,
        };
        let sources = of_hint.map_or_else(|| self.agenda.sources(), |source| vec![source]);
        for source in sources {
            let item = self.agenda.get(&source).filter(|item| item.is_mine);
            if let Some(Front::Fleet(front)) = item.and_then(|item| item.set.hub.as_ref()) {
                front.call();
            }
        }
    }

    fn begin(&mut self, source: SourceId) {
        let mark = self.views.runs.get(&source).map(|run| Mark::of(&run));
        let Some(look) = self.agenda.begin(&source, mark) else { return };
        let (looker, looked, stop) = (self.looker.clone(), self.looked.clone(), self.server.stop.clone());
        self.server.tasks.spawn(async move {
            tokio::select! {
                (found, is_slow) = looker.look(&source, &look) => {
                    let shared = look.set.shared.clone();
                    // Without a receiver, the server stops.
                    let _ = looked.send(LookResult { source, shared, looked: found, is_slow }).await;
                }
                // The next publisher continues.
                () = stop.cancelled() => {}
            }
        });
    }

    /// Notes what came of a look. One that began before the Source got other sets has not published these: it counts
    /// for nothing.
    fn end(&mut self, LookResult { source, shared, looked, is_slow }: &LookResult) {
        if self.agenda.get(source).is_some_and(|item| item.set.shared.is(shared)) {
            self.agenda.end(source, *looked, *is_slow);
        }
    }

    fn count(&self) {
        let mine = self.agenda.items().filter(|(_, item)| item.is_mine);
        let failing = mine.filter(|(_, item)| item.has_failed).count();
        self.server.settings.metrics.sets(self.agenda.items().count(), failing);
    }
}

/// The URL of a set's own hub.
fn own_hub(base: &Base, source: &SourceId) -> Result<Url, PublishError> {
    let url = base.of_set(source)?.url(paths::HUB).parse();
    url.map_err(|error| PublishError::Refused(format!("the hub of {source}: {error}")))
}

/// The next change; none ever without a view.
async fn next_of(keys: &mut Option<ChangedKeys>) -> ChangedKey {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}
