//! The names that packages of Resource Dumps list. Keyed by the package's URI and the number of the first slice.

use futures::{StreamExt, TryStreamExt, future};
use model::{PackageNames, Persisted};

use crate::keyspace::{Key, text_space};
use crate::scan::Scan;
use crate::{Batch, CatalogError, Lookups};

/// Names of a package, with the number of their first slice.
pub type PackageNamesScan = Scan<((String, u32), PackageNames)>;

text_space!(
    /// `n<uri> <8 hex>`
    NamesOfPackages, Persisted::PackageNames, "names of a package", (String, u32) => PackageNames
);

impl NamesOfPackages {
    fn name_of(text: String) -> Result<(String, u32), String> {
        let parted = text.rsplit_once(' ');
        let read =
            parted.and_then(|(uri, first)| Some((uri.to_owned(), u32::from_str_radix(first, 16).ok()?)));
        read.ok_or_else(|| "its key does not end with the number of a slice".to_owned())
    }

    fn key(uri: &str, first: u32) -> Key<Self> {
        Key::of(format!("{uri} {first:08x}"))
    }
}

impl Lookups {
    /// The kept names of a package, in the order of its slices.
    ///
    /// # Errors
    /// When the store fails; the scan itself fails where a record cannot be read.
    pub async fn names_of_package(&self, uri: &str) -> Result<PackageNamesScan, CatalogError> {
        let found = self.scan::<NamesOfPackages>(format!("{uri} ").as_bytes(), None).await?;
        let uri = uri.to_owned();
        // Another package's URI may go on with a blank.
        Ok(Scan::new(found.try_filter(move |((of, _), _)| future::ready(*of == uri)).boxed()))
    }

    /// The kept names of all packages.
    ///
    /// # Errors
    /// As [`names_of_package`](Self::names_of_package).
    pub async fn scan_package_names(&self) -> Result<PackageNamesScan, CatalogError> {
        self.scan::<NamesOfPackages>(b"", None).await
    }
}

impl Batch {
    /// Keeps the names that slices of a package list, from the slice `first` on. Those kept for `first` before are
    /// replaced.
    pub fn put_package_names(&mut self, uri: &str, first: u32, names: &PackageNames) {
        self.put(NamesOfPackages::key(uri, first), names);
    }

    /// Removes the names that are kept for the slice `first`.
    pub fn delete_package_names(&mut self, uri: &str, first: u32) {
        self.delete(NamesOfPackages::key(uri, first));
    }
}
