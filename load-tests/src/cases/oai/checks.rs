//! Checks that a harvest has all records.

use std::fs;
use std::path::Path;

use data_encoding::HEXLOWER;
use oaipmh::{Limits, canonicalize, comparison_digest};
use sha2::{Digest as _, Sha256};

use super::repository::Repository;
use crate::check::Check;
use crate::folder::files_below;
use crate::place::Place;
use crate::thresher::Thresher;

/// Records whose bytes are read at the end.
const SAMPLE: usize = 10;

/// A harvest of Thresher reports every record with the right digest, and returns the bytes of a sample of them.
pub(super) fn harvest(
    thresher: &Thresher,
    place: &Place,
    repository: &Repository,
) -> anyhow::Result<Vec<Check>> {
    let (mut right, mut lines) = (0, 0);
    thresher.held(place, |held| {
        lines += 1;
        let is_right = repository.record_at(&held.uri).is_some_and(|truth| {
            held.state == "present"
                && held.length == Some(truth.length)
                && held.sha256.is_some_and(|sha256| sha256 == HEXLOWER.encode(&truth.sha256))
        });
        right += u64::from(is_right);
    })?;
    let all = repository.records.len();
    let (mut asked, mut given) = (0, 0);
    for index in (0..all).step_by((all / SAMPLE).max(1)) {
        asked += 1;
        let digest: [u8; 32] = Sha256::digest(thresher.cat(&repository.uri(index), place)?).into();
        given += u64::from(digest == repository.records[index].sha256);
    }
    Ok(vec![
        Check::equal("held with the right sha-256 by thresher ls", all as u64, right),
        Check::equal("lines of thresher ls", all as u64, lines),
        Check::equal("of a sample given with the right sha-256 by thresher cat", asked, given),
    ])
}

/// Every record has a file with its metadata, and there are no other files.
pub(super) fn files(into: &Path, repository: &Repository) -> anyhow::Result<Vec<Check>> {
    let limits = Limits::default();
    let digest = |index: usize| {
        let text = fs::read_to_string(into.join(format!("{index}.xml"))).ok()?;
        comparison_digest(&canonicalize(&text, &limits).ok()?.document, &limits).ok()
    };
    let records = repository.records.iter().enumerate();
    let right = records.filter(|(index, truth)| digest(*index) == Some(truth.comparison)).count();
    let mut present = 0;
    for file in files_below(into) {
        file?;
        present += 1;
    }
    let all = repository.records.len() as u64;
    Ok(vec![
        Check::equal("files with the right metadata", all, right as u64),
        Check::equal("files in all", all, present),
    ])
}

/// The view has a file for every record, and no other one.
pub(super) fn view(into: &Path, repository: &Repository) -> anyhow::Result<Check> {
    let mut present = 0;
    for file in files_below(into) {
        let is_data = file?.path().strip_prefix(into).is_ok_and(|path| path.starts_with(".thresher"));
        present += u64::from(!is_data);
    }
    Ok(Check::equal("files of the view", repository.records.len() as u64, present))
}
