//! `thresher source`: add, list, show or remove the Sources of a fleet.

use std::fmt::Write as _;

use api::{Source, Submit, Subscription, Wanted};
use comfy_table::{Table, presets};
use control::{PollBounds, Schedule, SourceSpec, Times};
use model::{SourceId, displayed};
use url::Url;

use crate::ask::{Asked, Kind};
use crate::cli::{SourceAddArgs, SourceCommand, WantedArgs};
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::http;
use crate::terminal::{self, note, say};

/// Runs the command.
pub(crate) async fn run(command: SourceCommand) -> CommandResult {
    match command {
        SourceCommand::Add(args) => add(*args).await,
        SourceCommand::Ls { fleet, json } => {
            let sources = Asked::of(&fleet).await?.sources().await?;
            if json {
                for source in sources {
                    terminal::json(&SourceSpec::from(source.wanted))?;
                }
                return Ok(Exit::Good);
            }
            let mut table = Table::new();
            table.load_style(presets::NOTHING);
            table.set_header(["source", "when", "limit", "entry"]);
            for Source { id, wanted, .. } in &sources {
                let limit = format!("{} at a time", wanted.concurrency);
                table.add_row([
                    id.clone(),
                    when(wanted),
                    limit,
                    displayed(wanted.entry.as_str()).into_owned(),
                ]);
            }
            terminal::text(&format!("{table}\n"))?;
            Ok(Exit::Good)
        }
        SourceCommand::Show { source, fleet, json } => {
            let id = source_id(&source)?;
            let asked = Asked::of(&fleet).await?;
            let found = asked.source(&id).await?;
            let Some(Source { wanted, .. }) = found else { return Err(no_source(&id)) };
            let subscriptions = asked.subscriptions(&id).await?;
            if json {
                let mut shown = serde_json::to_value(SourceSpec::from(wanted))?;
                if !subscriptions.is_empty() {
                    shown["subscriptions"] = serde_json::to_value(subscriptions)?;
                }
                terminal::json(&shown)?;
            } else {
                let told: String = subscriptions.iter().map(told).collect();
                terminal::text(&(serde_saphyr::to_string(&wanted)? + &told))?;
            }
            Ok(Exit::Good)
        }
        SourceCommand::Rm { source, fleet } => {
            let id = source_id(&source)?;
            Asked::of(&fleet).await?.delete(&id).await?;
            say!("{id} is not harvested any more; what is held of it stays")?;
            Ok(Exit::Good)
        }
    }
}

/// The state of a subscription, as comments behind the YAML that `thresher apply` reads.
fn told(subscription: &Subscription) -> String {
    let Subscription { topic, hub, standing, until, trouble, queued, dropped, missed, delivered_at, .. } =
        subscription;
    let hub = hub.as_deref().unwrap_or("none is named");
    let until = until.map_or(String::new(), |until| format!(" until {until}, if it is not renewed"));
    let last = delivered_at.map_or("never".to_owned(), |at| at.to_string());
    let mut text = format!("# notifications: {topic}\n#   hub: {hub}\n#   state: {standing}{until}\n");
    if let Some(trouble) = trouble {
        // A hub's message may have several lines.
        let trouble = trouble.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "#   trouble: {trouble}");
    }
    let _ = writeln!(
        text,
        "#   deliveries: {queued} taken, {dropped} dropped, the last one taken {last}; changes missed: {missed}"
    );
    text
}

/// There is no Source of that name.
pub(super) fn no_source(id: &SourceId) -> Failed {
    usage(format!("there is no source {id}; `thresher source ls` shows those that there are"))
}

async fn add(args: SourceAddArgs) -> CommandResult {
    http::without_secret(&args.url)?;
    let spec = spec(&args)?;
    let (id, wanted) = (spec.id.clone(), Wanted::from(&spec));
    let asked = Asked::of(&args.fleet).await?;
    match asked.create(&wanted, false).await {
        Ok(source) if runs_when_asked(&wanted) && !args.no_run => {
            let run = asked.submit(&spec.id, &Submit { mode: wanted.mode, ..Submit::default() }).await;
            let run = run.inspect_err(|_| note!("{id} is added, but its first run is not asked for"))?.run;
            say!("{id} is added; its first run, {run}, is asked for: `thresher run watch {id}` follows it")?;
            say!("{}", next(&source))?;
        }
        Ok(source) => say!("{id} is added; {}", next(&source))?,
        Err(error) if error.kind == Kind::Conflict && args.replace => {
            let read = asked.source(&id).await?.and_then(|source| source.revision);
            let Some(read) = read else { return Err(error.into()) };
            let source = asked.change(&wanted, read, false).await?;
            say!("{id} is changed; {}", next(&source))?;
        }
        Err(error) if error.kind == Kind::Conflict => {
            return Err(usage(format!("there is a source {id} already; give --replace to change it")));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(Exit::Good)
}

/// Whether a Source runs on an operator's request only.
fn runs_when_asked(wanted: &Wanted) -> bool {
    wanted.enabled && wanted.schedule.is_none() && wanted.continuous.is_none()
}

/// The next run of a Source.
fn next(source: &Source) -> String {
    let Source { id, wanted, next_due, .. } = source;
    match next_due {
        _ if !wanted.enabled => {
            format!("it is disabled, and runs only when asked: `thresher run submit {id}`")
        }
        _ if wanted.continuous.is_some() => {
            "it is followed: it is looked at again and again from now on".to_owned()
        }
        Some(due) => format!("it runs next at {}", due.strftime("%Y-%m-%dT%H:%M:%SZ")),
        None => format!("it has no schedule, and runs when asked: `thresher run submit {id}`"),
    }
}

fn spec(args: &SourceAddArgs) -> Result<SourceSpec, Failed> {
    let schedule = match (args.every, &args.cron) {
        (Some(every), _) => Some(Schedule::every(every.as_secs().unsigned_abs())),
        (None, Some(expression)) => Some(Schedule::cron(expression.clone())),
        (None, None) => None,
    };
    Ok(SourceSpec {
        enabled: !args.disabled,
        schedule,
        continuous: args.follow.then(PollBounds::default),
        concurrency: args.concurrency,
        requests_per_second: args.max_rate,
        robots: args.robots,
        contact: args.contact.clone(),
        credential: args.credential.clone(),
        allow_networks: args.allow_network.clone(),
        push: args.push,
        notify: args.notify.clone(),
        inbox: args.inbox.clone(),
        ..plain(&args.url, &args.wanted)
    })
}

/// A Source with this spec and no special settings.
pub(super) fn plain(url: &Url, wanted: &WantedArgs) -> SourceSpec {
    let scope = &wanted.scope;
    let text = |regex: &Option<regex::Regex>| regex.as_ref().map(|regex| regex.as_str().to_owned());
    SourceSpec {
        mode: wanted.mode,
        prefer: wanted.prefer,
        absent: scope.absent,
        max_deletes_percent: scope.max_deletes,
        keep_versions: wanted.keep_versions,
        max_body_bytes: wanted.max_size,
        include: text(&scope.include),
        exclude: text(&scope.exclude),
        origins: scope.origins,
        strict: scope.strict,
        accept_html: scope.accept_html,
        ..SourceSpec::new(url.clone())
    }
}

/// A Source's name, or the URL it was added with.
pub(crate) fn source_id(text: &str) -> Result<SourceId, Failed> {
    if text.contains("://") {
        let url = text.parse().map_err(|error| usage(format!("{text} is no URL: {error}")))?;
        return Ok(SourceId::of_entry(&url));
    }
    text.parse().map_err(usage)
}

fn when(source: &Wanted) -> String {
    let mut words = Vec::new();
    if !source.enabled {
        words.push("disabled".to_owned());
    }
    match source.schedule.as_ref().map(|schedule| &schedule.times) {
        Some(Times::EverySeconds(seconds)) => words.push(format!("every {seconds} s")),
        Some(Times::Cron(expression)) => words.push(format!("cron {expression}")),
        None => {}
    }
    if let Some(bounds) = source.continuous {
        words.push(format!("followed, every {} to {} s", bounds.least_seconds, bounds.most_seconds));
    }
    if words.is_empty() { "when asked".to_owned() } else { words.join(", ") }
}
