//! The content of a notification, as far as it concerns a harvester.

use url::Url;

use crate::Limits;
use crate::json::{Unreadable, parse};
use crate::node::{Document, Item, Node};
use crate::terms::AS;

/// The most objects of one notification that are read.
const MOST_OBJECTS: usize = 100;
/// The most types that are returned.
const MOST_TYPES: usize = 20;
/// The longest id that is read, in bytes.
const LONGEST_NAME: usize = 2_048;

/// The activity of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activity {
    /// An object was created.
    Create,
    /// An object was changed.
    Update,
    /// An object was deleted.
    Delete,
    /// Announces an object: a resource, or an activity about one.
    Announce,
}

/// A notification. None of it is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Notification {
    /// Its id.
    pub id: Option<String>,
    /// The activity, if it concerns a copy; otherwise the notification is only kept.
    pub activity: Option<Activity>,
    /// All its types, as IRIs if its contexts are known.
    pub types: Vec<String>,
    /// The actor.
    pub actor: Option<String>,
    /// The sending system (COAR Notify).
    pub origin: Option<String>,
    /// The receiving system (COAR Notify).
    pub target: Option<String>,
    /// Its objects: those of the activity, those of an announced activity, and what they belong to
    /// (`context`).
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
    /// Parses a notification.
    ///
    /// # Errors
    /// When it is not JSON-LD with content, or exceeds the limits.
    pub fn read(bytes: &[u8], limits: &Limits) -> Result<Self, Unreadable> {
        let value = parse(bytes, limits)?;
        let document = Document::of(&value);
        let nodes = document.nodes();
        let is_activity = |node: &&Node<'_>| Activity::of(&node.types()).is_some();
        // The activity; of several the one that announces the others; else any node with a type, or any node.
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

    /// Whether it reports a change at the origin of this URL, such as the entry URL of a Source.
    pub fn is_about(&self, entry: &Url) -> bool {
        let origin = entry.origin();
        self.activity.is_some() && self.objects.iter().any(|object| object.origin() == origin)
    }

    /// Its claimed origin (scheme, host and port): that of the sending system, else of the actor.
    pub fn speaks_from(&self) -> Option<url::Origin> {
        let named = self.origin.as_ref().or(self.actor.as_ref())?;
        Some(Url::parse(named).ok()?.origin()).filter(url::Origin::is_tuple)
    }
}

/// The objects of an activity.
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
    let object = format!("{AS}object");
    let context = format!("{AS}context");
    for item in activity.values(&object) {
        let inner = match &item {
            Item::Node(node) => Some(document.whole(node)),
            Item::Text(_) => None,
        };
        match inner.filter(|inner| Activity::of(&inner.types()).is_some()) {
            // The id of an activity is no resource.
            Some(inner) => inner.values(&object).for_each(|item| take(&item)),
            None => take(&item),
        }
    }
    activity.values(&context).for_each(|item| take(&item));
    found
}

#[cfg(test)]
mod tests;
