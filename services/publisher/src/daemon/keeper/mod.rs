//! Keeps the publications of a fleet: which there are, for whom, who makes them, and when.

mod recipe;
mod share;
mod sources;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use control::{ChangedKey, ChangedKeys, HubHint, Member as Process, MemberId, Run, SourceSpec, WatchCache};
use model::SourceId;
use publish::TakedownList;
use serving::VerifiedCache;
use tokio::sync::mpsc;
use tokio::time::Instant;
use url::Url;

use super::agenda::{Agenda, Looked};
use super::look::Looker;
use super::mark::Mark;
use crate::follow;
use crate::hub::Front;
use crate::set::Server;
use crate::several::Several;
use crate::shared::Shared;
use crate::takedowns::Takedowns;

pub(crate) use recipe::{HubRecipe, Recipe};

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
        let mut withdrawn = self.withdrawn();
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
                () = follow::changed(&mut takedowns) => withdrawn = self.look_for(&withdrawn),
                () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                    while let Some(source) = self.agenda.take_due() {
                        self.begin(source);
                    }
                }
            }
        }
    }

    /// What is withdrawn by now.
    fn withdrawn(&self) -> Arc<TakedownList> {
        self.server.settings.takedowns.as_ref().map(|list| list.now().now()).unwrap_or_default()
    }

    /// Looks for what was withdrawn since, or is published again: first at the Sources at whose hosts it is. Which
    /// others have it, only their catalogs tell. Returns what is withdrawn by now.
    fn look_for(&mut self, before: &TakedownList) -> Arc<TakedownList> {
        let now = self.withdrawn();
        let changed = now.uris().symmetric_difference(before.uris());
        let hosts: HashSet<String> =
            changed.filter_map(|uri| uri.to_url().host_str().map(str::to_owned)).collect();
        self.agenda.look_anew_first(|url| {
            url.parse::<Url>().is_ok_and(|url| url.host_str().is_some_and(|host| hosts.contains(host)))
        });
        now
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

/// The next change; none ever without a view.
async fn next_of(keys: &mut Option<ChangedKeys>) -> ChangedKey {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}
