//! Makes a version from the stored one and patches, in place of a request for the resource.
//!
//! Whatever goes wrong is no failure: the resource itself is requested then. Only the store's failures are errors.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use fixity::{Computed, Digest, Hasher, Verdict};
use jiff::Timestamp;
use model::{
    Assurance, Bitstream, FetchItem, MOST_PATCHES_IN_VAIN, Patch, PatchBase, PatchItem, PatchUnused,
    PatchUse, Validators,
};
use patches::{LARGEST, Limits, PatchError};
use store::StoreError;
use tokio::time::{Instant, timeout_at};
use web::{ErrorKind, GetRequest, WebError};

use crate::body::{Body, Receiving};
use crate::fetcher::Fetcher;
use crate::resource::Fresh;

/// The longest time until all patches of an item have come. They take memory that all Sources share, so no server may
/// hold it for as long as a resource may take.
const RECEIVED_WITHIN: Duration = Duration::from_secs(60);

/// How often a version may be in memory: as it is stored, as it is edited, twice while it grows, and in part as what an
/// operation copies and writes.
const COPIES: u64 = 5;

/// What became of the patches of an item.
pub(crate) struct Patched {
    /// Requests made.
    pub(crate) requests: u64,
    pub(crate) used: PatchUse,
    /// The version, if they made it.
    pub(crate) fresh: Option<Fresh<Body>>,
}

impl Patched {
    /// How many patches in a row were tried in vain, with these.
    pub(crate) fn in_vain_after(&self, before: u32) -> u32 {
        match &self.used {
            // The rest of the job would wait as long, each item again.
            PatchUse::Unused(PatchUnused::NoRoom) => MOST_PATCHES_IN_VAIN,
            used => used.in_vain_after(before),
        }
    }
}

/// Why patches did not make a version.
enum Break {
    Unused(PatchUnused),
    Store(StoreError),
}

impl From<PatchUnused> for Break {
    fn from(why: PatchUnused) -> Self {
        Self::Unused(why)
    }
}

impl Fetcher {
    /// Applies the patches of an item; none if it has none. `in_vain` patches before it in the job were tried in vain.
    ///
    /// # Errors
    /// Only when the store fails.
    pub(crate) async fn patch(&self, item: &FetchItem, in_vain: u32) -> Result<Option<Patched>, StoreError> {
        let Some(patch) = item.patch.as_deref() else { return Ok(None) };
        let mut requests = 0;
        let made = match patch.unused {
            Some(why) => Err(why.into()),
            None if in_vain >= MOST_PATCHES_IN_VAIN => Err(PatchUnused::GivenUp.into()),
            // Boxed: few items have patches.
            None => Box::pin(self.make(item, patch, &mut requests)).await,
        };
        match made {
            Ok((used, fresh)) => Ok(Some(Patched { requests, used, fresh: Some(fresh) })),
            Err(Break::Unused(why)) => {
                Ok(Some(Patched { requests, used: PatchUse::Unused(why), fresh: None }))
            }
            Err(Break::Store(error)) => Err(error),
        }
    }

    async fn make(
        &self,
        item: &FetchItem,
        patch: &PatchItem,
        requests: &mut u64,
    ) -> Result<(PatchUse, Fresh<Body>), Break> {
        let base = patch.base.as_ref().ok_or(PatchUnused::NoBase)?;
        let largest = patch.steps.iter().map(|step| step.makes_length).chain([base.computed.length()]).max();
        let largest = largest.filter(|largest| *largest <= LARGEST).ok_or(PatchUnused::TooLarge)?;
        let length = patch.steps.iter().try_fold(0_u64, |sum, step| sum.checked_add(step.length));
        let length = length.filter(|bytes| *bytes <= LARGEST).ok_or(PatchUnused::TooLarge)?;
        // Also of what lies between the operations of a patch.
        let limit = (largest + length).min(LARGEST);
        let room = self.patch_room.take(COPIES * limit + length + patches::PARSED).await;
        let _room = room.ok_or(PatchUnused::NoRoom)?;
        let deadline = Instant::now() + RECEIVED_WITHIN;

        // The stored version first: without it, no patch is asked for.
        let mut bytes = self.read(base).await?;
        let mut received = 0;
        for step in &patch.steps {
            let patch = match self.stored_patch(step).await? {
                Some(stored) => stored,
                None => {
                    received += step.length;
                    self.receive_patch(step, deadline, requests).await?
                }
            };
            bytes = apply(bytes, patch, step.clone(), limit).await?;
        }

        let made = bytes.len() as u64;
        let algorithms = item.declaration.digests.iter().map(Digest::algorithm).collect();
        let mut receiving = Receiving::new(&self.store, algorithms, self.config.pack_threshold_bytes);
        receiving.append(bytes).await.map_err(Break::Store)?;
        let body = receiving.finish().await.map_err(Break::Store)?;
        let media_type = item.declaration.media_type.clone().or_else(|| base.media_type.clone());
        // No server sent this version, so there are no validators and no times of one.
        let fresh = Fresh {
            body,
            media_type,
            encoding: None,
            validators: Validators::default(),
            modified: None,
            final_url: None,
        };
        let patches = patch.steps.iter().map(|step| step.url.clone()).collect();
        Ok((PatchUse::Applied { patches, bytes: received, saved: made.saturating_sub(length) }, fresh))
    }

    /// A patch that came in a package, if it is still there and as declared.
    async fn stored_patch(&self, step: &Patch) -> Result<Option<Bytes>, Break> {
        let stored = step.stored.as_deref().filter(|stored| stored.computed.length() == step.length);
        let Some(stored) = stored else { return Ok(None) };
        match self.read(stored).await {
            Ok(bytes) => Ok(Some(bytes).filter(|bytes| !contradicts(&step.digests, bytes))),
            Err(Break::Unused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn read(&self, base: &PatchBase) -> Result<Bytes, Break> {
        let bitstream = Bitstream {
            location: base.location.clone(),
            computed: base.computed.clone(),
            assurance: Assurance::Digest,
            media_type: None,
            encoding: None,
            validators: Validators::default(),
            final_url: None,
            stored_at: Timestamp::UNIX_EPOCH,
        };
        match self.store.read_verified(&bitstream).await {
            Ok(bytes) => Ok(bytes),
            Err(StoreError::NotFound { .. } | StoreError::Damaged { .. }) => {
                Err(PatchUnused::DamagedBase.into())
            }
            Err(error) => Err(Break::Store(error)),
        }
    }

    /// Requests a patch, and judges it by its own declaration.
    async fn receive_patch(
        &self,
        step: &Patch,
        deadline: Instant,
        requests: &mut u64,
    ) -> Result<Bytes, PatchUnused> {
        // The job has permits of this origin only.
        let request = GetRequest {
            within_origin: true,
            largest: Some(step.length),
            ..GetRequest::new(step.url.to_url())
        };
        let mut response = match timeout_at(deadline, self.client.get(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                *requests += u64::from(error.requests());
                return Err(unreceived(&error));
            }
            Err(_) => {
                // It may have been sent.
                *requests += 1;
                return Err(PatchUnused::NotReceived);
            }
        };
        *requests += u64::from(response.requests());
        if response.status() != 200 {
            return Err(PatchUnused::NotReceived);
        }
        let mut bytes = BytesMut::new();
        loop {
            match timeout_at(deadline, response.chunk()).await {
                Ok(Ok(Some(chunk))) => bytes.extend_from_slice(&chunk),
                Ok(Ok(None)) => break,
                Ok(Err(error)) => return Err(unreceived(&error)),
                Err(_) => return Err(PatchUnused::NotReceived),
            }
        }
        let is_it = bytes.len() as u64 == step.length && !contradicts(&step.digests, &bytes);
        if is_it { Ok(bytes.freeze()) } else { Err(PatchUnused::OtherPatch) }
    }
}

/// Why a patch was not received. More bytes than declared are another patch.
fn unreceived(error: &WebError) -> PatchUnused {
    if matches!(error.kind(), ErrorKind::TooLarge) {
        PatchUnused::OtherPatch
    } else {
        PatchUnused::NotReceived
    }
}

/// Applies a patch, on a thread of its own: it may take seconds.
async fn apply(base: Bytes, patch: Bytes, step: Patch, limit: u64) -> Result<Bytes, PatchUnused> {
    let limits = Limits { bytes: usize::try_from(limit).unwrap_or(usize::MAX), ..Limits::default() };
    let work = move || {
        let is_declared = |bytes: &[u8]| {
            bytes.len() as u64 == step.makes_length
                && matches!(judge(&step.makes, bytes), Verdict::Verified { .. })
        };
        patches::apply(&base, &patch, &limits, is_declared)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(bytes)) => Ok(bytes.into()),
        Ok(Err(PatchError::OtherResult)) => Err(PatchUnused::OtherResult),
        Ok(Err(PatchError::TooLarge)) => Err(PatchUnused::TooLarge),
        Ok(Err(PatchError::NotApplicable)) | Err(_) => Err(PatchUnused::NotApplicable),
    }
}

fn contradicts(declared: &[Digest], bytes: &[u8]) -> bool {
    matches!(judge(declared, bytes), Verdict::Mismatch { .. })
}

fn judge(declared: &[Digest], bytes: &[u8]) -> Verdict {
    let mut hasher = Hasher::new(declared.iter().map(Digest::algorithm));
    hasher.update(bytes);
    let computed: Computed = hasher.finish();
    fixity::judge(declared, None, &computed)
}
