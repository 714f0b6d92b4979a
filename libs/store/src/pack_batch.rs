//! The small bitstreams of one job, until they are stored together.

use bytes::Bytes;
use fixity::Computed;
use jiff::Timestamp;
use model::ResourceUri;

use crate::{PackLimits, PackMember, StoreError};

/// A bitstream that waits for its pack.
#[derive(Debug, Clone)]
pub struct WaitingMember {
    /// The resource.
    pub uri: ResourceUri,
    /// Its bytes.
    pub bytes: Bytes,
    /// Their length and digests.
    pub computed: Computed,
    /// The media type the server sent.
    pub media_type: Option<String>,
}

/// Bitstreams that are stored in one pack, whatever else is in it. [`SharedPacks::batch`](crate::SharedPacks::batch) gives an empty one.
#[derive(Debug)]
pub struct PackBatch {
    since: Timestamp,
    limits: PackLimits,
    bytes: usize,
    members: Vec<WaitingMember>,
}

impl WaitingMember {
    pub(crate) fn as_member(&self) -> PackMember<'_> {
        let Self { uri, bytes, computed, media_type } = self;
        PackMember { uri, bytes, computed, media_type: media_type.as_deref(), last_modified: None }
    }
}

impl PackBatch {
    pub(crate) fn new(since: Timestamp, limits: PackLimits) -> Self {
        Self { since, limits, bytes: 0, members: Vec::new() }
    }

    /// Adds a bitstream. Its number is the place of its location in what [`SharedPacks::store`](crate::SharedPacks::store) gives.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the digests are not of these bytes, as far as their length tells: others who share the pack must not
    /// suffer for it.
    pub fn add(&mut self, member: WaitingMember) -> Result<(), StoreError> {
        member.as_member().check()?;
        self.bytes += member.as_member().cost();
        self.members.push(member);
        Ok(())
    }

    /// Whether another bitstream still goes into the same pack. An empty batch takes any.
    pub fn fits(&self, member: &WaitingMember) -> bool {
        self.is_empty()
            || (self.len() < self.limits.members
                && self.bytes + member.as_member().cost() <= self.limits.bytes)
    }

    /// How many bitstreams are in it.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// What it takes of a pack, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// When its bitstreams began to be collected.
    pub(crate) fn since(&self) -> Timestamp {
        self.since
    }

    /// Whether a pack has no room for two such.
    pub(crate) fn fills_half_a_pack(&self) -> bool {
        self.bytes > self.limits.bytes / 2 || self.len() > self.limits.members / 2
    }

    pub(crate) fn into_members(self) -> Vec<WaitingMember> {
        self.members
    }
}
