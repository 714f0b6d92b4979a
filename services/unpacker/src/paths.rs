//! Which entry names which member of a package without a directory.

use packages::{PackageError, Place};

use crate::entries::{Entries, Kind, digest_of};

/// Which entry names which member: digests of the paths, in their order.
#[derive(Default)]
pub(crate) struct Paths(Vec<([u8; 16], u32)>);

impl Paths {
    pub(crate) fn take(&mut self, entry: u32, path: &str) {
        self.0.push((of_name(path), entry));
    }

    /// Those of the entries that count, ready to be asked.
    pub(crate) fn settled(mut self, entries: &Entries) -> Self {
        self.0.retain(|&(_, entry)| entries.kind(entry) == Kind::Named);
        self.0.sort_unstable();
        self
    }

    /// The entries that name this member, in the order of the manifest.
    pub(crate) fn naming(&self, member: &str) -> Vec<u32> {
        let digest = of_name(member);
        let start = self.0.partition_point(|(other, _)| *other < digest);
        self.0[start..].iter().take_while(|(other, _)| *other == digest).map(|&(_, entry)| entry).collect()
    }
}

/// The very string, but for the slash at its beginning, which paths have and archives have not.
fn of_name(name: &str) -> [u8; 16] {
    digest_of(name.strip_prefix('/').unwrap_or(name))
}

/// The name of a member that is refused, as far as it can be told.
pub(crate) fn refused_name(error: &PackageError) -> Option<&str> {
    use PackageError as E;
    let place: &Place = match error {
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
