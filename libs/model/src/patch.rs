//! Patches: the difference between a version and the one before it (ResourceSync 1.1, section 14.4).

use std::fmt;

use fixity::{Computed, Digest};
use resourcesync::{Change, Link, Metadata, relation};
use serde::{Deserialize, Serialize};

use crate::{Location, ResourceUri};

/// Patches in a row that were tried in vain, after which a job or a run tries no more.
pub const MOST_PATCHES_IN_VAIN: u32 = 5;

/// A patch, and the version that it makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    /// Where it is.
    pub url: ResourceUri,
    /// Its digests, as far as declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub digests: Vec<Digest>,
    /// Its declared length in bytes.
    pub length: u64,
    /// The declared digests of the version that it makes.
    pub makes: Vec<Digest>,
    /// The declared length in bytes of that version.
    pub makes_length: u64,
    /// Where it is stored, if it came in a package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<Box<PatchBase>>,
}

/// How the planned version of a resource may be made from the stored one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchPlan {
    /// The patches, in the order in which they are applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Patch>,
    /// Why the patch of the entry is not applied, if so. Then there are no steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unused: Option<PatchUnused>,
}

/// The patches of a fetch item, and the stored version that they are applied to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchItem {
    /// The stored version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<PatchBase>,
    /// The patches, in the order in which they are applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Patch>,
    /// Why they are not applied, if so. The fetcher counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unused: Option<PatchUnused>,
}

/// A stored bitstream: the version that patches are applied to, or a patch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchBase {
    /// Its location.
    pub location: Location,
    /// Its length and digests.
    pub computed: Computed,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

/// What became of the patches of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PatchUse {
    /// They made the version.
    Applied {
        /// Their URLs, in the order in which they were applied.
        patches: Vec<ResourceUri>,
        /// Their bytes, as received.
        bytes: u64,
        /// Bytes of the version that were not received.
        saved: u64,
    },
    /// The resource was requested instead.
    Unused(PatchUnused),
}

/// Why a patch is not applied. The resource itself is requested then, so this is no problem.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum PatchUnused {
    /// Its media type is none that can be applied, or is not declared.
    UnknownType,
    /// The version that it makes has no declared digest.
    NoDigest,
    /// It is not declared smaller than half of what it makes.
    NotSmaller,
    /// The version before this change is not stored, or was not judged by a digest.
    NoBase,
    /// It would follow another change of the same run that has no patch, or too many patches.
    BrokenChain,
    /// It is at another origin than the resource.
    OtherOrigin,
    /// The version has a content coding, such as gzip.
    Encoded,
    /// A version is larger than patches are applied to.
    TooLarge,
    /// The stored version is damaged.
    DamagedBase,
    /// It was not received.
    NotReceived,
    /// It is not as declared.
    OtherPatch,
    /// It does not fit the stored version.
    NotApplicable,
    /// It makes other bytes than declared.
    OtherResult,
    /// Several patches of this run in a row were of no use.
    GivenUp,
    /// Other patches have taken the memory that all share.
    NoRoom,
    /// A reason that this version does not know.
    #[serde(other)]
    Unknown,
}

/// The link to a patch that lies in a package in place of its resource: an entry of a manifest has it, and no path of its
/// own. Only where a digest of the result is declared: without one no patch is applied, and an earlier version of this
/// program must not take the patch for the resource.
pub fn packaged_patch<'l>(metadata: &Metadata, links: &'l [Link]) -> Option<&'l Link> {
    let is_judged = |hash: &str| !fixity::parse_hashes(hash).known.is_empty();
    let has_resource = metadata.path.is_some() || metadata.change == Some(Change::Deleted);
    if has_resource || !metadata.hash.as_deref().is_some_and(is_judged) {
        return None;
    }
    links.iter().find(|link| link.rel == relation::PATCH && link.path.is_some())
}

impl PatchUnused {
    /// The name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The reason as part of a sentence.
    pub fn text(self) -> &'static str {
        match self {
            Self::UnknownType => "its type cannot be applied",
            Self::NoDigest => "the entry declares no digest of the result",
            Self::NotSmaller => "it is not declared smaller than half of the result",
            Self::NoBase => "the version before this change is not stored, or was not judged by a digest",
            Self::BrokenChain => "it follows changes that cannot be patched",
            Self::OtherOrigin => "it is at another origin than the resource",
            Self::Encoded => "the version has a content coding",
            Self::TooLarge => "a version is too large to apply it",
            Self::DamagedBase => "the stored version is damaged",
            Self::NotReceived => "it was not received",
            Self::OtherPatch => "its length or digest is not the declared one",
            Self::NotApplicable => "it does not fit the stored version",
            Self::OtherResult => "it makes other bytes than declared",
            Self::GivenUp => "earlier patches of this run were of no use",
            Self::NoRoom => "patches of other resources have taken the memory that all share",
            Self::Unknown => "a later version of this program knows why",
        }
    }

    /// Whether it was tried to apply the patch.
    pub fn was_tried(self) -> bool {
        use PatchUnused::{DamagedBase, NotApplicable, NotReceived, OtherPatch, OtherResult, TooLarge};
        matches!(self, DamagedBase | NotReceived | OtherPatch | NotApplicable | OtherResult | TooLarge)
    }
}

impl fmt::Display for PatchUnused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PatchUse {
    /// The name of this result, such as a label needs it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Applied { .. } => "applied",
            Self::Unused(why) => why.as_str(),
        }
    }

    /// How many patches in a row were tried in vain, with these; `before` were so before them.
    pub fn in_vain_after(&self, before: u32) -> u32 {
        match self {
            Self::Applied { .. } => 0,
            Self::Unused(why) => before + u32::from(why.was_tried()),
        }
    }
}

#[cfg(test)]
mod tests {
    use fixity::Sha256;
    use strum::VariantArray as _;

    use super::*;

    #[test]
    fn a_name_is_the_same_in_records_and_in_labels() {
        for why in PatchUnused::VARIANTS {
            assert_eq!(serde_json::to_string(why).unwrap(), format!("\"{why}\""));
        }
        assert_eq!(serde_json::from_str::<PatchUnused>("\"too-new\"").unwrap(), PatchUnused::Unknown);
    }

    #[test]
    fn a_patch_lies_in_the_place_of_a_resource_of_which_a_digest_is_declared() {
        let link = Link { path: Some("/p".to_owned()), ..Link::new(relation::PATCH, "http://h/p") };
        let hash = Some(format!("sha-256:{}", Sha256::of(b"x")));
        let judged = Metadata { hash, ..Metadata::default() };
        let found =
            |metadata: &Metadata, link: &Link| packaged_patch(metadata, std::slice::from_ref(link)).is_some();
        assert!(found(&judged, &link));
        assert!(!found(&Metadata::default(), &link), "nothing would judge the result");
        assert!(!found(&Metadata { hash: Some("md5:x".to_owned()), ..Metadata::default() }, &link));
        assert!(!found(&Metadata { path: Some("/a".to_owned()), ..judged.clone() }, &link));
        assert!(!found(&Metadata { change: Some(Change::Deleted), ..judged.clone() }, &link));
        assert!(!found(&judged, &Link { path: None, ..link.clone() }));
        assert!(!found(&judged, &Link { rel: "describedby".to_owned(), ..link }));
    }
}
