use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::quirk::Quirk;

/// The root element: whether a document lists resources (or packages, or documents) or is an index of such
/// lists.
///
/// Only the root element decides; neither the URI nor the capability does (RS-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Root {
    /// `urlset`, whose entries are `url` elements.
    UrlSet,
    /// `sitemapindex`, whose entries are `sitemap` elements.
    SitemapIndex,
}

impl Root {
    /// The element's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UrlSet => "urlset",
            Self::SitemapIndex => "sitemapindex",
        }
    }

    /// The name of the element that each entry is.
    pub fn entry_element(self) -> &'static str {
        match self {
            Self::UrlSet => "url",
            Self::SitemapIndex => "sitemap",
        }
    }
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The kind of a document, or of the document behind an entry: the `capability` attribute of `rs:md`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Capability {
    /// `description`: the Source Description, which lists Capability Lists.
    Description,
    /// `capabilitylist`: the capabilities of one set of resources.
    CapabilityList,
    /// `resourcelist`: a snapshot of the set.
    ResourceList,
    /// `resourcedump`: packages with a snapshot of the set.
    ResourceDump,
    /// `resourcedump-manifest`: the contents of one such package.
    ResourceDumpManifest,
    /// `changelist`: the changes of an interval.
    ChangeList,
    /// `changedump`: packages with the changes of an interval.
    ChangeDump,
    /// `changedump-manifest`: the contents of one such package.
    ChangeDumpManifest,
    /// `change-notification`: changes as they are pushed.
    ChangeNotification,
    /// `resourcelist-archive`: earlier Resource Lists (ResourceSync Archives).
    ResourceListArchive,
    /// `resourcedump-archive`: earlier Resource Dumps.
    ResourceDumpArchive,
    /// `changelist-archive`: earlier Change Lists.
    ChangeListArchive,
    /// `changedump-archive`: earlier Change Dumps.
    ChangeDumpArchive,
    /// A name that the specifications do not know, as written.
    Other(String),
}

impl Capability {
    const KNOWN: [Self; 13] = [
        Self::Description,
        Self::CapabilityList,
        Self::ResourceList,
        Self::ResourceDump,
        Self::ResourceDumpManifest,
        Self::ChangeList,
        Self::ChangeDump,
        Self::ChangeDumpManifest,
        Self::ChangeNotification,
        Self::ResourceListArchive,
        Self::ResourceDumpArchive,
        Self::ChangeListArchive,
        Self::ChangeDumpArchive,
    ];

    /// The name as the specification writes it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Description => "description",
            Self::CapabilityList => "capabilitylist",
            Self::ResourceList => "resourcelist",
            Self::ResourceDump => "resourcedump",
            Self::ResourceDumpManifest => "resourcedump-manifest",
            Self::ChangeList => "changelist",
            Self::ChangeDump => "changedump",
            Self::ChangeDumpManifest => "changedump-manifest",
            Self::ChangeNotification => "change-notification",
            Self::ResourceListArchive => "resourcelist-archive",
            Self::ResourceDumpArchive => "resourcedump-archive",
            Self::ChangeListArchive => "changelist-archive",
            Self::ChangeDumpArchive => "changedump-archive",
            Self::Other(name) => name,
        }
    }

    /// Whether documents of this kind carry `from` and `until`: lists, dumps, manifests and notifications of changes.
    pub fn tells_changes(&self) -> bool {
        matches!(
            self,
            Self::ChangeList | Self::ChangeDump | Self::ChangeDumpManifest | Self::ChangeNotification
        )
    }

    /// Whether documents of this kind carry `at`: lists, dumps and manifests of a snapshot.
    pub fn tells_snapshot(&self) -> bool {
        matches!(self, Self::ResourceList | Self::ResourceDump | Self::ResourceDumpManifest)
    }

    /// Whether documents of this kind list the contents of one package, so that entries need a `path`.
    pub fn is_manifest(&self) -> bool {
        matches!(self, Self::ResourceDumpManifest | Self::ChangeDumpManifest)
    }

    /// Whether the entries of a `urlset` of this kind are resources (not packages and not documents).
    pub fn lists_resources(&self) -> bool {
        self.is_manifest() || matches!(self, Self::ResourceList | Self::ChangeList | Self::ChangeNotification)
    }

    /// Whether documents of this kind list documents of the past (ResourceSync Archives).
    pub fn is_archive(&self) -> bool {
        matches!(
            self,
            Self::ResourceListArchive
                | Self::ResourceDumpArchive
                | Self::ChangeListArchive
                | Self::ChangeDumpArchive
        )
    }

    /// The Archive that lists earlier documents of this kind.
    pub fn archive(&self) -> Option<Self> {
        match self {
            Self::ResourceList => Some(Self::ResourceListArchive),
            Self::ResourceDump => Some(Self::ResourceDumpArchive),
            Self::ChangeList => Some(Self::ChangeListArchive),
            Self::ChangeDump => Some(Self::ChangeDumpArchive),
            _ => None,
        }
    }

    /// Whether an index (`sitemapindex`) of this kind exists in the specification.
    pub fn may_be_index(&self) -> bool {
        !self.is_manifest() && !matches!(self, Self::CapabilityList | Self::ChangeNotification)
    }

    /// Parses a name as sources write it: in any case, with `index` appended, or without its dash.
    pub(crate) fn read(name: &str) -> (Self, Option<Quirk>) {
        match Self::exact(name) {
            Some(known) => (known, None),
            None => match Self::misspelt(name) {
                Some(meant) => (meant, Some(Quirk::OddCapabilityName)),
                None => (Self::Other(name.to_owned()), Some(Quirk::UnknownCapability)),
            },
        }
    }

    fn exact(name: &str) -> Option<Self> {
        Self::KNOWN.into_iter().find(|known| known.as_str() == name)
    }

    fn misspelt(name: &str) -> Option<Self> {
        let letters: String =
            name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
        let stem = letters.strip_suffix("index").unwrap_or(&letters);
        match stem {
            "resourcedumpmanifest" => Some(Self::ResourceDumpManifest),
            "changedumpmanifest" => Some(Self::ChangeDumpManifest),
            "changenotification" => Some(Self::ChangeNotification),
            "resourcelistarchive" => Some(Self::ResourceListArchive),
            "resourcedumparchive" => Some(Self::ResourceDumpArchive),
            "changelistarchive" => Some(Self::ChangeListArchive),
            "changedumparchive" => Some(Self::ChangeDumpArchive),
            stem => Self::exact(stem),
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Names are compared exactly; an unknown one becomes [`Capability::Other`].
impl FromStr for Capability {
    type Err = Infallible;

    fn from_str(name: &str) -> Result<Self, Infallible> {
        Ok(Self::exact(name).unwrap_or_else(|| Self::Other(name.to_owned())))
    }
}

impl Serialize for Capability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Capability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Ok(Self::exact(&name).unwrap_or(Self::Other(name)))
    }
}

/// The change of a resource: the `change` attribute of `rs:md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// The resource was created.
    Created,
    /// The resource has new content.
    Updated,
    /// The resource is gone.
    Deleted,
}

impl Change {
    /// The value as the specification writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Change {
    type Err = UnknownChange;

    fn from_str(value: &str) -> Result<Self, UnknownChange> {
        match value {
            "created" => Ok(Self::Created),
            "updated" => Ok(Self::Updated),
            "deleted" => Ok(Self::Deleted),
            _ => Err(UnknownChange),
        }
    }
}

/// A `change` that is none of `created`, `updated`, `deleted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a change is one of created, updated, deleted")]
pub struct UnknownChange;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_as_it_is_written() {
        for name in [
            "description",
            "capabilitylist",
            "resourcelist",
            "resourcedump",
            "resourcedump-manifest",
            "changelist",
            "changedump",
            "changedump-manifest",
            "change-notification",
            "resourcelist-archive",
            "resourcedump-archive",
            "changelist-archive",
            "changedump-archive",
        ] {
            let capability: Capability = name.parse().unwrap();
            assert!(!matches!(capability, Capability::Other(_)), "{name}");
            assert_eq!(capability.to_string(), name);
            assert_eq!(Capability::read(name), (capability, None));
        }
    }

    #[test]
    fn misspelt_names_are_understood_and_flagged() {
        for (name, meant) in [
            ("changelistindex", Capability::ChangeList),
            ("resourcelist-index", Capability::ResourceList),
            ("ResourceDump", Capability::ResourceDump),
            ("changedumpmanifest", Capability::ChangeDumpManifest),
            ("ChangeListArchive", Capability::ChangeListArchive),
        ] {
            assert_eq!(Capability::read(name), (meant, Some(Quirk::OddCapabilityName)), "{name}");
        }
    }

    #[test]
    fn unknown_name_is_kept_and_flagged() {
        let (capability, quirk) = Capability::read("archives");
        assert_eq!(capability, Capability::Other("archives".to_owned()));
        assert_eq!(quirk, Some(Quirk::UnknownCapability));
    }
}
