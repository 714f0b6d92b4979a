//! Where the members of a ZIP lie: each that an entry names is looked at once, in the order in which they lie.

use packages::zip::{self, Directory, Member};
use packages::{Kind, PackageError, Scope};

use crate::index::Place;
use crate::source::{Stored, Windows};
use crate::trouble::Trouble;
use crate::unlisted::Unlisted;

/// Headers asked for at once.
const AT_ONCE: usize = 512;
/// Bytes that are held of them and what lies between, at most.
pub(crate) const HELD: u64 = 8 << 20;
/// What lies between two headers is read with them where it is less.
const BETWEEN: u64 = 1 << 20;

/// A ZIP's members, and where those that are named lie.
pub(crate) struct Places {
    directory: Directory,
    /// By the number of the member; nothing where it was not named, or is not to be read.
    offsets: Vec<Option<u64>>,
}

/// What the manifest names in a ZIP.
pub(crate) struct Named {
    members: Vec<bool>,
    /// By the number of the entry.
    by_entry: Vec<Option<u32>>,
}

impl Named {
    /// Nothing yet.
    pub(crate) fn new(directory: &Directory) -> Self {
        Self { members: vec![false; directory.len() as usize], by_entry: Vec::new() }
    }

    /// Takes the path of an entry: the member of exactly this name is the one that is meant, give or take the slash that paths begin with.
    pub(crate) fn take(&mut self, directory: &Directory, entry: u32, path: &str) {
        let member = directory.find_path(path).map(|(member, _)| member.index);
        self.by_entry.resize(entry as usize, None);
        self.by_entry.push(member);
        if let Some(member) = member {
            self.members[member as usize] = true;
        }
    }

    /// The member that the entry of this number names.
    pub(crate) fn of_entry(&self, entry: u32) -> Option<u32> {
        self.by_entry.get(entry as usize).copied().flatten()
    }

    /// Members whose headers are read at once, from `rank` on in the order in which they lie, and the rank behind them. None at the end.
    fn near<'a>(&self, directory: &'a Directory, rank: u32) -> (Vec<Member<'a>>, u32) {
        let mut some: Vec<Member<'a>> = Vec::new();
        let (mut held, mut next) = (0, rank);
        for member in directory.slice(rank..directory.len()) {
            if self.members[member.index as usize] {
                let gap =
                    some.last().map_or(0, |last| member.header_offset.saturating_sub(last.header_offset));
                held += gap.min(BETWEEN);
                if some.len() >= AT_ONCE || held > HELD {
                    break;
                }
                some.push(member);
            }
            next += 1;
        }
        (some, next)
    }

    /// The files that no entry names, the manifest excepted.
    pub(crate) fn unlisted(&self, directory: &Directory, manifest: u32) -> Unlisted {
        let mut unlisted = Unlisted::default();
        for member in directory.members() {
            let is_named = self.members[member.index as usize];
            if !is_named && member.index != manifest && member.kind != Kind::Folder {
                unlisted.see(&member.name());
            }
        }
        unlisted
    }
}

impl Places {
    /// Looks at the header of each member that is named.
    ///
    /// # Errors
    /// What speaks against the whole package: a header that contradicts the directory, for one. And what the store says.
    pub(crate) async fn find(directory: Directory, named: &Named, stored: &Stored) -> Result<Self, Trouble> {
        let mut offsets = vec![None; directory.len() as usize];
        let mut rank = 0;
        loop {
            let (some, next) = named.near(&directory, rank);
            rank = next;
            if some.is_empty() {
                break;
            }
            let ranges: Vec<_> = some.iter().map(|member| directory.header_range(member)).collect();
            let headers = Windows::of(stored, &ranges).await?;
            for member in &some {
                match directory.locate(&headers, member).await {
                    Ok(data) => offsets[member.index as usize] = Some(data.offset),
                    // Told of each entry that names it.
                    Err(error) if error.scope() == Scope::Member => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(Self { directory, offsets })
    }

    /// Where a member lies that was named; or why it is not to be read.
    pub(crate) async fn of(&self, stored: &Stored, member: u32) -> Result<Place, PackageError> {
        let found = self.directory.member(member);
        match self.offsets[member as usize] {
            Some(offset) => Ok(Place {
                offset,
                stored_length: found.compressed_size,
                method: method(found.method),
                length: found.size,
                crc32: found.crc32,
            }),
            // What speaks against a member stands in the directory: nothing is read for it.
            None => self.directory.locate(stored, &found).await.map(Place::from),
        }
    }
}

/// Of a member that was found fit to be read, so it is one of the two.
fn method(number: u16) -> model::Method {
    match number {
        0 => model::Method::Stored,
        _ => model::Method::Deflated,
    }
}

impl From<zip::Data> for Place {
    fn from(data: zip::Data) -> Self {
        let zip::Data { offset, stored_length, method, length, crc32 } = data;
        let method = match method {
            zip::Method::Stored => model::Method::Stored,
            zip::Method::Deflated => model::Method::Deflated,
        };
        Self { offset, stored_length, method, length, crc32: crc32.unwrap_or_default() }
    }
}
