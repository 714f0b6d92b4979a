//! `thresher demo`: harvest a simulated Source, with each step explained. Needs no server and no network.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use harvest::Report;
use model::{ResourceUri, Subject};
use planning::HarvestOptions;
use simulated_source::{ChangeKind, Changes, Fault, SimulatedSource, SourceSpec};
use store::Store;
use url::Url;
use web::WebConfig;

use crate::cli::DemoArgs;
use crate::commands::sync::{self, Request};
use crate::exit::{CommandResult, Exit, Failed};
use crate::terminal;
use crate::{show, target};

/// Concurrent requests to the simulated Source.
const CONCURRENCY: usize = 4;
/// The fewest resources with which every step has something to show.
const FEWEST: u64 = 20;

/// Runs the command.
pub(crate) async fn run(args: DemoArgs) -> CommandResult {
    let resources = args.resources.max(FEWEST);
    let into = match args.into {
        Some(into) => into,
        None => fresh_directory()?.display().to_string(),
    };
    let source = SimulatedSource::start(SourceSpec::default().seed(1).resources(resources)).await?;
    say(&format!("A simulated Source serves {resources} resources at {}.", source.url()))?;

    say("1. The first harvest takes all of it.")?;
    let (report, _) = harvest(&source, &into).await?;
    expect(
        report.in_sync() && report.run.counters.stored == resources,
        "the first harvest holds everything",
    )?;
    check(&source, &into).await?;

    say(
        "2. The Source changes: 20 resources are updated, 10 created, 5 deleted. The second harvest takes only that.",
    )?;
    source.change(Changes { create: 10, update: 20, delete: 5 });
    let (report, _) = harvest(&source, &into).await?;
    let counters = &report.run.counters;
    expect(
        report.in_sync() && counters.deleted == 5 && counters.stored <= 30,
        "the second harvest is in step again",
    )?;
    check(&source, &into).await?;

    let broken =
        source.expected().next().map(|first| first.uri).ok_or_else(|| anyhow::anyhow!("an empty Source"))?;
    say(&format!(
        "3. One resource changes again, but the Source now serves other bytes than it declares: {broken}"
    ))?;
    let index =
        source.resource_index(&broken).ok_or_else(|| anyhow::anyhow!("{broken} is not of this Source"))?;
    source.change_one(index, ChangeKind::Updated);
    source.set_fault(index, Fault::WrongDigest);
    let (report, _) = harvest(&source, &into).await?;
    let problem =
        report.first_problems.iter().find(|(subject, _)| *subject == Subject::Resource(broken.clone()));
    expect(problem.is_some(), "the broken resource is recorded as a problem")?;
    say("   The version that was verified before is kept; the problem stays visible until it is settled.")?;

    say("4. The Source is repaired. The next harvest takes the problem up by itself.")?;
    source.clear_faults();
    let (report, store) = harvest(&source, &into).await?;
    expect(report.in_sync(), "the repaired resource is in step")?;
    check(&source, &into).await?;

    let uri: ResourceUri = broken.parse()?;
    let file = store.view().map_or(PathBuf::from(&into), |view| view.file(&uri));
    let thresher = as_started();
    let place = quoted(&into);
    say(&format!(
        "Done. Everything lies in {into}: the resources as files (that one is {}), Thresher's own data in .thresher/.\n\
         Look around:\n  {thresher} ls --into {place}\n  {thresher} explain {broken} --into {place}",
        file.display()
    ))?;
    Ok(Exit::Good)
}

async fn harvest(source: &SimulatedSource, into: &str) -> Result<(Report, Store), Failed> {
    let request = Request {
        url: Url::parse(&source.url())?,
        into: into.to_owned(),
        view: None,
        web: WebConfig { per_origin: CONCURRENCY, ..WebConfig::default() },
        options: HarvestOptions::default(),
        labels: BTreeMap::new(),
    };
    let start = Instant::now();
    let (report, store) = sync::harvest(request).await?;
    show::summary(&report, &target::place(&store), start.elapsed());
    Ok((report, store))
}

/// Compares every file with what the Source serves, byte for byte.
async fn check(source: &SimulatedSource, into: &str) -> Result<(), Failed> {
    let store = target::open_store_read_only(&target::parse(into)?).await?;
    let Some(view) = store.view() else { return Ok(()) };
    let mut same = 0;
    for expected in source.expected() {
        let held = tokio::fs::read(view.file(&expected.uri.parse()?)).await?;
        expect(
            source.body(&expected.uri).is_some_and(|body| body == held),
            &format!("{} is the same", expected.uri),
        )?;
        same += 1;
    }
    say(&format!("   Compared byte for byte with the Source: {same} files, all the same."))?;
    Ok(())
}

fn fresh_directory() -> Result<PathBuf, Failed> {
    let directory = std::env::temp_dir().join(format!("thresher-demo-{}", ulid::Ulid::new()));
    fs_err::create_dir(&directory)?;
    Ok(directory)
}

/// This program as its caller named it, so that printed commands can be run as they are, on the PATH or not.
fn as_started() -> String {
    quoted(&std::env::args().next().unwrap_or_else(|| "thresher".to_owned()))
}

/// A word quoted for a shell.
fn quoted(word: &str) -> String {
    let stands = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,=".contains(&byte);
    if !word.is_empty() && word.bytes().all(stands) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn expect(holds: bool, what: &str) -> Result<(), Failed> {
    if holds {
        Ok(())
    } else {
        Err(anyhow::anyhow!("the demo did not go as it should: not so that {what}").into())
    }
}

fn say(text: &str) -> Result<(), Failed> {
    Ok(terminal::text(&format!("\n{text}\n"))?)
}
