//! What publications are made of, and how one is made.

use control::{HubHints, Leases, Selector};
use model::{Archive, SetRule, SourceId};
use publish::{Base, PartSet, Place, Policy, Publication, PublishError, Takedown, paths};
use serving::Catalogs;
use store::SourceMarker;
use url::Url;

use super::Keeper;
use crate::harvest::Harvest;
use crate::hub::{FleetFront, Front, Room};
use crate::set::Set;
use crate::shared::{OpenRecords, Shared};

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

impl Keeper {
    /// Makes a set, which reads nothing yet.
    pub(super) fn open(
        &self,
        marker: &SourceMarker,
        archive: Archive,
        sets: Vec<SetRule>,
    ) -> Result<Set, PublishError> {
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
}

/// The URL of a set's own hub.
fn own_hub(base: &Base, source: &SourceId) -> Result<Url, PublishError> {
    let url = base.of_set(source)?.url(paths::HUB).parse();
    url.map_err(|error| PublishError::Refused(format!("the hub of {source}: {error}")))
}
