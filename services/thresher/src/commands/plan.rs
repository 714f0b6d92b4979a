//! `thresher plan`: estimate the requests, bytes and time of each strategy.

use std::io;
use std::num::NonZeroU16;
use std::time::Duration;

use api::{Plan, PlanEstimate, PlanStrategy};
use catalog::CatalogReader;
use discovery::{Estimate, StrategyEstimate};
use indicatif::{HumanBytes, HumanDuration};
use jiff::Timestamp;
use model::{SetId, SourceId, counted, displayed};
use planning::{Cost, HarvestOptions};
use store::StoreTarget;

use crate::cli::PlanArgs;
use crate::client::{self, OperatorClient};
use crate::commands::{source, sync};
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::terminal::{self, note, say};
use crate::{crawl_delays, http, target};

/// How long one request to a gateway waits for a plan, in seconds.
const LOOK: &str = "20";

/// Runs the command.
pub(crate) async fn run(args: PlanArgs) -> CommandResult {
    http::without_secret(&args.url)?;
    let into = match &args.into {
        Some(into) => into.clone(),
        None => match client::named(&args.gateway)? {
            Some(client) => return from_gateway(&client, &args).await,
            None => target::default_directory(&args.url)?,
        },
    };
    let stored = stored(&into, &SourceId::of_entry(&args.url)).await?;
    let client = http::client(args.requests.web(&args.http, &args.url)?)?;
    let options =
        HarvestOptions { jobs_per_origin: args.requests.concurrency, ..sync::wanted(args.spec, &args.url) };
    let lookups = stored.as_deref();
    let estimate = discovery::estimate(&client, &args.url, lookups, &options, Timestamp::now());
    let asks_pages = options.follow.asks_landing_pages();
    print(&crawl_delays::print_during(&client, estimate).await?, asks_pages, args.json)
}

fn print(estimate: &Estimate, asks_pages: bool, json: bool) -> CommandResult {
    if json {
        terminal::json(estimate)?
    } else {
        show(estimate, asks_pages)?
    }
    Ok(if estimate.unread.is_empty() { Exit::Good } else { Exit::Problems })
}

/// The same through a fleet, whose scheduler reads the documents.
async fn from_gateway(client: &OperatorClient, args: &PlanArgs) -> CommandResult {
    let mut spec = source::plain(&args.url, &args.spec);
    args.http.wanted(&mut spec);
    let concurrency = NonZeroU16::try_from(args.requests.concurrency);
    spec.concurrency = concurrency.map_err(|_| usage("--concurrency is 1 to 65535"))?;
    let mut plan: Plan = client.post(&["sources", "plan"], &[], &spec, None).await?;
    while !plan.is_over() {
        plan = client.get(&["plans", &plan.id], &[("wait_seconds", LOOK.to_owned())]).await?;
    }
    match plan.estimate {
        Some(estimate) => {
            let asks_pages = args.spec.scope.follow.follow_links.iter().any(|rel| rel.asks_landing_pages());
            print(&read(estimate)?, asks_pages, args.json)
        }
        None => Err(Failed { exit: Exit::Failed, error: anyhow::anyhow!(plan.message.unwrap_or_default()) }),
    }
}

fn read(estimate: PlanEstimate) -> Result<Estimate, Failed> {
    let left_out = [
        (estimate.strategies_omitted, "more strategy is", "more strategies are"),
        (estimate.unread_omitted, "more unread document is", "more unread documents are"),
    ];
    for (n, one, many) in left_out.into_iter().filter(|(n, _, _)| *n > 0) {
        note!("{} left out", counted(n, one, many));
    }
    let way = |way: PlanStrategy| -> Result<StrategyEstimate, Failed> {
        Ok(StrategyEstimate {
            set: SetId::new(way.set),
            capability: way.capability.parse()?,
            documents: way.documents,
            listed: way.listed,
            stored: way.stored,
            cost: Cost { requests: way.requests, bytes: way.bytes },
            time: way.time_ms.map(Duration::from_millis),
            chosen: way.chosen,
        })
    };
    Ok(Estimate {
        strategies: estimate.strategies.into_iter().map(way).collect::<Result<_, Failed>>()?,
        latency: Duration::from_millis(estimate.latency_ms),
        requests: estimate.requests,
        unread: estimate.unread.into_iter().map(|unread| (unread.uri, unread.message)).collect(),
        formats: estimate.formats,
    })
}

/// The catalog of the Source, if there is one.
async fn stored(into: &str, source: &SourceId) -> Result<Option<CatalogReader>, Failed> {
    let target = target::parse(into)?;
    if let StoreTarget::Directory(directory) = &target
        && !directory.join(".thresher").is_dir()
    {
        return Ok(None);
    }
    let store = target::open_store_read_only(&target).await?;
    if !store.sources().await?.iter().any(|note| note.source == *source) {
        return Ok(None);
    }
    Ok(Some(target::read_catalog(&store, source).await?))
}

fn show(estimate: &Estimate, asks_pages: bool) -> io::Result<()> {
    let header = ["", "strategy", "listed", "stored", "requests", "bytes", "time", "set"];
    let mut table = terminal::table(header);
    for way in &estimate.strategies {
        table.add_row([
            if way.chosen { "*" } else { "" }.to_owned(),
            displayed(&way.capability.to_string()).into_owned(),
            way.listed.to_string(),
            way.stored.to_string(),
            way.cost.requests.to_string(),
            way.cost.bytes.map_or("not declared".to_owned(), |bytes| HumanBytes(bytes).to_string()),
            time(way),
            displayed(way.set.as_str()).into_owned(),
        ]);
    }
    terminal::text(&format!("{table}\n"))?;
    say!(
        "* is what sync would do. Time: {} per request (measured now), and 10 MB per second (assumed). \
         Discovery took {}",
        HumanDuration(estimate.latency.max(Duration::from_millis(1))),
        counted(estimate.requests, "request", "requests")
    )?;
    if !estimate.formats.is_empty() {
        let formats = estimate.formats.join(", ");
        say!("formats   {formats}; --follow-links content syncs the files that records name")?;
        if asks_pages {
            let listed: u64 = estimate.strategies.iter().filter(|way| way.chosen).map(|way| way.listed).sum();
            say!(
                "pages     at most {} more, one for each new or changed record that names no file, and one for each \
                 link set of its landing page",
                counted(listed, "request", "requests")
            )?;
        } else {
            say!(
                "          --follow-links landing-page asks the landing pages of records that name none, too"
            )?;
        }
    }
    for (uri, why) in &estimate.unread {
        say!("problem   {uri}: {why}")?;
    }
    Ok(())
}

fn time(way: &StrategyEstimate) -> String {
    way.time.map_or("unknown".to_owned(), |time| HumanDuration(time).to_string())
}
