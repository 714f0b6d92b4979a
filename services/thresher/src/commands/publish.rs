//! `thresher publish`: what is stored of a Source, or in a directory, as a Source of its own.

use std::path::Path;
use std::time::Duration;

use indicatif::HumanBytes;
use jiff::Timestamp;
use model::{SourceId, counted};
use publish::files::{FOLDER, FileRecords, Scanned};
use publish::{Base, CatalogRecords, Place, Policy, Publication, PublishError, Published, Records, Seen};
use publisher::{Held, HubLimits, Settings, Tokens};
use serde::Serialize;
use store::{PublicationPlace, SourceMarker};
use tokio::net::TcpListener;
use url::Url;
use web::AddressPolicy;

use crate::cli::PublishArgs;
use crate::commands::sync::stop_on_interrupt;
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target;
use crate::terminal::{self, note, say};

/// The least time after which a server closes a Change List: the index of those of 30 days fits into one document.
const LEAST_CLOSE_AFTER: Duration = Duration::from_secs(60);

/// Runs the command.
pub(crate) async fn run(args: PublishArgs) -> CommandResult {
    let base = Base::new(args.base.clone()).map_err(usage)?;
    let policy = policy(&args)?;
    args.hub.iter().try_for_each(plain_hub)?;
    if let Some(directory) = &args.from {
        return from_files(&args, directory, base, policy).await;
    }
    let (store, source, catalog) = target::open_one(&args.harvest.into, args.source.as_deref()).await?;
    let place = match &args.to {
        Some(to) => PublicationPlace::open(&target::parse(to)?)?,
        None => store.publication(&source.source),
    };
    let with_bytes = args.to.is_some() && !args.documents_only;
    let publication = Publication {
        place: place_of(place)?,
        base,
        source,
        with_bytes,
        dumps: args.dumps,
        hubs: args.hub.clone(),
        policy,
    };
    if let Some(listen) = args.listen {
        catalog.close().await?;
        return serve(&args, listen, publication, Held::Harvest(store)).await;
    }
    let records = CatalogRecords::new(&catalog, &store);
    lay_down(&args, &publication, &records).await
}

/// Sizes and times, as the operator wants them.
fn policy(args: &PublishArgs) -> Result<Policy, Failed> {
    let Some(age) = args.close_after else { return Ok(Policy::default()) };
    if args.listen.is_some() && age < LEAST_CLOSE_AFTER {
        return Err(usage("with --listen, --close-after is at least 1min: each closed list is a document"));
    }
    Ok(Policy { change_list_age: age, dumped_list_age: age, ..Policy::default() })
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
    let place = place_of(PublicationPlace::open(&target::parse(place)?)?)?;
    let below = base.url(FOLDER).parse::<Url>()?;
    let url = args.files_url.clone().unwrap_or(below);
    let files = FileRecords::new(directory, &url, &place).map_err(failed)?;
    let files = files.allow_deletes(args.allow_deletes);
    let with_bytes = args.to.is_some() && !args.documents_only && args.files_url.is_none();
    let url = files.directory_url().to_owned();
    let source = SourceMarker { source: SourceId::of_entry(&url.parse()?), url };
    let publication =
        Publication { place, base, source, with_bytes, dumps: args.dumps, hubs: args.hub.clone(), policy };
    match args.listen {
        Some(listen) => serve(args, listen, publication, Held::Files(files)).await,
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

async fn serve(
    args: &PublishArgs,
    listen: std::net::SocketAddr,
    publication: Publication,
    held: Held,
) -> CommandResult {
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        usage(format!("cannot listen on {listen}: {error}; pass another address with --listen"))
    })?;
    let address = listener.local_addr()?;
    let (stop, _) = stop_on_interrupt();
    let base = publication.base.clone();
    let tokens = args.tokens.as_deref().map(Tokens::of_file).transpose();
    let tokens = tokens.map_err(|error| usage(format!("{error:#}; repair the file of --tokens")))?;
    let settings = Settings {
        tokens,
        hub: hub_limits(args)?,
        connections: args.connections as usize,
        rescan: Duration::from_secs(args.rescan.into()),
        ..Settings::default()
    };
    let ready = |done: Published| {
        // A reader of standard output that has gone does not end the server.
        let _ = print(args, &done, None);
        let _ = say!("serving {base} on {address}");
    };
    Box::pin(publisher::serve(listener, publication, held, settings, ready, stop)).await.map_err(failed)?;
    Ok(Exit::Good)
}

/// The limits of the publisher's own hub, if it is wanted.
fn hub_limits(args: &PublishArgs) -> Result<Option<HubLimits>, Failed> {
    if !args.own_hub {
        return Ok(None);
    }
    let default = HubLimits::default();
    let limits = HubLimits {
        subscribers: args.hub_subscribers as usize,
        per_host: args.hub_subscribers_per_host as usize,
        longest_lease: args.hub_lease.unwrap_or(default.longest_lease),
        give_up: args.hub_give_up.unwrap_or(default.give_up),
        addresses: args.allow_address.iter().copied().fold(default.addresses, AddressPolicy::allow_network),
        ..default
    };
    if limits.longest_lease.is_zero() || limits.longest_lease > HubLimits::default().longest_lease {
        return Err(usage("--hub-lease is above nothing, and at most 31 days: leases are never endless"));
    }
    Ok(Some(limits))
}

/// Names what is not published, and why.
fn show_problems(scanned: &Scanned) {
    for (problem, count, first) in scanned.problems.iter() {
        if problem.is_rule() {
            note!("{} not published: {problem}", counted(count, "name is", "names are"));
            continue;
        }
        for path in first {
            note!("{path} is not published as it is now: {problem}");
        }
        let more = count.saturating_sub(first.len() as u64);
        if more > 0 {
            note!("{} for the same reason", counted(more, "more path", "more paths"));
        }
    }
}

fn place_of(place: PublicationPlace) -> Result<Place, Failed> {
    let PublicationPlace { name, directory, objects } = place;
    Ok(match directory {
        Some(directory) => Place::directory(&directory, objects).map_err(failed)?,
        None => Place::bucket(&name, objects),
    })
}

/// The totals as JSON.
#[derive(Serialize)]
struct Totals<'a> {
    #[serde(flatten)]
    published: &'a Published,
    #[serde(skip_serializing_if = "Option::is_none")]
    scan: Option<&'a Scanned>,
}

fn print(args: &PublishArgs, published: &Published, scan: Option<&Scanned>) -> std::io::Result<()> {
    if args.json {
        return terminal::json(&Totals { published, scan });
    }
    let done = published;
    let damaged = match done.damaged {
        0 => String::new(),
        damaged => format!("; {damaged} left out"),
    };
    let files = match done.files {
        0 => String::new(),
        files => format!(", {} ({})", counted(files, "file", "files"), HumanBytes(done.bytes)),
    };
    say!(
        "{} published: {}{files}, {}{damaged}",
        counted(done.resources, "resource", "resources"),
        counted(done.changes, "change", "changes"),
        counted(done.documents, "document", "documents"),
    )
}

/// Harvesters look for the Source Description at the host.
fn well_known_hint(base: &Base) {
    let description = base.url(publish::paths::DESCRIPTION);
    note!(
        "hint: redirect /.well-known/resourcesync of the host to {description}, so that harvesters find it"
    );
}

fn failed(error: PublishError) -> Failed {
    match error {
        PublishError::Refused(why) => usage(why),
        other => anyhow::Error::from(other).into(),
    }
}
