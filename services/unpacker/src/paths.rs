//! Maps the members of a package without a directory to entries.

use packages::{MemberPosition, PackageError};

use crate::entries::{Entries, Kind, digest_of};

/// Digests of the paths with their entries, sorted.
#[derive(Default)]
pub(crate) struct Paths(Vec<([u8; 16], u32)>);

/// In place of an entry: only a link names the member. No manifest has as many entries.
const LINKED: u32 = u32::MAX;

/// The entries that name a member.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Naming {
    /// Those that count, in the order of the manifest.
    pub(crate) entries: Vec<u32>,
    /// Whether an overtaken entry names it, which a later entry of the resource replaces, or a link does. Then the member
    /// is not unlisted, and is not needed.
    pub(crate) is_named_otherwise: bool,
}

impl Paths {
    /// Adds the path of an entry, or of a link.
    pub(crate) fn take(&mut self, entry: Option<u32>, path: &str) {
        self.0.push((of_name(path), entry.unwrap_or(LINKED)));
    }

    /// Sorts the paths for lookups, after all entries were added.
    pub(crate) fn sorted(mut self) -> Self {
        self.0.sort_unstable();
        self
    }

    /// The entries that name this member.
    pub(crate) fn naming(&self, member: &str, entries: &Entries) -> Naming {
        let digest = of_name(member);
        let start = self.0.partition_point(|(other, _)| *other < digest);
        let mut naming = Naming::default();
        for &(_, entry) in self.0[start..].iter().take_while(|(other, _)| *other == digest) {
            if entry == LINKED {
                naming.is_named_otherwise = true;
                continue;
            }
            match entries.kind(entry) {
                Kind::Named | Kind::Earlier => naming.entries.push(entry),
                // A patch is not read from a tar: it is requested.
                Kind::Overtaken | Kind::Patch => naming.is_named_otherwise = true,
                Kind::NoMember | Kind::Bad => {}
            }
        }
        naming
    }
}

/// Digest of the exact name, without the leading slash: paths have one, archives do not.
fn of_name(name: &str) -> [u8; 16] {
    digest_of(name.strip_prefix('/').unwrap_or(name))
}

/// The name of a refused member, if known.
pub(crate) fn refused_name(error: &PackageError) -> Option<&str> {
    use PackageError as E;
    let place: &MemberPosition = match error {
        E::DuplicateName { place }
        | E::NameTooLong { place, .. }
        | E::Link { place }
        | E::Device { place }
        | E::Sparse { place }
        | E::UnknownType { place, .. }
        | E::MemberTooLarge { place, .. } => place,
        _ => return None,
    };
    place.name.as_deref()
}
