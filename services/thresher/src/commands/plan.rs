//! `thresher plan`: what each way of bringing a copy in step would take.

use std::time::Duration;

use catalog::{CatalogConfig, CatalogReader};
use comfy_table::{Table, presets};
use indicatif::{HumanBytes, HumanDuration};
use jiff::Timestamp;
use model::SourceId;
use scheduler::{Estimate, HarvestOptions, WayEstimate};
use store::{Store, StoreOptions, StoreTarget};

use crate::cli::PlanArgs;
use crate::commands::sync;
use crate::exit::{CommandResult, Exit, Failed};
use crate::notices::Notices;
use crate::{http, target};

/// Runs the command.
pub(crate) async fn run(args: PlanArgs) -> CommandResult {
    let into = match &args.into {
        Some(into) => into.clone(),
        None => target::default_directory(&args.url)?,
    };
    let held = held(&into, &SourceId::of_entry(&args.url)).await?;
    let client = http::client(args.room.web(&args.http, &args.url)?)?;
    let notices = Notices::of(&client);
    let options = HarvestOptions { jobs_per_lane: args.room.concurrency, ..sync::wanted(args.wanted) };
    let lookups = held.as_deref();
    let estimate = scheduler::estimate(&client, &args.url, lookups, &options, Timestamp::now()).await;
    notices.finish().await;
    let estimate = estimate?;
    match args.json {
        true => println!("{}", serde_json::to_string(&estimate)?),
        false => show(&estimate),
    }
    Ok(if estimate.unread.is_empty() { Exit::Good } else { Exit::Problems })
}

/// What is held of the Source, if anything is.
async fn held(into: &str, source: &SourceId) -> Result<Option<CatalogReader>, Failed> {
    let target = target::parse(into)?;
    if let StoreTarget::Directory(directory) = &target
        && !directory.join(".thresher").is_dir()
    {
        return Ok(None);
    }
    let store = Store::open(&target, StoreOptions { read_only: true, ..StoreOptions::default() }).await?;
    if !store.sources().await?.iter().any(|note| note.source == *source) {
        return Ok(None);
    }
    let path = target::catalog_path(source);
    Ok(Some(CatalogReader::open(store.object_store(), &path, CatalogConfig::default()).await?))
}

fn show(estimate: &Estimate) {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["", "way", "names", "held", "requests", "bytes", "time", "set"]);
    for way in &estimate.ways {
        table.add_row([
            if way.chosen { "*" } else { "" }.to_owned(),
            way.capability.to_string(),
            way.named.to_string(),
            way.held.to_string(),
            way.cost.requests.to_string(),
            way.cost.bytes.map_or("not declared".to_owned(), |bytes| HumanBytes(bytes).to_string()),
            time(way),
            way.set.to_string(),
        ]);
    }
    println!("{table}");
    println!(
        "* is what sync would do. Time: {} a request as measured now, and 10 MB a second as assumed. Looking took {} requests",
        HumanDuration(estimate.wait.max(Duration::from_millis(1))),
        estimate.requests
    );
    for (uri, why) in &estimate.unread {
        println!("problem   {uri}: {why}");
    }
}

fn time(way: &WayEstimate) -> String {
    way.time.map_or("unknown".to_owned(), |time| HumanDuration(time).to_string())
}
