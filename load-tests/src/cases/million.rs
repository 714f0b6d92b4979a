//! Shared by the cases with a million tiny resources.

pub(super) mod serving;

use std::path::Path;

use self::serving::Million;
use super::measured;
use crate::check::{self, Check};
use crate::folder::{WorkFolder, bytes_below};
use crate::place::Place;
use crate::report::{Round, Row};
use crate::thresher::{Outcome, Thresher, View};

/// As many concurrent requests as in the other cases; only a harvest that fetches sends many.
pub(super) const AT_ONCE: u16 = 16;

/// State that every run needs.
pub(super) struct Bench {
    pub(super) thresher: Thresher,
    pub(super) million: Million,
    pub(super) work: WorkFolder,
}

/// The result of a run when its time is taken.
pub(super) struct Told {
    pub(super) outcome: Outcome,
    /// As counted by the Source.
    pub(super) requests: u64,
}

impl Bench {
    /// One `sync` in `folder`, into the directory `into` of it.
    pub(super) fn run(
        &self,
        folder: &Path,
        row: &mut Row,
        judge: impl FnOnce(&Told, &mut Round) -> anyhow::Result<Vec<Check>>,
    ) -> anyhow::Result<()> {
        let source = &self.million.source;
        let command = self.thresher.sync(&source.list(), View::None, Some(AT_ONCE));
        let before = source.requests()?;
        let (ended, mut round) = measured(&command, folder, Some(source))?;
        let told = Told { requests: source.requests()? - before, outcome: Outcome::of(&ended)? };

        round.checks = judge(&told, &mut round)?;
        round.checks.push(Check::holds("in sync", told.outcome.in_sync));
        round.checks.extend(self.held(&Place::directory(&folder.join("into")))?);
        round.checks.push(check::resident(ended.usage.peak_rss_bytes));
        count(&mut round, &folder.join("into"), &told)?;
        row.command = command.shown(folder).replace(&source.base(), "$SOURCE");
        row.rounds.push(round);
        Ok(())
    }

    /// Every resource is stored with the right digest, as Thresher reports.
    fn held(&self, place: &Place) -> anyhow::Result<Vec<Check>> {
        let mut lines = 0;
        let mut right = 0;
        self.thresher.held(place, |held| {
            lines += 1;
            let is_right =
                held.state == "present" && self.million.is_right(&held.uri, held.sha256.as_deref());
            right += u64::from(is_right);
        })?;
        Ok(vec![
            Check::equal("held with the right sha-256 by thresher ls", self.million.resources, right),
            Check::equal("lines of thresher ls", self.million.resources, lines),
        ])
    }
}

fn count(round: &mut Round, into: &Path, told: &Told) -> anyhow::Result<()> {
    round.counted.extend([
        ("requests_as_sync_says".to_owned(), told.outcome.requests),
        ("requests_seen_by_source".to_owned(), told.requests),
        ("catalog_bytes_on_disk".to_owned(), bytes_below(&into.join(".thresher/catalogs"))?),
        ("all_bytes_on_disk".to_owned(), bytes_below(into)?),
    ]);
    Ok(())
}
