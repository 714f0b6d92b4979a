//! `thresher publish`: what is stored of a Source, or in a directory, as a Source of its own.

mod output;
mod serving;
mod several;

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use model::{SetRule, SourceId, counted};
use publish::files::{FOLDER, FileRecords, Watching};
use publish::{
    Archive, Base, CatalogRecords, PartSet, Place, Policy, Publication, PublishError, Records, Seen, Takedown,
};
use publisher::{Held, Site, Takedowns};
use store::{PublicationPlace, SourceMarker, Store};
use url::Url;

use crate::cli::PublishArgs;
use crate::commands::sync::stop_on_interrupt;
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target;
use crate::terminal::note;

use self::output::{print, show_problems, well_known_hint};
use self::serving::{readers, serve, tokens};

/// How long a URL of a bucket is valid, at least and at most. Buckets take none for longer than seven days.
const LEAST_REDIRECT: Duration = Duration::from_secs(60);
const LONGEST_REDIRECT: Duration = Duration::from_secs(7 * 24 * 3_600);
/// The least time after which a server closes a Change List: the index of those of 30 days fits into one document.
const LEAST_CLOSE_AFTER: Duration = Duration::from_secs(60);

/// Runs the command.
pub(crate) async fn run(args: PublishArgs) -> CommandResult {
    let base = Base::new(args.base.clone()).map_err(usage)?;
    let policy = policy(&args)?;
    args.hub.iter().chain(&args.ping_hub).try_for_each(plain_hub)?;
    redirect(&args)?;
    if let Some(directory) = &args.from {
        return from_files(&args, directory, base, policy).await;
    }
    if args.all_sources || args.label.is_some() || args.source.len() > 1 {
        return several::run(&args, base, policy).await;
    }
    let named = args.source.first().map(String::as_str);
    let (store, source, catalog) = target::open_one(&args.harvest.into, named).await?;
    note_base(&store, &base).await;
    let place = match &args.to {
        Some(to) => place_at(to).await?,
        None => place_in(&store, &source.source)?,
    };
    let with_bytes = args.to.is_some() && !args.documents_only;
    let publication = Publication {
        place,
        base,
        source,
        with_bytes,
        dumps: args.dumps,
        hubs: args.hubs(),
        description: None,
        takedown: takedown(&args)?,
        sets: parts(&args)?,
        rule: None,
        policy,
    };
    if let Some(listen) = args.listen {
        catalog.close().await?;
        let (base, source) = (publication.base.clone(), publication.source.source.clone());
        let site = Site::One(Box::new(publication), Held::Harvest(store));
        let readers = readers(&args, tokens(&args)?.as_ref(), &source);
        return serve(&args, listen, base, site, readers).await;
    }
    let records = CatalogRecords::new(&catalog, &store);
    lay_down(&args, &publication, &records).await
}

/// Records where a harvest is published, so that no sync takes back what came from there. A store that cannot be
/// written is published all the same.
async fn note_base(store: &Store, base: &Base) {
    if let Err(error) = store.note_publication_base(base.as_str()).await {
        note!(
            "later syncs will not know of {base}, and may take in again what they find of it elsewhere: {error}"
        );
    }
}

/// Sizes and times: the default ones, or those of the options.
fn policy(args: &PublishArgs) -> Result<Policy, Failed> {
    // The bytes of a directory's files are those of today only.
    let version_links = args.archive != Archive::Off && args.listen.is_some() && args.from.is_none();
    let policy =
        Policy { archive: args.archive, version_links, edition_pause: args.list_pause, ..Policy::default() };
    let Some(age) = args.close_after else { return Ok(policy) };
    if args.listen.is_some() && age < LEAST_CLOSE_AFTER {
        return Err(usage("with --listen, --close-after is at least 1min: each closed list is a document"));
    }
    Ok(Policy { change_list_age: age, dumped_list_age: age, ..policy })
}

/// The sets by rule of each publication.
fn parts(args: &PublishArgs) -> Result<Vec<PartSet>, Failed> {
    let mut names = std::collections::BTreeSet::new();
    if let Some(twice) = args.sets.iter().find(|set| !names.insert(set.name())) {
        return Err(usage(format!("--set {}: this name is given twice; name each set once", twice.name())));
    }
    if args.sets.len() > SetRule::MOST {
        return Err(usage(format!("--set: a publication has at most {} sets by rule", SetRule::MOST)));
    }
    args.sets.iter().cloned().map(PartSet::new).collect::<Result<_, _>>().map_err(usage)
}

/// What the operator withdraws.
fn takedown(args: &PublishArgs) -> Result<Takedown, Failed> {
    Ok(takedowns(args)?.map(|list| list.now()).unwrap_or_default())
}

/// The list of what the operator withdraws.
fn takedowns(args: &PublishArgs) -> Result<Option<Takedowns>, Failed> {
    let list = args.takedown.as_deref().map(Takedowns::of_file).transpose();
    list.map_err(|error| usage(format!("{error:#}; repair the file of --takedown")))
}

/// Refuses to lead readers to a bucket that there is not, or by URLs that a bucket does not take.
fn redirect(args: &PublishArgs) -> Result<(), Failed> {
    let Some(lasts) = args.redirect else { return Ok(()) };
    if lasts < LEAST_REDIRECT || lasts > LONGEST_REDIRECT {
        return Err(usage("--redirect is at least 1min, and at most 7 days: buckets take no URL for longer"));
    }
    if args.from.is_some() || !args.harvest.into.starts_with("s3://") {
        return Err(usage("--redirect leads to a bucket; pass --into s3://…, or leave it out"));
    }
    Ok(())
}

/// Refuses a hub that cannot be posted to, or whose URL has a secret: readers see it.
fn plain_hub(hub: &Url) -> Result<(), Failed> {
    if !hub.username().is_empty() || hub.password().is_some() {
        return Err(usage(
            "the URL of a hub cannot have a user or a password, since readers see it; pass it without",
        ));
    }
    if !matches!(hub.scheme(), "http" | "https") || !hub.has_host() {
        return Err(usage(format!("{hub} cannot be a hub; pass an http or https URL")));
    }
    Ok(())
}

/// Publishes the files of a directory.
async fn from_files(args: &PublishArgs, directory: &Path, base: Base, policy: Policy) -> CommandResult {
    let Some(place) = args.to.as_ref().or(args.state.as_ref()) else {
        return Err(usage("pass --state DIR with --from and --listen: documents and digests are kept there"));
    };
    let place = place_at(place).await?;
    let below = base.url(FOLDER).parse::<Url>()?;
    let url = args.files_url.clone().unwrap_or(below);
    let files = FileRecords::new(directory, &url, &place).map_err(failed)?;
    let mut files = files.allow_deletes(args.allow_deletes);
    if args.listen.is_some() && !args.no_watch {
        files = files.watched(Watching { all_every: args.rescan_all, ..Watching::default() });
    }
    let with_bytes = args.to.is_some() && !args.documents_only && args.files_url.is_none();
    let url = files.directory_url().to_owned();
    let source = SourceMarker::new(SourceId::of_entry(&url.parse()?), url);
    let publication = Publication {
        place,
        base: base.clone(),
        source,
        with_bytes,
        dumps: args.dumps,
        hubs: args.hubs(),
        description: None,
        takedown: takedown(args)?,
        sets: Vec::new(),
        rule: None,
        policy,
    };
    match args.listen {
        Some(listen) => {
            let readers = readers(args, tokens(args)?.as_ref(), &publication.source.source);
            let site = Site::One(Box::new(publication), Held::Files(Box::new(files)));
            serve(args, listen, base, site, readers).await
        }
        None => lay_down(args, &publication, &files).await,
    }
}

/// Publishes once.
async fn lay_down(args: &PublishArgs, publication: &Publication, records: &dyn Records) -> CommandResult {
    let (stop, _) = stop_on_interrupt();
    let mut scanned = None;
    let mut see = |seen: Seen<'_>| match seen {
        Seen::Damaged(uri, damage) => note!("{uri} is left out: {damage}"),
        Seen::Part(resources) => note!("{} so far", counted(resources, "resource", "resources")),
        Seen::Told(_) => {}
        Seen::Scanned(found) => {
            show_problems(found);
            scanned = Some(found.clone());
        }
    };
    // It may be dropped at any point: the next run continues.
    let done = tokio::select! {
        done = publication.run(records, Timestamp::now(), &mut see) => done.map_err(failed)?,
        () = stop.cancelled() => return Err(failed(PublishError::Stopped)),
    };
    print(args, &done, scanned.as_ref())?;
    if publication.base.path() != "/" {
        well_known_hint(&publication.base);
    }
    let failures = scanned.map_or(0, |scanned| scanned.problems.failures());
    Ok(if done.damaged + failures == 0 { Exit::Good } else { Exit::Problems })
}

/// A place that the operator names, for this process to write alone.
async fn place_at(name: &str) -> Result<Place, Failed> {
    let place = Place::of(PublicationPlace::open(&target::parse(name)?)?).map_err(failed)?;
    if place.local().is_some() || place.has_conditional_puts().await {
        return Ok(place.of_one_writer());
    }
    note!(
        "{name} has no conditional puts, so two processes can publish there; see to it that one does at a time"
    );
    Ok(place)
}

/// The place of a Source's documents in the store of its harvest, for this process to write alone. A store has
/// conditional puts.
fn place_in(store: &Store, source: &SourceId) -> Result<Place, Failed> {
    Ok(Place::of(store.publication(source)).map_err(failed)?.of_one_writer())
}

fn failed(error: PublishError) -> Failed {
    match error {
        PublishError::Refused(why) => usage(why),
        other => anyhow::Error::from(other).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_bucket_a_publisher_that_another_one_has_overtaken_fails() {
        let place = place_in(&Store::in_memory(), &"one".parse().unwrap());
        assert!(place.is_ok_and(|place| place.is_guarded() && !place.is_shared()));
    }
}
