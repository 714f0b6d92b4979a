//! The central directory: an archive's list of its members.

use bytes::BytesMut;

use super::bytes::u32_at;
use super::end::{self, End, Tail};
use super::entry::{Entry, HEAD, Wrong, tails};
use super::{Data, Member, MemberReader};
use crate::name::to_cp437;
use crate::{
    Kind, Limits, Manifest, ManifestFinder, PackageError, PathMatch, ReadAhead, ReadAt, path_candidates,
};

/// Bytes of the directory that are read at once.
const CHUNK: u64 = 1 << 20;

/// The directory of a ZIP: 48 bytes per member, and the names.
#[derive(Debug)]
pub struct Directory {
    pub(super) entries: Vec<Entry>,
    names: Vec<u8>,
    by_name: Vec<u32>,
    pub(super) by_offset: Vec<u32>,
    pub(super) directory_offset: u64,
    pub(super) limits: Limits,
    trailing: u64,
    shift: u64,
}

impl Directory {
    /// Reads the end and the directory of the ZIP `source`, in pieces of at most 1 MiB.
    ///
    /// Other bytes may precede the archive (a self-extracting one), with its offsets adjusted or not; if not,
    /// they must not themselves begin like a ZIP. A few bytes may follow the archive, if its end is
    /// unambiguous. [`preamble`](Self::preamble) and [`trailing`](Self::trailing) return both lengths.
    ///
    /// It takes time like n log n of the members, without yielding: about a second for a million.
    ///
    /// # Errors
    /// Those of the whole package: no ZIP, truncated, over several files, contradictory, overlapping, over
    /// the limits.
    pub async fn open(source: &dyn ReadAt, limits: &Limits) -> Result<Self, PackageError> {
        let tail = Tail::read(source).await?;
        let end = end::find(&tail).await?;
        let bytes = end.directory.end - end.directory.start;
        let limit = limits.directory_bytes.min(u32::MAX.into());
        if bytes > limit {
            return Err(PackageError::DirectoryTooLarge { bytes, limit });
        }
        if end.members > limits.members {
            return Err(PackageError::TooManyMembers { members: end.members, limit: limits.members });
        }
        // The capacity follows from the actual bytes, not from the declared number.
        let expected = end.members.min(bytes / HEAD as u64) as usize;
        let mut directory = Self {
            entries: Vec::with_capacity(expected),
            names: Vec::with_capacity((bytes as usize).saturating_sub(expected * HEAD)),
            by_name: Vec::new(),
            by_offset: Vec::new(),
            directory_offset: end.directory.start,
            limits: limits.clone(),
            trailing: end.trailing,
            shift: end.shift,
        };
        directory.read_entries(&tail, &end).await?;
        directory.names.shrink_to_fit();
        directory.check_count(&end)?;
        directory.check_total()?;
        directory.by_offset = (0..directory.entries.len() as u32).collect();
        directory.order_spans()?;
        directory.order_names();
        Ok(directory)
    }

    async fn read_entries(&mut self, tail: &Tail<'_>, end: &End) -> Result<(), PackageError> {
        let mut buffer = BytesMut::new();
        // The start of `buffer`, and its end.
        let mut at = end.directory.start;
        let mut read = end.directory.start;
        loop {
            let need = match buffer.get(..HEAD) {
                Some(head) => HEAD + tails(head).iter().sum::<usize>(),
                None => HEAD,
            };
            let bad = |what| PackageError::BadDirectory { offset: at, what };
            if buffer.len() < need {
                if read < end.directory.end {
                    let length = (end.directory.end - read).min(CHUNK) as usize;
                    buffer.extend_from_slice(&tail.get(read, length).await?);
                    read += length as u64;
                    continue;
                }
                // A signature of the directory (APPNOTE 4.3.13) may come last.
                if buffer.is_empty() || u32_at(&buffer, 0) == 0x0505_4b50 {
                    return Ok(());
                }
                return Err(bad("its last record is cut off"));
            }
            match u32_at(&buffer, 0) {
                0x0201_4b50 => {}
                0x0505_4b50 => return Ok(()),
                _ => return Err(bad("there is no record where one should begin")),
            }
            let record = buffer.split_to(need);
            let entry =
                Entry::parse(&record, self.shift, self.names.len() as u32).map_err(|wrong| match wrong {
                    Wrong::Malformed(what) => bad(what),
                    Wrong::OtherDisk => {
                        PackageError::MultiDisk { what: "a record of its directory", offset: at }
                    }
                })?;
            if self.entries.len() as u64 >= self.limits.members {
                let members = self.entries.len() as u64 + 1;
                return Err(PackageError::TooManyMembers { members, limit: self.limits.members });
            }
            self.names.extend_from_slice(&record[HEAD..HEAD + usize::from(entry.name_length)]);
            self.entries.push(entry);
            at += need as u64;
        }
    }

    /// Checks the declared number; without ZIP64, old writers let it wrap around.
    fn check_count(&self, end: &End) -> Result<(), PackageError> {
        let found = self.entries.len() as u64;
        let same = if end.whole_count { found == end.members } else { found & 0xffff == end.members };
        if same { Ok(()) } else { Err(PackageError::WrongCount { declared: end.members, found }) }
    }

    fn check_total(&self) -> Result<(), PackageError> {
        let limit = self.limits.inflated_bytes_total;
        let bytes = self.entries.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.size));
        if bytes > limit { Err(PackageError::TooManyBytes { bytes, limit }) } else { Ok(()) }
    }

    fn order_names(&mut self) {
        let entries = &self.entries;
        let names = &self.names;
        let name = |index: u32| name_of(&entries[index as usize], names);
        let mut by_name: Vec<u32> = (0..entries.len() as u32).collect();
        by_name.sort_unstable_by(|&one, &other| name(one).cmp(name(other)).then(one.cmp(&other)));
        let twice: Vec<[u32; 2]> =
            by_name.array_windows().filter(|[one, other]| name(*one) == name(*other)).copied().collect();
        for index in twice.into_iter().flatten() {
            self.entries[index as usize].duplicate = true;
        }
        self.by_name = by_name;
    }

    /// How many members there are.
    pub fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of memory that it uses.
    pub fn held_bytes(&self) -> usize {
        let indexes = self.by_name.capacity() + self.by_offset.capacity();
        self.entries.capacity() * size_of::<Entry>() + self.names.capacity() + indexes * size_of::<u32>()
    }

    /// Bytes before the first member, as in a self-extracting archive.
    pub fn preamble(&self) -> u64 {
        self.by_offset.first().map_or(self.directory_offset, |&index| self.member(index).header_offset)
    }

    /// Bytes behind the end of the archive, which belong to no part.
    pub fn trailing(&self) -> u64 {
        self.trailing
    }

    /// Declared total of the inflated bytes of all members.
    pub fn inflated_bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.size).sum()
    }

    /// The member of this number.
    ///
    /// # Panics
    /// When there is none: numbers go from 0 to [`len`](Self::len).
    pub fn member(&self, index: u32) -> Member<'_> {
        let entry = &self.entries[index as usize];
        Member {
            index,
            name_bytes: name_of(entry, &self.names),
            kind: entry.kind,
            method: entry.method,
            flags: entry.flags,
            crc32: entry.crc32,
            compressed_size: entry.compressed_size,
            size: entry.size,
            header_offset: entry.header_offset,
            duplicate: entry.duplicate,
        }
    }

    /// All members in the order of the directory.
    pub fn members(&self) -> Members<'_> {
        Members { directory: self, order: None, next: 0, end: self.len() }
    }

    /// The members in the order of their offsets, which is the order to read them in. The range consists of
    /// ranks, from 0 to [`len`](Self::len), so several workers can share a package. Ranks behind the last are
    /// left out.
    pub fn slice(&self, ranks: std::ops::Range<u32>) -> Members<'_> {
        let end = ranks.end.min(self.len());
        Members { directory: self, order: Some(&self.by_offset), next: ranks.start.min(end), end }
    }

    /// The member of exactly this name. Of several with the name it is the first, and [`Member::duplicate`]
    /// is set.
    pub fn find(&self, name: &str) -> Option<Member<'_>> {
        let by_bytes = |bytes: &[u8]| {
            let rank = self.by_name.partition_point(|&index| self.member(index).name_bytes < bytes);
            let member = self.member(*self.by_name.get(rank)?);
            (member.name_bytes == bytes).then_some(member)
        };
        let old = || to_cp437(name).filter(|bytes| std::str::from_utf8(bytes).is_err());
        by_bytes(name.as_bytes()).or_else(|| by_bytes(&old()?))
    }

    /// The member that a manifest's `path` names: the same string, or the same except for the leading slash.
    pub fn find_path(&self, path: &str) -> Option<(Member<'_>, PathMatch)> {
        path_candidates(path).into_iter().find_map(|(name, how)| Some((self.find(&name)?, how)))
    }

    /// The manifest, at any place.
    ///
    /// # Errors
    /// [`PackageError::NoManifest`], [`PackageError::AmbiguousManifest`].
    pub fn manifest(&self) -> Result<(Member<'_>, Manifest), PackageError> {
        let mut finder = ManifestFinder::default();
        for member in self.members().filter(|member| member.kind != Kind::Folder) {
            finder.see_at(member.index.into(), &member.name());
        }
        let manifest = finder.finish()?;
        Ok((self.member(manifest.index as u32), manifest))
    }

    /// Checks the member's own header, and opens the member: [`locate`](Self::locate) and [`MemberReader::new`] in one.
    ///
    /// # Errors
    /// Those of [`locate`](Self::locate).
    pub async fn read<'a, R: ReadAt + Clone + 'a>(
        &self,
        source: R,
        member: &Member<'_>,
        ahead: ReadAhead,
    ) -> Result<(Data, MemberReader<'a>), PackageError> {
        let data = self.locate(&source, member).await?;
        Ok((data, MemberReader::new(source, data, ahead).of(member.place())))
    }
}

fn name_of<'a>(entry: &Entry, names: &'a [u8]) -> &'a [u8] {
    let start = entry.name_start as usize;
    &names[start..start + usize::from(entry.name_length)]
}

/// Members in some order; from [`Directory::members`] and [`Directory::slice`].
#[derive(Debug, Clone)]
pub struct Members<'a> {
    directory: &'a Directory,
    order: Option<&'a [u32]>,
    next: u32,
    end: u32,
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        if self.next >= self.end {
            return None;
        }
        let index = self.order.map_or(self.next, |order| order[self.next as usize]);
        self.next += 1;
        Some(self.directory.member(index))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.end - self.next) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Members<'_> {}
