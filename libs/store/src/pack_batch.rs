//! The small bitstreams of one job, until they are stored together.

use std::ops::Range;

use fixity::Computed;
use jiff::Timestamp;
use model::ResourceUri;

use crate::{PackLimits, PackMember, StoreError};

/// A piece takes no more bodies when it has so many bytes.
const PIECE: usize = 1024 * 1024;

/// Bitstreams that are stored in one pack, whatever else is in it. [`SharedPacks::batch`](crate::SharedPacks::batch) gives an empty one.
#[derive(Debug)]
pub struct PackBatch {
    since: Timestamp,
    limits: PackLimits,
    /// What its members take of a pack.
    cost: usize,
    len: usize,
    pieces: Vec<Piece>,
    expected: Expected,
}

/// What is still to come, as far as anybody knows.
#[derive(Debug, Clone, Copy, Default)]
struct Expected {
    members: usize,
    bytes: usize,
}

/// Some members, and their bytes one behind the other: copied as they come, while the processor has them at hand, so that no body keeps the
/// room in which it was received. A batch has several pieces so that each can be let go of when it was copied into the pack.
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

    /// Makes room for so many bitstreams of so many bytes together, a piece of it at a time, so that what has come is not moved again and again while more comes.
    /// Nothing depends on it: a Source may declare what it likes.
    #[must_use]
    pub fn expecting(self, members: usize, bytes: usize) -> Self {
        Self { expected: Expected { members, bytes }, ..self }
    }

    /// Adds a bitstream. Its number is the place of its location in what [`SharedPacks::store`](crate::SharedPacks::store) gives.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the digests are not of these bytes, as far as their length tells: others who share the pack must not
    /// suffer for it.
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

    /// Whether another bitstream still goes into the same pack. An empty batch takes any.
    pub fn fits(&self, member: &PackMember<'_>) -> bool {
        self.is_empty()
            || (self.len() < self.limits.members && self.cost + member.cost() <= self.limits.bytes)
    }

    /// How many bitstreams are in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What it takes of a pack, in bytes.
    pub(crate) fn cost(&self) -> usize {
        self.cost
    }

    /// When its bitstreams began to be collected.
    pub(crate) fn since(&self) -> Timestamp {
        self.since
    }

    /// Whether a pack has no room for two such.
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
