//! Which problems are meant, and the catalogs in which the operator's word about them is written.

use std::collections::HashSet;

use catalog::{Catalog, CatalogConfig};
use model::{ProblemReason, ProblemRecord, Subject, SystemClock};
use scheduler::Word;
use store::{Store, StoreOptions, StoreTarget};

use crate::cli::{AboutArg, KindArgs, SelectArgs};
use crate::exit::{Failed, usage};
use crate::target;

impl KindArgs {
    /// Whether a problem is of one of these reasons and kinds.
    pub(crate) fn take(&self, subject: &Subject, reason: ProblemReason) -> bool {
        let about = |about: &AboutArg| {
            matches!(
                (about, subject),
                (AboutArg::Resource, Subject::Resource(_))
                    | (AboutArg::Document, Subject::Document(_))
                    | (AboutArg::Entry, Subject::Entry(_))
                    | (AboutArg::Message, Subject::Message(_))
            )
        };
        (self.reason.is_empty() || self.reason.contains(&reason))
            && (self.about.is_empty() || self.about.iter().any(about))
    }

    fn is_empty(&self) -> bool {
        self.reason.is_empty() && self.about.is_empty()
    }
}

impl SelectArgs {
    /// Whether a problem is meant by its URI.
    pub(crate) fn name(&self, subject: &Subject) -> bool {
        self.uris.iter().any(|uri| uri == subject.uri())
    }

    /// Whether a problem is meant.
    pub(crate) fn take(&self, subject: &Subject, reason: ProblemReason) -> bool {
        (self.uris.is_empty() || self.name(subject))
            && self.prefix.as_ref().is_none_or(|prefix| subject.uri().starts_with(prefix.as_str()))
            && self.kind.take(subject, reason)
    }

    fn check(&self) -> Result<(), Failed> {
        if self.all || !self.uris.is_empty() || self.prefix.is_some() || !self.kind.is_empty() {
            return Ok(());
        }
        Err(usage(
            "say which problems are meant: by URIs, --prefix, --reason or --about, or --all; `thresher problems` lists them",
        ))
    }
}

/// Has the operator's word written about all problems that are meant. Returns what these are about.
pub(crate) async fn tell(
    select: &SelectArgs,
    word: &Word,
    is_meant: impl Fn(&Subject, &ProblemRecord) -> bool,
) -> Result<Vec<Subject>, Failed> {
    select.check()?;
    let target = target::parse(&select.harvest.into)?;
    if matches!(target, StoreTarget::S3 { .. }) && !select.as_owner {
        return Err(usage(format!(
            "{} may be harvested by a fleet, whose scheduler alone writes what is known of a Source. Have it pause (`thresher run pause \
             <source>`), or wait until none of its runs is under way, and give --as-owner",
            select.harvest.into
        )));
    }
    // Says what is wrong with --into, and creates nothing.
    drop(target::open_for_reading(&select.harvest.into).await?);
    let store = Store::open(&target, StoreOptions::default()).await?;
    let mut told = Vec::new();
    for note in store.sources().await? {
        let path = target::catalog_path(&note.source);
        let catalog = Catalog::open(store.object_store(), &path, CatalogConfig::default()).await?;
        let wanted = |subject: &Subject, problem: &ProblemRecord| {
            select.take(subject, problem.reason) && is_meant(subject, problem)
        };
        let about = scheduler::tell(&catalog, &SystemClock, word, wanted).await;
        catalog.close().await?;
        told.extend(about?);
    }
    Ok(told)
}

/// URIs that were given, and that no problem is about.
pub(crate) fn missed<'a>(select: &'a SelectArgs, told: &[Subject]) -> Vec<&'a str> {
    let known: HashSet<&str> = told.iter().map(Subject::uri).collect();
    select.uris.iter().map(String::as_str).filter(|uri| !known.contains(uri)).collect()
}
