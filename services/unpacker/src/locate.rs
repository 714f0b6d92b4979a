//! Looks up the members of a ZIP by the exact paths in the manifest.

use packages::Kind;
use packages::zip::Directory;

use crate::unlisted::Unlisted;

/// Members of a ZIP that the manifest names.
pub(crate) struct Named {
    members: Vec<bool>,
    /// Member of each entry, by the entry's number.
    by_entry: Vec<Option<u32>>,
}

impl Named {
    /// Starts with no member.
    pub(crate) fn new(directory: &Directory) -> Self {
        Self { members: vec![false; directory.len() as usize], by_entry: Vec::new() }
    }

    /// Looks up the path of an entry: the member with exactly this name, except for the leading slash of a path.
    /// Without an entry, only a link names the member.
    pub(crate) fn take(&mut self, directory: &Directory, entry: Option<u32>, path: &str) {
        let member = directory.find_path(path).map(|(member, _)| member.index);
        if let Some(entry) = entry {
            self.by_entry.resize(entry as usize, None);
            self.by_entry.push(member);
        }
        if let Some(member) = member {
            self.members[member as usize] = true;
        }
    }

    /// The member of the entry with this number.
    pub(crate) fn of_entry(&self, entry: u32) -> Option<u32> {
        self.by_entry.get(entry as usize).copied().flatten()
    }

    /// The files without an entry, except the manifest.
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
