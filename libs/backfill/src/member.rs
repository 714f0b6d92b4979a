//! The bytes of a version in a package of a dump, which are read by ranges of it.

use std::sync::Arc;

use documents::RemotePackage;
use packages::zip::{Claim, Directory, MemberReader};
use packages::{PackageError, ReadAhead};
use url::Url;

/// Read-ahead in a package: one request after the other.
pub(crate) const AHEAD: ReadAhead = ReadAhead { chunk: 1 << 20, reads: 1 };

/// The bytes of a version, in a package of a dump.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    package: Arc<RemotePackage>,
    /// The URL of the package.
    pub(crate) url: Url,
    claim: Claim,
    name: Arc<[u8]>,
}

impl PartialEq for Member {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.package, &other.package) && self.claim == other.claim
    }
}

impl Eq for Member {}

impl Member {
    /// The member of a package at the path that a manifest gives; none if there is none that can be read.
    pub(crate) fn at(
        directory: &Directory,
        path: &str,
        package: &Arc<RemotePackage>,
        url: &Url,
    ) -> Option<Self> {
        let (member, _) = directory.find_path(path)?;
        let claim = directory.claim(&member).ok()?;
        Some(Self { package: Arc::clone(package), url: url.clone(), claim, name: member.name_bytes.into() })
    }

    /// A reader of its bytes. They are judged when all have come.
    ///
    /// # Errors
    /// When its header is not as the directory said, or cannot be requested.
    pub(crate) async fn open(&self) -> Result<MemberReader<'static>, PackageError> {
        let data = self.claim.locate(&self.package, &self.name).await?;
        Ok(MemberReader::new(Arc::clone(&self.package), data, AHEAD))
    }

    /// Ends a reading: no bytes of the package stay in memory. Returns the requests made.
    pub(crate) fn close(&self) -> u64 {
        self.package.forget();
        self.package.take_requests()
    }
}
