//! Several Sources of a harvest as the sets of one.

use std::collections::BTreeMap;

use control::{LabelKey, LabelValue};
use jiff::Timestamp;
use model::counted;
use publish::{
    Base, CatalogRecords, Collection, CollectionSet, Place, Policy, Publication, PublishError, Published,
    Seen, Takedown,
};
use publisher::{Readers, Site};
use store::{SourceMarker, Store};

use super::output::{print, well_known_hint};
use super::serving::{readers, serve, tokens};
use super::{failed, note_base, parts, place_at, place_in, takedown};
use crate::cli::PublishArgs;
use crate::commands::sync::stop_on_interrupt;
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::target;
use crate::terminal::note;
use crate::values::source_id;

/// Publishes each Source in a folder of its own, below one Source Description.
pub(super) async fn run(args: &PublishArgs, base: Base, policy: Policy) -> CommandResult {
    let (store, sources) = find(args).await?;
    let of_each = parts(args)?;
    let sets = sources.iter().map(|marker| CollectionSet {
        source: marker.source.clone(),
        url: marker.url.clone(),
        sets: of_each.clone(),
    });
    let collection = Collection::new(base, sets.collect()).map_err(failed)?;
    note_base(&store, collection.base()).await;
    let takedown = takedown(args)?;
    let root = match &args.to {
        Some(to) => Some(place_at(to).await?),
        None => None,
    };
    let publications = sources.into_iter().map(|source| {
        let place = match &root {
            Some(root) => root.folder(source.source.as_str()).map_err(failed)?,
            None => place_in(&store, &source.source)?,
        };
        let publication = publication(args, place, &collection, source, policy)?;
        Ok::<_, Failed>(Publication { takedown: takedown.clone(), ..publication })
    });
    let publications: Vec<Publication> = publications.collect::<Result<_, _>>()?;
    match args.listen {
        Some(listen) => {
            let base = collection.base().clone();
            let tokens = tokens(args)?;
            let sets = publications.into_iter().map(|publication| {
                let readers = readers(args, tokens.as_ref(), &publication.source.source);
                (publication, readers)
            });
            let site = Site::Several { base: base.clone(), sets: sets.collect(), store };
            // Each set has its own networks; the tokens are those of all.
            let all = Readers { tokens, networks: None };
            serve(args, listen, base, site, all).await
        }
        None => lay_down(args, root.as_ref(), &store, &collection, &publications).await,
    }
}

/// The Sources that the operator names.
async fn find(args: &PublishArgs) -> Result<(Store, Vec<SourceMarker>), Failed> {
    let (store, all) = target::find_sources(&args.harvest.into, None).await?;
    if let Some(label) = &args.label {
        let labelled: Vec<_> = all.into_iter().filter(|marker| label.matches(&labels(marker))).collect();
        if labelled.is_empty() {
            return Err(usage(format!(
                "{} has no Source with the label {label}; `sync --label` gives it one, or in a fleet `source set --label` \
                 and its next run",
                target::place(&store)
            )));
        }
        return Ok((store, labelled));
    }
    if args.all_sources {
        return Ok((store, all));
    }
    let mut named = Vec::new();
    for text in &args.source {
        let id = source_id(text)?;
        let Some(found) = all.iter().find(|marker| marker.source == id) else {
            let problem = format!("{} has no Source {text}", target::place(&store));
            return Err(target::name_one(&problem, &all));
        };
        named.push(found.clone());
    }
    Ok((store, named))
}

/// The labels of a Source. What is none by the rules of labels matches nothing.
fn labels(marker: &SourceMarker) -> BTreeMap<LabelKey, LabelValue> {
    let label = |(key, value): (&String, &String)| Some((key.parse().ok()?, value.parse().ok()?));
    marker.labels.iter().filter_map(label).collect()
}

fn publication(
    args: &PublishArgs,
    place: Place,
    collection: &Collection,
    source: SourceMarker,
    policy: Policy,
) -> Result<Publication, Failed> {
    Ok(Publication {
        place,
        base: collection.base().of_set(&source.source).map_err(failed)?,
        source,
        with_bytes: args.to.is_some() && !args.documents_only,
        dumps: args.dumps,
        hubs: args.hubs(),
        description: Some(collection.description()),
        takedown: Takedown::default(),
        sets: parts(args)?,
        rule: None,
        policy,
    })
}

/// Publishes each once. One that fails keeps no other back.
async fn lay_down(
    args: &PublishArgs,
    root: Option<&Place>,
    store: &Store,
    collection: &Collection,
    publications: &[Publication],
) -> CommandResult {
    let Some(root) = root else { return Err(usage("pass --to or --listen")) };
    collection.begin(root).await.map_err(failed)?;
    let (stop, _) = stop_on_interrupt();
    let mut done = Published::default();
    let mut not_published = 0;
    for publication in publications {
        let source = &publication.source.source;
        // It may be dropped at any point: the next run continues.
        let published = tokio::select! {
            published = publish(store, publication) => published,
            () = stop.cancelled() => return Err(failed(PublishError::Stopped)),
        };
        match published {
            Ok(published) => done += published,
            Err(error) => {
                note!("{source} is not published now: {error:#}");
                not_published += 1;
            }
        }
    }
    if not_published == 0 {
        // The Source Description leads to sets that are there.
        done.documents += collection.finish(root).await.map_err(failed)?;
    }
    print(args, &done, None)?;
    if collection.base().path() != "/" {
        well_known_hint(collection.base());
    }
    if not_published > 0 {
        let sources = counted(not_published, "Source is", "Sources are");
        note!("{sources} not published, and the Source Description is as before; run the same command again");
    }
    Ok(if done.damaged + not_published == 0 { Exit::Good } else { Exit::Problems })
}

async fn publish(store: &Store, publication: &Publication) -> anyhow::Result<Published> {
    let source = &publication.source.source;
    let catalog = target::read_catalog(store, source).await?;
    let records = CatalogRecords::new(&catalog, store);
    let mut see = |seen: Seen<'_>| match seen {
        Seen::Damaged(uri, damage) => note!("{uri} is left out: {damage}"),
        Seen::Part(resources) => note!("{source}: {} so far", counted(resources, "resource", "resources")),
        Seen::Scanned(_) | Seen::Told(_) => {}
    };
    let done = publication.run(&records, Timestamp::now(), &mut see).await?;
    catalog.close().await?;
    Ok(done)
}
