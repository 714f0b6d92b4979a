//! Whether a version can be made from the stored one and the patches that changes link to. Pure.

use ::patches::LARGEST;
use model::{
    Action, Assurance, Declaration, Listing, Patch, PatchPlan, PatchUnused, Patches, PendingRecord,
    ResourceRecord, ResourceUri,
};
use resourcesync::{Change, Link, relation};

/// The most patches that are applied one after the other.
const MOST_STEPS: usize = 8;
/// The most bytes of their URLs together.
const MOST_URL_BYTES: usize = 4 * 1024;

/// How the version of an updated resource may be made from the stored one: by the patch that its entry links to, after
/// those of earlier changes that were planned and not fetched yet. None where the entry links to no patch.
///
/// `earlier` is the plan that this one replaces. A patch is used only if
///
/// - its media type is one that can be applied,
/// - a digest of the result is declared,
/// - it is declared smaller than half of the result,
/// - it is at the origin of the resource, whose limits the job keeps,
/// - the version before this change is stored, and was judged by a digest, or is what earlier patches make.
pub fn plan(
    mode: Patches,
    uri: &ResourceUri,
    declaration: &Declaration,
    listing: &Listing,
    record: Option<&ResourceRecord>,
    earlier: Option<&PendingRecord>,
) -> Option<PatchPlan> {
    let links = listing.links.as_ref().filter(|links| links.as_str().contains(relation::PATCH))?;
    if mode == Patches::Off || listing.change != Some(Change::Updated) {
        return None;
    }
    let mut links = links.to_vec();
    links.retain(|link| link.rel == relation::PATCH);
    let link = links.into_iter().next()?;
    let planned = step(uri, declaration, link).and_then(|step| after(step, record, earlier));
    Some(planned.unwrap_or_else(without))
}

fn without(why: PatchUnused) -> PatchPlan {
    PatchPlan { steps: Vec::new(), unused: Some(why) }
}

/// The patch of an entry, if it may be applied.
fn step(uri: &ResourceUri, declaration: &Declaration, link: Link) -> Result<Patch, PatchUnused> {
    if !link.media_type.as_deref().is_some_and(::patches::is_known) {
        return Err(PatchUnused::UnknownType);
    }
    if declaration.digests.is_empty() {
        return Err(PatchUnused::NoDigest);
    }
    let (Some(length), Some(makes_length)) = (link.length, declaration.length) else {
        return Err(PatchUnused::NotSmaller);
    };
    if length >= makes_length.div_ceil(2) {
        return Err(PatchUnused::NotSmaller);
    }
    if declaration.encoding.is_some() {
        return Err(PatchUnused::Encoded);
    }
    if makes_length > LARGEST {
        return Err(PatchUnused::TooLarge);
    }
    let url = ResourceUri::try_from(link.href).map_err(|_| PatchUnused::OtherOrigin)?;
    if !url.origin().is_ok_and(|origin| uri.origin().is_ok_and(|own| own == origin)) {
        return Err(PatchUnused::OtherOrigin);
    }
    let digests = link.hash.as_deref().map(fixity::parse_hashes).unwrap_or_default().known;
    let makes = declaration.digests.clone();
    Ok(Patch { url, digests, length, makes, makes_length, stored: None })
}

/// The plan with this patch as its last.
fn after(
    step: Patch,
    record: Option<&ResourceRecord>,
    earlier: Option<&PendingRecord>,
) -> Result<PatchPlan, PatchUnused> {
    let Some(earlier) = earlier else {
        let held = record.and_then(|record| record.bitstream.as_ref());
        let held = held.filter(|held| held.assurance == Assurance::Digest && held.encoding.is_none());
        let held = held.ok_or(PatchUnused::NoBase)?;
        if held.computed.length() > LARGEST {
            return Err(PatchUnused::TooLarge);
        }
        return Ok(PatchPlan { steps: vec![step], unused: None });
    };
    let plan = earlier.patch.as_deref().filter(|plan| {
        matches!(earlier.action, Action::Fetch { .. }) && plan.unused.is_none() && !earlier.repair
    });
    let mut plan = plan.cloned().ok_or(PatchUnused::BrokenChain)?;
    // The same change, read again.
    if plan.steps.last().is_some_and(|last| last.url == step.url && last.makes == step.makes) {
        return Ok(plan);
    }
    plan.steps.push(step);
    let bytes: usize = plan.steps.iter().map(|step| step.url.as_str().len()).sum();
    if plan.steps.len() > MOST_STEPS || bytes > MOST_URL_BYTES {
        return Err(PatchUnused::BrokenChain);
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use fixity::{Computed, Sha256};
    use jiff::Timestamp;
    use model::{Bitstream, Location, Provenance, Seq, Validators};

    use super::*;
    use crate::fixtures::listing;

    const TYPE: &str = "application/json-patch+json";

    fn uri() -> ResourceUri {
        "http://h/a".parse().unwrap()
    }

    fn declares(content: &str) -> Declaration {
        let digests = vec![Sha256::of(content.as_bytes()).into()];
        Declaration { digests, length: Some(100), ..Declaration::default() }
    }

    fn patch(href: &str) -> Link {
        Link { length: Some(49), media_type: Some(TYPE.to_owned()), ..Link::new(relation::PATCH, href) }
    }

    fn held(assurance: Assurance) -> ResourceRecord {
        let computed = Computed::of(b"first");
        ResourceRecord {
            bitstream: Some(Bitstream {
                location: Location::Object { sha256: computed.sha256() },
                computed,
                assurance,
                media_type: None,
                encoding: None,
                validators: Validators::default(),
                final_url: None,
                stored_at: Timestamp::UNIX_EPOCH,
            }),
            declaration: Declaration::default(),
            listing: listing(&[], None),
            sets: Vec::new(),
            deleted: None,
            collected: None,
            absent: None,
            settled_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn planned(link: Link, declaration: &Declaration) -> Option<PatchPlan> {
        let listing = listing(&[link], Some(Change::Updated));
        plan(Patches::Verified, &uri(), declaration, &listing, Some(&held(Assurance::Digest)), None)
    }

    fn unused(link: Link, declaration: &Declaration) -> Option<PatchUnused> {
        planned(link, declaration).expect("the entry links to a patch").unused
    }

    /// A pending record with this plan.
    fn pending(patch: Option<PatchPlan>) -> PendingRecord {
        let action = Action::Fetch { origin: uri().origin().unwrap() };
        let listing = listing(&[], Some(Change::Updated));
        let record =
            PendingRecord::new(Seq::new(1), action, Declaration::default(), listing, Provenance::default());
        PendingRecord { patch: patch.map(Box::new), ..record }
    }

    #[test]
    fn a_patch_that_meets_each_condition_is_planned() {
        let found = planned(patch("http://h/a.p"), &declares("second")).unwrap();
        assert_eq!((found.unused, found.steps.len()), (None, 1));
        assert_eq!((found.steps[0].length, found.steps[0].makes_length), (49, 100));
    }

    #[test]
    fn each_condition_that_is_not_met_is_told() {
        let second = declares("second");
        let odd = Link { media_type: Some("application/xml-patch+xml".to_owned()), ..patch("http://h/a.p") };
        assert_eq!(unused(odd, &second), Some(PatchUnused::UnknownType));
        let untyped = Link { media_type: None, ..patch("http://h/a.p") };
        assert_eq!(unused(untyped, &second), Some(PatchUnused::UnknownType));
        let bare = Declaration { digests: Vec::new(), ..second.clone() };
        assert_eq!(unused(patch("http://h/a.p"), &bare), Some(PatchUnused::NoDigest));
        for length in [None, Some(50), Some(100)] {
            let large = Link { length, ..patch("http://h/a.p") };
            assert_eq!(unused(large, &second), Some(PatchUnused::NotSmaller), "{length:?}");
        }
        let coded = Declaration { encoding: Some("gzip".to_owned()), ..second.clone() };
        assert_eq!(unused(patch("http://h/a.p"), &coded), Some(PatchUnused::Encoded));
        let huge = Declaration { length: Some(LARGEST + 1), ..second.clone() };
        assert_eq!(unused(patch("http://h/a.p"), &huge), Some(PatchUnused::TooLarge));
        for elsewhere in ["https://h/a.p", "http://i/a.p", "ftp://h/a.p"] {
            assert_eq!(unused(patch(elsewhere), &second), Some(PatchUnused::OtherOrigin), "{elsewhere}");
        }
        let listing = listing(&[patch("http://h/a.p")], Some(Change::Updated));
        for record in [None, Some(held(Assurance::Length)), Some(held(Assurance::None))] {
            let found = plan(Patches::Verified, &uri(), &second, &listing, record.as_ref(), None).unwrap();
            assert_eq!(found.unused, Some(PatchUnused::NoBase));
        }
    }

    #[test]
    fn only_updates_have_patches_and_only_if_they_are_wanted() {
        let record = held(Assurance::Digest);
        let planned = |mode, change, link: Link| {
            plan(mode, &uri(), &declares("b"), &listing(&[link], change), Some(&record), None)
        };
        let updated = Some(Change::Updated);
        assert!(planned(Patches::Verified, updated, patch("http://h/a.p")).is_some());
        assert_eq!(planned(Patches::Off, updated, patch("http://h/a.p")), None);
        for change in [None, Some(Change::Created), Some(Change::Deleted)] {
            assert_eq!(planned(Patches::Verified, change, patch("http://h/a.p")), None, "{change:?}");
        }
        assert_eq!(planned(Patches::Verified, updated, Link::new("describedby", "http://h/a.p")), None);
    }

    #[test]
    fn patches_of_one_resource_make_a_chain_that_has_an_end() {
        let record = held(Assurance::Digest);
        let next = |number: usize, earlier: Option<&PendingRecord>| {
            let listing = listing(&[patch(&format!("http://h/{number}.p"))], Some(Change::Updated));
            let content = declares(&number.to_string());
            plan(Patches::Verified, &uri(), &content, &listing, Some(&record), earlier).unwrap()
        };
        let mut chain = next(1, None);
        for number in 2..=MOST_STEPS {
            chain = next(number, Some(&pending(Some(chain))));
            assert_eq!((chain.unused, chain.steps.len()), (None, number));
        }
        assert_eq!(next(MOST_STEPS, Some(&pending(Some(chain.clone())))), chain, "the same change again");
        let longer = next(MOST_STEPS + 1, Some(&pending(Some(chain.clone()))));
        assert_eq!((longer.unused, longer.steps.len()), (Some(PatchUnused::BrokenChain), 0));
        // A change without a patch, one whose patch is of no use, a deletion, and a repair are in between.
        let deletion = PendingRecord { action: Action::Delete, ..pending(Some(chain.clone())) };
        let repair = PendingRecord { repair: true, ..pending(Some(chain)) };
        for earlier in [pending(None), pending(Some(longer)), deletion, repair] {
            assert_eq!(next(9, Some(&earlier)).unused, Some(PatchUnused::BrokenChain));
        }
    }
}
