//! Which publications are this publisher's to make, of those that live publishers share.

use control::{MemberId, Role, assign};

use super::Keeper;
use crate::daemon::hubs;
use crate::hub::Front;
use crate::notify::{self, Way};

impl Keeper {
    /// Shares the publications with the other publishers: each makes those that are assigned to it.
    pub(super) fn share(&mut self) {
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
                    let clients = self.server.hub_clients.clone();
                    let tell = notify::tell(shared, hub.clone(), way, clients, published, tells.clone());
                    self.server.tasks.spawn(tell);
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
                self.agenda.look_no_more(&source);
            }
        }
        self.count();
    }

    /// The publishers that are alive and publish the same Sources.
    pub(super) fn alike(&self) -> Vec<MemberId> {
        let mut publishers = self.views.members.of(Role::Publisher);
        publishers.retain(|id| id.as_str().starts_with(&self.recipe.name));
        publishers
    }
}
