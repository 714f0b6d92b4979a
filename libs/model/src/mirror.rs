//! Mirrors: other places of the same bytes (ResourceSync 1.1, section 14.2).

use serde::{Deserialize, Serialize};

use crate::{Failure, ResourceUri};

/// A mirror of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mirror {
    /// Where it is.
    pub url: ResourceUri,
    /// Its priority, as the link states it: 1 first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pri: Option<u32>,
}

/// How far the mirrors of a pending resource were tried in a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MirrorPlan {
    /// The mirror to request; none: the resource's own URI, when its mirrors were tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Mirror>,
    /// How many of the mirrors were begun, in their order.
    pub begun: usize,
    /// How the resource's own URI failed; none if it was not requested before its mirrors. It is the problem of the
    /// resource if they fail, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// How far its memento was tried: the listed version of a resource that has changed again since.
    #[serde(default, skip_serializing_if = "MementoStep::is_none")]
    pub memento: MementoStep,
}

/// How far the memento of a pending resource was tried in a run (ResourceSync 1.1, section 14.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MementoStep {
    /// It was not.
    #[default]
    None,
    /// It is the place to request: its bytes are an earlier version, and not the stored one.
    Asked,
    /// It was requested.
    Done,
}

impl MementoStep {
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}
