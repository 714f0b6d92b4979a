//! What a notification says, as far as it concerns whoever follows Sources.

use url::Url;

use crate::Limits;
use crate::json::{Unreadable, parse};
use crate::node::{Document, Item, Node};
use crate::terms::AS;

/// The most things that one notification is read to be about.
const MOST_OBJECTS: usize = 100;
/// The most types that are told.
const MOST_TYPES: usize = 20;
/// The longest name that is read, in bytes.
const LONGEST_NAME: usize = 2_048;

/// What a notification says has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activity {
    /// Something was created.
    Create,
    /// Something was changed.
    Update,
    /// Something was deleted.
    Delete,
    /// Attention is called to something: a resource, or an activity about one.
    Announce,
}

/// A notification. All of it is a stranger's word.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notification {
    /// Its own name.
    pub id: Option<String>,
    /// What has happened, if it is one of the activities that concern a copy; else it is only kept.
    pub activity: Option<Activity>,
    /// All its types, as IRIs where its contexts are known.
    pub types: Vec<String>,
    /// Who did it.
    pub actor: Option<String>,
    /// Which system says so (COAR Notify).
    pub origin: Option<String>,
    /// Which system it is for (COAR Notify).
    pub target: Option<String>,
    /// What it is about: the activity's objects, those of an activity that is announced, and what they belong to (`context`).
    pub objects: Vec<Url>,
}

impl Activity {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Create, "Create"),
        (Self::Update, "Update"),
        (Self::Delete, "Delete"),
        (Self::Announce, "Announce"),
    ];

    /// Its name in Activity Streams 2.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.iter().find(|(activity, _)| *activity == self);
        named.map_or("", |(_, name)| name)
    }

    fn of(types: &[String]) -> Option<Self> {
        let names: Vec<_> = types.iter().filter_map(|iri| iri.strip_prefix(AS)).collect();
        Self::ALL.into_iter().find(|(_, name)| names.contains(name)).map(|(activity, _)| activity)
    }
}

impl Notification {
    /// Reads a notification.
    ///
    /// # Errors
    /// When it is not JSON-LD that says anything, or goes beyond the limits.
    pub fn read(bytes: &[u8], limits: &Limits) -> Result<Self, Unreadable> {
        let value = parse(bytes, limits)?;
        let document = Document::of(&value);
        let nodes = document.nodes();
        let is_activity = |node: &&Node<'_>| Activity::of(&node.types()).is_some();
        // The activity, of several the one that announces the others; else whatever has a type, or is there at all.
        let announces = |node: &&Node<'_>| Activity::of(&node.types()) == Some(Activity::Announce);
        let found = nodes.iter().find(announces).or_else(|| nodes.iter().find(is_activity));
        let found = found.or_else(|| nodes.iter().find(|node| !node.types().is_empty())).or(nodes.first());
        let node = found.ok_or(Unreadable::SaysNothing)?;
        let mut types = node.types();
        let activity = Activity::of(&types);
        types.truncate(MOST_TYPES);
        types.retain(|name| name.len() <= LONGEST_NAME);
        let named = |term: &str| {
            let name = node.values(&format!("{AS}{term}")).find_map(|item| item.name());
            name.filter(|name| name.len() <= LONGEST_NAME).map(str::to_owned)
        };
        Ok(Self {
            id: node.id().filter(|id| id.len() <= LONGEST_NAME).map(str::to_owned),
            activity,
            types,
            actor: named("actor"),
            origin: named("origin"),
            target: named("target"),
            objects: objects(&document, node),
        })
    }

    /// Whether it tells of a change of something that lies at the origin of this URL, such as the entry of a Source.
    pub fn is_about(&self, entry: &Url) -> bool {
        let origin = entry.origin();
        self.activity.is_some() && self.objects.iter().any(|object| object.origin() == origin)
    }

    /// From where it says that it comes: the origin, scheme, host and port, of the system that says so, else of the actor.
    pub fn speaks_from(&self) -> Option<url::Origin> {
        let named = self.origin.as_ref().or(self.actor.as_ref())?;
        Some(Url::parse(named).ok()?.origin()).filter(url::Origin::is_tuple)
    }
}

/// What an activity is about.
fn objects<'a>(document: &Document<'a>, activity: &Node<'a>) -> Vec<Url> {
    let mut found = Vec::new();
    let mut take = |item: &Item<'_>| {
        let url =
            item.name().filter(|name| name.len() <= LONGEST_NAME).and_then(|name| Url::parse(name).ok());
        if let Some(url) = url
            && found.len() < MOST_OBJECTS
            && !found.contains(&url)
        {
            found.push(url);
        }
    };
    let (object, context) = (format!("{AS}object"), format!("{AS}context"));
    for item in activity.values(&object) {
        let inner = match &item {
            Item::Node(node) => Some(document.whole(node)),
            Item::Text(_) => None,
        };
        match inner.filter(|inner| Activity::of(&inner.types()).is_some()) {
            // The name of an activity is no resource.
            Some(inner) => inner.values(&object).for_each(|item| take(&item)),
            None => take(&item),
        }
    }
    activity.values(&context).for_each(|item| take(&item));
    found
}

#[cfg(test)]
mod tests;
