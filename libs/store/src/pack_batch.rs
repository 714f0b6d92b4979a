//! The small bitstreams of one job, collected until they are stored.

use std::ops::Range;

use fixity::Computed;
use jiff::Timestamp;
use model::ResourceUri;

use crate::{PackLimits, PackMember, StoreError};

/// A piece takes no more bodies once it has this many bytes.
const PIECE: usize = 1024 * 1024;

/// Bitstreams that go into the same pack, perhaps with other batches.
/// [`SharedPacks::batch`](crate::SharedPacks::batch) returns an empty one.
#[derive(Debug)]
pub struct PackBatch {
    since: Timestamp,
    limits: PackLimits,
    /// Estimated size of its members in a pack.
    cost: usize,
    len: usize,
    pieces: Vec<Piece>,
    expected: Expected,
}

/// Bitstreams and bytes still to come, as far as known.
#[derive(Debug, Clone, Copy, Default)]
struct Expected {
    members: usize,
    bytes: usize,
}

/// Some members with their bytes in one buffer. Bytes are copied on arrival, while they are in the
/// processor's cache, so that no body keeps its receive buffer. A batch has several pieces, each of which is
/// freed once it is copied into the pack.
#[derive(Debug)]
pub(crate) struct Piece {
    bytes: Vec<u8>,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    uri: ResourceUri,
    at: Range<usize>,
    computed: Computed,
    media_type: Option<String>,
    last_modified: Option<Timestamp>,
}

impl PackBatch {
    pub(crate) fn new(since: Timestamp, limits: PackLimits) -> Self {
        Self { since, limits, cost: 0, len: 0, pieces: Vec::new(), expected: Expected::default() }
    }

    /// Reserves capacity for this many bitstreams and bytes, a piece at a time, so that arriving bytes are
    /// not moved repeatedly. It is only a hint: a Source may declare any number.
    #[must_use]
    pub fn expecting(self, members: usize, bytes: usize) -> Self {
        Self { expected: Expected { members, bytes }, ..self }
    }

    /// Adds a bitstream. Its number is its index in the result of
    /// [`SharedPacks::store`](crate::SharedPacks::store).
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the digests cannot belong to these bytes, by their length. Other batches
    /// share the pack, and must not fail with this one.
    pub fn add(&mut self, member: PackMember<'_>) -> Result<(), StoreError> {
        member.check()?;
        self.cost += member.cost();
        self.len += 1;
        let Expected { members, bytes } = self.expected;
        self.expected.members = members.saturating_sub(1);
        self.expected.bytes = bytes.saturating_sub(member.bytes.len());
        let piece = match self.pieces.last_mut() {
            Some(piece) if piece.bytes.len() < PIECE => piece,
            _ => self.pieces.push_mut(Piece::with_room(members.min(self.limits.members), bytes.min(PIECE))),
        };
        piece.add(member);
        Ok(())
    }

    /// Whether another bitstream fits into the same pack. An empty batch takes any.
    pub fn fits(&self, member: &PackMember<'_>) -> bool {
        self.limits.admit(self.len, self.cost, member)
    }

    /// How many bitstreams are in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its estimated size in a pack, in bytes.
    pub(crate) fn cost(&self) -> usize {
        self.cost
    }

    /// When its bitstreams began to be collected.
    pub(crate) fn since(&self) -> Timestamp {
        self.since
    }

    /// Whether a pack cannot hold two batches of this size.
    pub(crate) fn fills_half_a_pack(&self) -> bool {
        self.cost > self.limits.bytes / 2 || self.len() > self.limits.members / 2
    }

    pub(crate) fn into_pieces(self) -> Vec<Piece> {
        self.pieces
    }
}

impl Piece {
    fn with_room(members: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), members: Vec::with_capacity(members) }
    }

    fn add(&mut self, member: PackMember<'_>) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(member.bytes);
        let PackMember { uri, bytes: _, computed, media_type, last_modified } = member;
        self.members.push(Member {
            uri: uri.clone(),
            at: begin..self.bytes.len(),
            computed: computed.clone(),
            media_type: media_type.map(str::to_owned),
            last_modified,
        });
    }

    pub(crate) fn members(&self) -> impl Iterator<Item = PackMember<'_>> {
        self.members.iter().map(|member| PackMember {
            uri: &member.uri,
            bytes: &self.bytes[member.at.clone()],
            computed: &member.computed,
            media_type: member.media_type.as_deref(),
            last_modified: member.last_modified,
        })
    }
}
