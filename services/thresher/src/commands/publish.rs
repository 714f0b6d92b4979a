//! `thresher publish`: what is stored of a Source, as a Source of its own.

use indicatif::HumanBytes;
use jiff::Timestamp;
use model::counted;
use publish::{Base, Place, Policy, Publication, PublishError, Published, Seen};
use publisher::Settings;
use store::PublicationPlace;
use tokio::net::TcpListener;

use crate::cli::PublishArgs;
use crate::commands::sync::stop_on_interrupt;
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target;
use crate::terminal::{self, note, say};

/// Runs the command.
pub(crate) async fn run(args: PublishArgs) -> CommandResult {
    let base = Base::new(args.base.clone()).map_err(usage)?;
    let (store, source, catalog) = target::open_one(&args.harvest.into, args.source.as_deref()).await?;
    let place = match &args.to {
        Some(to) => PublicationPlace::open(&target::parse(to)?)?,
        None => store.publication(&source.source),
    };
    let publication = Publication {
        place: place_of(place)?,
        base,
        source,
        store,
        with_bytes: args.to.is_some() && !args.documents_only,
        policy: Policy::default(),
    };
    if let Some(listen) = args.listen {
        catalog.close().await?;
        return serve(&args, listen, publication).await;
    }
    let (stop, _) = stop_on_interrupt();
    let mut see = |seen: Seen<'_>| show(&seen);
    // It may be dropped at any point: the next run continues.
    let done = tokio::select! {
        done = publication.run(&catalog, Timestamp::now(), &mut see) => done.map_err(failed)?,
        () = stop.cancelled() => {
            return Err(anyhow::anyhow!("publishing was stopped; run the same command again, and it continues").into());
        }
    };
    print(&args, &done)?;
    if publication.base.path() != "/" {
        well_known_hint(&publication.base);
    }
    Ok(if done.damaged == 0 { Exit::Good } else { Exit::Problems })
}

async fn serve(args: &PublishArgs, listen: std::net::SocketAddr, publication: Publication) -> CommandResult {
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        usage(format!("cannot listen on {listen}: {error}; pass another address with --listen"))
    })?;
    let address = listener.local_addr()?;
    let (stop, _) = stop_on_interrupt();
    let base = publication.base.clone();
    let settings = Settings { connections: args.connections as usize, ..Settings::default() };
    let ready = |done: Published| {
        // A reader of standard output that has gone does not end the server.
        let _ = print(args, &done);
        let _ = say!("serving {base} on {address}");
    };
    Box::pin(publisher::serve(listener, publication, settings, ready, stop)).await.map_err(failed)?;
    Ok(Exit::Good)
}

fn place_of(place: PublicationPlace) -> Result<Place, Failed> {
    let PublicationPlace { name, directory, objects } = place;
    Ok(match directory {
        Some(directory) => Place::directory(&directory, objects).map_err(failed)?,
        None => Place::bucket(&name, objects),
    })
}

fn show(seen: &Seen<'_>) {
    match seen {
        Seen::Damaged(uri, damage) => note!("{uri} is left out: {damage}"),
        Seen::Part(resources) => note!("{} so far", counted(*resources, "resource", "resources")),
    }
}

fn print(args: &PublishArgs, done: &Published) -> std::io::Result<()> {
    if args.json {
        return terminal::json(done);
    }
    let damaged = match done.damaged {
        0 => String::new(),
        damaged => format!("; {damaged} left out as damaged"),
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
