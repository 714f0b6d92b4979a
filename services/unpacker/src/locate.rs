//! What a manifest names in a ZIP: its paths, and the members of exactly these names.

use packages::Kind;
use packages::zip::Directory;

use crate::unlisted::Unlisted;

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
