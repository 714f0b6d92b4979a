//! Reads the manifests of a dump's packages (RS-33) without receiving the packages (docs/adr/0026). Each comes from
//! the cheapest place: the stored package, a copy of the manifest, or ranges of the package at the Source.

use std::sync::Arc;

use documents::{
    Approach, DocumentStream, ManifestTimes, Part, RemotePackage, is_manifest_of, manifest_context,
    open_directory,
};
use model::{Location, PackageRecord, Validators, bytes, counted};
use packages::zip::MemberReader;
use packages::{Limits, PackageError, ReadAhead, ReadAt};
use planning::is_same_version;
use resourcesync::{Capability, Header, Item};
use url::Url;

use super::Auditor;
use super::named::{Named, NamedPackages};
use super::read::{BeforePackage, Reading, SpooledLists};
use crate::error::HarvestError;
use crate::planner::reading::names;
use crate::run::RunContext;

/// Maximum bytes of a directory, or of a manifest, that are requested. A larger one is not worth a look.
const MOST: u64 = 64 << 20;
/// Read-ahead for a manifest: one request after the other.
const AHEAD: ReadAhead = ReadAhead { chunk: 1 << 20, reads: 1 };

/// Number of entries of a manifest that was read, or why it was not.
type Manifest = Result<u64, String>;

impl Auditor {
    /// Reads the manifests of a dump's packages. If all could be read, the dump counts as read whole.
    pub(crate) async fn read_packages(
        &mut self,
        ctx: &mut RunContext,
        spooled: &mut SpooledLists,
        reading: &mut Reading<'_>,
        packages: NamedPackages,
    ) -> Result<(), HarvestError> {
        let mut entries = Some(0);
        for named in packages.all()? {
            ctx.check_stop()?;
            let named = named?;
            ctx.progress.show_document(&named.uri);
            reading.number = spooled.begin(&named.uri, reading.set);
            reading.before = BeforePackage {
                listed: ctx.run.counters.listed,
                unread: spooled.unread,
                remarks: spooled.remarks.len(),
                changes: reading.changes,
            };
            match Box::pin(self.read_package(ctx, spooled, reading, &named)).await? {
                Ok(more) => entries = entries.map(|entries| entries + more),
                Err(why) => {
                    entries = None;
                    spooled.note_unread(|| {
                        format!(
                            "{} was not compared: {why}. `thresher sync --mode baseline` receives such packages, and compares what they name",
                            named.uri
                        )
                    });
                }
            }
        }
        reading.record.unpacked = entries;
        Ok(())
    }

    /// Reads one package's manifest, from the cheapest place.
    async fn read_package(
        &mut self,
        ctx: &mut RunContext,
        spooled: &mut SpooledLists,
        reading: &mut Reading<'_>,
        named: &Named,
    ) -> Result<Manifest, HarvestError> {
        let url = match Url::parse(&named.uri) {
            Ok(url) => url,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let known = ctx.catalog().await?.package(&named.uri).await?;
        let held = known.as_ref().and_then(held);
        if let (Some(known), Some((location, _))) = (&known, &held)
            && is_same_version(known, &named.declaration, &named.metadata)
            && let Ok(entries) = self.read_stored(ctx, spooled, reading, named, &url, location).await?
        {
            return Ok(Ok(entries));
        }
        if let Some(contents) = named.contents.as_deref().and_then(|contents| Url::parse(contents).ok())
            && let Ok(entries) = self.read_manifest_copy(ctx, spooled, reading, named, &contents).await?
        {
            return Ok(Ok(entries));
        }
        let validators = held.as_ref().map(|(_, validators)| validators.clone()).unwrap_or_default();
        let mut approach = RemotePackage::approach(&ctx.client, &url, validators).await;
        if let (Approach::Known { requests }, Some((location, _))) = (&approach, &held) {
            ctx.run.counters.requests += u64::from(*requests);
            if let Ok(entries) = self.read_stored(ctx, spooled, reading, named, &url, location).await? {
                return Ok(Ok(entries));
            }
            approach = RemotePackage::approach(&ctx.client, &url, Validators::default()).await;
        }
        match approach {
            Approach::Ranges(package) => {
                let package = Arc::new(package);
                let manifest = self.read_remote_manifest(ctx, spooled, reading, named, &url, &package).await;
                ctx.run.counters.requests += package.take_requests();
                manifest
            }
            Approach::Known { requests } => {
                ctx.run.counters.requests += u64::from(requests);
                Ok(Err("its server says that it is as it was to a request without a condition".to_owned()))
            }
            Approach::Closed { why, requests } => {
                ctx.run.counters.requests += u64::from(requests);
                Ok(Err(why))
            }
        }
    }

    /// Reads the manifest in the stored package.
    async fn read_stored(
        &mut self,
        ctx: &mut RunContext,
        spooled: &mut SpooledLists,
        reading: &mut Reading<'_>,
        named: &Named,
        url: &Url,
        location: &Location,
    ) -> Result<Manifest, HarvestError> {
        let length = location.span().map_or(0, |span| span.stored_length);
        let package = ctx.store.range_reader(location, length);
        match manifest(package, &Limits::default(), u64::MAX).await {
            Ok(member) => {
                let options = self.options_within_limits(ctx, spooled);
                let stream = documents::open_member(member, url.clone(), options);
                self.spool_manifest(ctx, spooled, reading, named, stream).await
            }
            Err(why) => {
                tracing::info!(
                    package.uri = named.uri,
                    why,
                    "the package that is held cannot be read for its manifest"
                );
                Ok(Err(why))
            }
        }
    }

    /// Reads the copy of the manifest that the dump links to.
    async fn read_manifest_copy(
        &mut self,
        ctx: &mut RunContext,
        spooled: &mut SpooledLists,
        reading: &mut Reading<'_>,
        named: &Named,
        contents: &Url,
    ) -> Result<Manifest, HarvestError> {
        let options = self.options_within_limits(ctx, spooled);
        let (requests, opened) = documents::open_anew(&ctx.client, contents, options).await;
        ctx.run.counters.requests += requests;
        let manifest = match opened {
            Ok(stream) => self.spool_manifest(ctx, spooled, reading, named, stream).await?,
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = &manifest {
            tracing::info!(%contents, why, "the copy of a manifest cannot be read; the package is looked at");
        }
        Ok(manifest)
    }

    /// Reads the manifest in the package at the Source.
    async fn read_remote_manifest(
        &mut self,
        ctx: &mut RunContext,
        spooled: &mut SpooledLists,
        reading: &mut Reading<'_>,
        named: &Named,
        url: &Url,
        package: &Arc<RemotePackage>,
    ) -> Result<Manifest, HarvestError> {
        if let Some(declared) = named.declaration.length.filter(|declared| *declared != package.len()) {
            return Ok(Err(format!("it has {}, and its dump declares {declared}", bytes(package.len()))));
        }
        let limits = Limits { directory_bytes: MOST, ..Limits::default() };
        match manifest(Arc::clone(package), &limits, MOST).await {
            Ok(member) => {
                let options = self.options_within_limits(ctx, spooled);
                let stream = documents::open_member(member, url.clone(), options);
                self.spool_manifest(ctx, spooled, reading, named, stream).await
            }
            Err(why) => Ok(Err(why)),
        }
    }

    /// Spools the entries of a manifest like those of a list.
    async fn spool_manifest(
        &mut self,
        ctx: &mut RunContext,
        spooled: &mut SpooledLists,
        reading: &mut Reading<'_>,
        named: &Named,
        mut stream: DocumentStream,
    ) -> Result<Manifest, HarvestError> {
        let mut context = None;
        while let Some(part) = stream.next().await {
            match part {
                Part::Header(header) => {
                    if let Err(why) = expect_manifest(&header, &reading.record.capability) {
                        return Ok(Err(why));
                    }
                    self.discard_partial(ctx, spooled, reading, named);
                    let Header { at, completed, capability: kind, .. } = header;
                    let said = ManifestTimes { at, completed, kind };
                    let dump = &reading.record.capability;
                    let horizon = spooled.horizon;
                    let set = reading.set;
                    context = Some(manifest_context(&named.uri, set, dump, &named.metadata, said, horizon));
                }
                Part::Items(mut items) => {
                    ctx.check_stop()?;
                    let Some(context) = &context else { continue };
                    if let Some(met) = self.budget.take_entries(&ctx.options.limits, &mut items) {
                        return Ok(Err(met.to_string()));
                    }
                    for item in items {
                        let Item::Entry(entry) = item else { continue };
                        self.spool_entry(ctx, spooled, reading, context, *entry).await?;
                    }
                    ctx.show();
                }
                Part::End(summary) => {
                    ctx.run.counters.add_quirks(&names(&summary.quirks));
                    if summary.bad > 0 {
                        let bad = summary.bad;
                        spooled.note_unread(|| {
                            let bad = counted(bad, "entry", "entries");
                            format!("the manifest of {} has {bad} that cannot be read", named.uri)
                        });
                    }
                    reading.is_doubtful |=
                        summary.bad > 0 || !summary.complete || summary.quirks.casts_doubt();
                    return Ok(Ok(summary.entries));
                }
                Part::Broken(error, summary) => {
                    ctx.run.counters.add_quirks(&names(&summary.quirks));
                    return Ok(Err(error.message(&ctx.options.limits)));
                }
            }
        }
        Ok(Err("reading its manifest stopped without a result".to_owned()))
    }

    /// Discards the entries of a manifest whose reading broke off. It is read again elsewhere, and counts once.
    fn discard_partial(
        &mut self,
        ctx: &mut RunContext,
        spooled: &mut SpooledLists,
        reading: &mut Reading<'_>,
        named: &Named,
    ) {
        let BeforePackage { listed, unread, remarks, changes } = reading.before;
        if ctx.run.counters.listed == listed {
            return;
        }
        spooled.entries.take_back(reading.number);
        reading.number = spooled.begin(&named.uri, reading.set);
        ctx.run.counters.listed = listed;
        spooled.unread = unread;
        spooled.remarks.truncate(remarks);
        reading.changes = changes;
    }

    /// Options for reading the next document: within what is left of the run's limits.
    pub(crate) fn options_within_limits(
        &self,
        ctx: &RunContext,
        spooled: &SpooledLists,
    ) -> resourcesync::Options {
        self.budget.options(&ctx.options.limits, spooled.horizon.options(ctx.read_mode()))
    }
}

/// Location of a package that is stored whole, and the validators of its response.
fn held(known: &PackageRecord) -> Option<(Location, Validators)> {
    let settled = known.settled.as_ref()?;
    Some((settled.location.clone()?, settled.validators.clone()))
}

/// The manifest in a ZIP, ready to be read; for another package the reason why it is not read.
async fn manifest<R: ReadAt + Clone + 'static>(
    package: R,
    limits: &Limits,
    most: u64,
) -> Result<MemberReader<'static>, String> {
    let say = |error: PackageError| error.to_string();
    let directory = open_directory(&package, limits).await?;
    let (member, _) = directory.manifest().map_err(say)?;
    let length = member.compressed_size;
    if length > most {
        return Err(format!("its manifest has {}, more than the {most} that are looked at", bytes(length)));
    }
    let (_, reader) = directory.read(package.clone(), &member, AHEAD).await.map_err(say)?;
    Ok(reader)
}

/// Checks that a manifest matches the kind of the dump that lists its package. For packages of a Change List, the
/// kind of the manifest is undefined.
fn expect_manifest(header: &Header, dump: &Capability) -> Result<(), String> {
    let is_any = *dump == Capability::ChangeList;
    let found = header.capability.as_ref();
    if is_manifest_of(header, dump) || is_any && found.is_some_and(Capability::is_manifest) {
        return Ok(());
    }
    Err(found
        .map_or_else(String::new, |found| format!("its manifest is a {found}, in a package of a {dump}")))
}
