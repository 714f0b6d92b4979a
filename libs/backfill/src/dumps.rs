//! Reads dumps of the past (ResourceSync Archives): the manifests of their packages, by ranges. No package is
//! received; of what is wanted, the member is.

use std::sync::Arc;

use documents::{Approach, ManifestTimes, Part, RemotePackage};
use futures::future::BoxFuture;
use jiff::Timestamp;
use model::{SetId, Validators, bytes};
use packages::{Limits, PackageError, ReadAt as _};
use planning::Horizon;
use resourcesync::{Capability, Item, Metadata, Mode};
use url::Url;
use web::Client;

use crate::archives::{Archived, MOST_DOCUMENTS, Next};
use crate::member::{AHEAD, Member};

/// Maximum bytes of a directory, or of a manifest, that are requested.
const MOST: u64 = 64 << 20;
/// Maximum bytes of a manifest after decompression: more than those of all versions that are taken.
const MOST_INFLATED: u64 = 1 << 30;

/// A package that a dump lists.
struct Package {
    url: Url,
    set: SetId,
    /// The kind of its dump.
    dump: Capability,
    metadata: Metadata,
}

impl Archived {
    /// Notes the versions in the packages of a dump of the past.
    pub(crate) fn read_dump<'a>(
        &'a mut self,
        client: &'a Client,
        dump: Next,
        now: Timestamp,
    ) -> BoxFuture<'a, ()> {
        // Boxed, so that it can move between threads whatever borrows of packages it holds.
        Box::pin(self.read_packages(client, dump, now))
    }

    async fn read_packages(&mut self, client: &Client, dump: Next, now: Timestamp) {
        let mut packages = Vec::new();
        self.walk(client, dump, now, |found, next, _, entry| {
            let Ok(url) = Url::parse(&entry.loc) else { return };
            if packages.len() >= MOST_DOCUMENTS {
                found.meet(&url, "limit-documents", || format!("at most {MOST_DOCUMENTS} packages are read"));
                return;
            }
            let (set, dump) = (next.set.clone(), next.kind.clone());
            packages.push(Package { url, set, dump, metadata: entry.metadata });
        })
        .await;
        for package in packages {
            if self.tried >= MOST_DOCUMENTS {
                self.meet(&package.url, "limit-documents", || {
                    format!("at most {MOST_DOCUMENTS} documents and packages are read")
                });
                return;
            }
            self.tried += 1;
            if let Err(why) = self.read_package(client, &package, now).await {
                self.give_up(&package.url, "package-unreadable", why);
            }
        }
    }

    async fn read_package(
        &mut self,
        client: &Client,
        package: &Package,
        now: Timestamp,
    ) -> Result<(), String> {
        let remote = match RemotePackage::approach(client, &package.url, Validators::default()).await {
            Approach::Ranges(remote) => Arc::new(remote),
            Approach::Closed { why, requests } => {
                self.requests += u64::from(requests);
                return Err(why);
            }
            Approach::Known { requests } => {
                self.requests += u64::from(requests);
                return Err(
                    "its server says that it is as it was to a request without a condition".to_owned()
                );
            }
        };
        let read = self.read_manifest(&remote, package, now).await;
        remote.forget();
        self.requests += remote.take_requests();
        read
    }

    async fn read_manifest(
        &mut self,
        remote: &Arc<RemotePackage>,
        package: &Package,
        now: Timestamp,
    ) -> Result<(), String> {
        if let Some(declared) = package.metadata.length.filter(|declared| *declared != remote.len()) {
            return Err(format!("it has {}, and its dump declares {declared}", bytes(remote.len())));
        }
        let say = |error: PackageError| error.to_string();
        let limits = Limits { directory_bytes: MOST, ..Limits::default() };
        let directory = documents::open_directory(remote, &limits).await?;
        let (manifest, _) = directory.manifest().map_err(say)?;
        check_size(manifest.compressed_size, manifest.size)?;
        let (_, reader) = directory.read(Arc::clone(remote), &manifest, AHEAD).await.map_err(say)?;
        let options = documents::read_options(Mode::Tolerant, now);
        let mut stream = documents::open_member(reader, package.url.clone(), options);
        let mut context = None;
        self.documents += 1;
        while let Some(part) = stream.next().await {
            match part {
                Part::Header(header) if !documents::is_manifest_of(&header, &package.dump) => {
                    let found = header.capability.map_or(String::new(), |found| found.to_string());
                    return Err(format!("its manifest is a {found}, in a package of a {}", package.dump));
                }
                Part::Header(header) => {
                    let said =
                        ManifestTimes { at: header.at, completed: header.completed, kind: header.capability };
                    let Package { url, set, dump, metadata } = package;
                    let document = secrets::redacted(url);
                    let horizon = Horizon::at(now);
                    context =
                        Some(documents::manifest_context(&document, set, dump, metadata, said, horizon));
                }
                Part::Items(items) => {
                    let Some(context) = &context else { break };
                    for item in items {
                        let Item::Entry(entry) = item else { continue };
                        let member = entry.metadata.path.as_deref();
                        let member =
                            member.and_then(|path| Member::at(&directory, path, remote, &package.url));
                        self.add_version(&package.url, context, *entry, member);
                    }
                }
                Part::Broken(error, _) => return Err(error.to_string()),
                Part::End(_) => break,
            }
        }
        Ok(())
    }
}

/// Refuses a manifest that is too long, as stored or after decompression.
fn check_size(stored: u64, inflated: u64) -> Result<(), String> {
    for (length, most) in [(stored, MOST), (inflated, MOST_INFLATED)] {
        if length > most {
            return Err(format!(
                "its manifest has {}, more than the {} that are read",
                bytes(length),
                bytes(most)
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_bounded_as_stored_and_after_decompression() {
        assert_eq!(check_size(MOST, MOST_INFLATED), Ok(()));
        for (stored, inflated) in [(MOST + 1, 0), (1, MOST_INFLATED + 1)] {
            assert!(check_size(stored, inflated).unwrap_err().contains("more than"));
        }
    }
}
