//! Finds the manifest: at the top, by the specification (RS-33), and elsewhere in practice.

use crate::PackageError;
use crate::name::shown;

/// The place of a manifest that is not `manifest.xml` at the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OddPlace {
    /// At the top, but spelt differently: `/manifest.xml`, `./manifest.xml`, `Manifest.xml`.
    Spelling,
    /// In a folder, as the only one of its name.
    Folder {
        /// The folder, with its slash at the end. The manifest's paths may be relative to it.
        prefix: String,
    },
}

/// The manifest of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The index of the member, counted from 0 in the order of the archive.
    pub index: u64,
    /// The member's name.
    pub name: String,
    /// Its place, if it is not the specified one.
    pub odd: Option<OddPlace>,
}

/// Finds the manifest among names as they are read. It stores a few names only.
#[derive(Clone, Debug, Default)]
pub struct ManifestFinder {
    seen: u64,
    top: Option<Manifest>,
    spelling: Candidates,
    folder: Candidates,
}

#[derive(Clone, Debug, Default)]
struct Candidates {
    first: Option<Manifest>,
    second: Option<String>,
}

const NAME: &str = "manifest.xml";

impl ManifestFinder {
    /// Takes the next file's name.
    pub fn see(&mut self, name: &str) {
        let index = self.seen;
        self.see_at(index, name);
    }

    /// Takes the name of the member `index`: for callers that skip some members.
    pub fn see_at(&mut self, index: u64, name: &str) {
        self.seen += 1;
        let manifest = |odd| Manifest { index, name: name.to_owned(), odd };
        if name == NAME {
            if self.top.is_none() {
                self.top = Some(manifest(None));
            }
            return;
        }
        let start = name.len().wrapping_sub(NAME.len());
        if !name.get(start..).is_some_and(|end| end.eq_ignore_ascii_case(NAME)) {
            return;
        }
        match &name[..start] {
            "" | "/" | "./" | "\\" | ".\\" => self.spelling.add(manifest(Some(OddPlace::Spelling))),
            prefix if prefix.ends_with(['/', '\\']) => {
                self.folder.add(manifest(Some(OddPlace::Folder { prefix: prefix.to_owned() })));
            }
            _ => {}
        }
    }

    /// The manifest: at the top as specified; or else the only one there in another spelling; or else the
    /// only one in any folder.
    ///
    /// # Errors
    /// [`PackageError::NoManifest`] and [`PackageError::AmbiguousManifest`].
    pub fn finish(self) -> Result<Manifest, PackageError> {
        if let Some(top) = self.top {
            return Ok(top);
        }
        for Candidates { first, second } in [self.spelling, self.folder] {
            match (first, second) {
                (Some(first), None) => return Ok(first),
                (Some(first), Some(second)) => {
                    let first = shown(first.name.as_bytes());
                    return Err(PackageError::AmbiguousManifest { first, second: shown(second.as_bytes()) });
                }
                (None, _) => {}
            }
        }
        Err(PackageError::NoManifest { members: self.seen })
    }
}

impl Candidates {
    fn add(&mut self, manifest: Manifest) {
        match self.first {
            None => self.first = Some(manifest),
            Some(_) => self.second = Some(manifest.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(names: &[&str]) -> Result<Manifest, PackageError> {
        let mut finder = ManifestFinder::default();
        names.iter().for_each(|name| finder.see(name));
        finder.finish()
    }

    #[test]
    fn manifest_at_the_top_is_taken_whatever_lies_in_folders() {
        let manifest = find(&["a/manifest.xml", "Manifest.xml", "manifest.xml", "b/manifest.xml"]).unwrap();
        assert_eq!((manifest.index, manifest.odd), (2, None));
    }

    #[test]
    fn manifest_in_another_spelling_is_found_and_noted() {
        for name in ["/manifest.xml", "./manifest.xml", "Manifest.XML", "\\manifest.xml"] {
            let manifest = find(&["a/manifest.xml", name]).unwrap();
            assert_eq!((manifest.name.as_str(), manifest.odd), (name, Some(OddPlace::Spelling)));
        }
    }

    #[test]
    fn manifest_in_a_folder_is_found_when_it_is_the_only_one() {
        let manifest = find(&["dump/1.pdf", "dump/manifest.xml", "dump/my-manifest.xml"]).unwrap();
        assert_eq!(manifest.index, 1);
        assert_eq!(manifest.odd, Some(OddPlace::Folder { prefix: "dump/".to_owned() }));
    }

    #[test]
    fn several_that_may_be_meant_are_ambiguous() {
        assert_eq!(find(&["a/manifest.xml", "b/manifest.xml"]).unwrap_err().name(), "ambiguous-manifest");
        assert_eq!(find(&["/manifest.xml", "MANIFEST.xml"]).unwrap_err().name(), "ambiguous-manifest");
    }

    #[test]
    fn none_is_told_with_the_number_of_members() {
        let error = find(&["a.pdf", "xmanifest.xml", "manifest.xml.bak", "ümanifest.xm"]).unwrap_err();
        assert!(matches!(error, PackageError::NoManifest { members: 4 }), "{error}");
    }
}
