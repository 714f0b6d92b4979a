//! Pending records.

use std::borrow::Cow;

use model::{Action, Linked, MirrorPlan, Origin, PatchPlan, PendingRecord, Provenance, Seq, StoredBitstream};
use serde::{Deserialize, Serialize};

use super::declaration::DeclarationForm;
use super::listing::ListingForm;
use super::time::Time;
use super::{COMPACT, json_unless_default, read, read_json, write};

/// A pending record.
#[derive(Debug, Serialize, Deserialize)]
struct PendingForm<'a> {
    #[serde(borrow)]
    listing: ListingForm<'a>,
    /// [`Provenance`] as JSON; none if it is empty.
    account: Option<&'a str>,
    /// [`Rare`] as JSON.
    rare: Option<&'a str>,
    /// Where to fetch it; none if it is to be deleted.
    origin: Option<&'a str>,
    attempts: u32,
    next_attempt_at: Option<Time>,
    seq: u64,
    #[serde(borrow)]
    declaration: DeclarationForm<'a>,
}

/// Fields that few plans have. A later optional field goes here.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Rare<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    candidate: Option<Cow<'a, StoredBitstream>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    repair: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mirror: Option<Cow<'a, MirrorPlan>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    patch: Option<Cow<'a, PatchPlan>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    linked: Option<Cow<'a, Linked>>,
}

/// Writes a record in the compact form.
pub(crate) fn write_pending(to: &mut Vec<u8>, record: &PendingRecord) {
    let PendingRecord {
        seq,
        action,
        declaration,
        listing,
        attempts,
        next_attempt_at,
        candidate,
        repair,
        mirror,
        patch,
        account,
    } = record;
    let (listing, linked) = ListingForm::of(listing);
    let account = json_unless_default(account);
    let rare = json_unless_default(&Rare {
        candidate: candidate.as_deref().map(Cow::Borrowed),
        repair: *repair,
        mirror: mirror.as_deref().map(Cow::Borrowed),
        patch: patch.as_deref().map(Cow::Borrowed),
        linked: linked.map(Cow::Borrowed),
    });
    let form = PendingForm {
        listing,
        account: account.as_deref(),
        rare: rare.as_deref(),
        origin: match action {
            Action::Fetch { origin } => Some(origin.as_str()),
            Action::Delete => None,
        },
        attempts: *attempts,
        next_attempt_at: next_attempt_at.map(Into::into),
        seq: seq.get(),
        declaration: DeclarationForm::of(declaration, None),
    };
    to.push(COMPACT);
    write(to, &form);
}

/// Reads a record from its compact form.
pub(crate) fn read_pending(form: &[u8]) -> Result<PendingRecord, String> {
    let form: PendingForm<'_> = read(form)?;
    let Rare { candidate, repair, mirror, patch, linked } =
        form.rare.map_or(Ok(Rare::default()), read_json)?;
    let fetch = |origin: &str| {
        let origin: Origin = origin.parse().map_err(|error: model::OriginError| error.to_string())?;
        Ok::<_, String>(Action::Fetch { origin })
    };
    Ok(PendingRecord {
        seq: Seq::new(form.seq),
        action: form.origin.map_or(Ok(Action::Delete), fetch)?,
        declaration: form.declaration.read(None)?,
        listing: form.listing.read(linked.map(Cow::into_owned))?,
        attempts: form.attempts,
        next_attempt_at: Time::read_optional(form.next_attempt_at)?,
        candidate: candidate.map(|candidate| Box::new(candidate.into_owned())),
        repair,
        mirror: mirror.map(|mirror| Box::new(mirror.into_owned())),
        patch: patch.map(|patch| Box::new(patch.into_owned())),
        account: form.account.map_or(Ok(Provenance::default()), read_json)?,
    })
}
