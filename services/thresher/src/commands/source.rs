//! `thresher source`: add, list, show, change, pause or remove the Sources of a fleet.

use std::fmt::Write as _;

use api::{RunRequest, Source, Spec, Subscription};
use control::{PollInterval, Schedule, SourceName, Times};
use model::{SourceId, displayed};
use url::Url;

use crate::cli::{ListArgs, SourceAddArgs, SourceCommand, SpecArgs};
use crate::client::{OperatorClient, called, no_source};
use crate::client_error::Kind;
use crate::commands::source_move;
use crate::commands::source_set;
use crate::commands::source_switch::{self, Switch};
use crate::exit::{CommandResult, Exit, Failed, usage};
use crate::http;
use crate::terminal::{self, note, say};

/// Runs the command.
pub(crate) async fn run(command: SourceCommand) -> CommandResult {
    match command {
        SourceCommand::Add(args) => add(*args).await,
        SourceCommand::Set(args) => source_set::run(*args).await,
        SourceCommand::Move(args) => Box::pin(source_move::run(*args)).await,
        SourceCommand::Pause(args) => source_switch::run(args, Switch::Pause).await,
        SourceCommand::Resume(args) => source_switch::run(args, Switch::Resume).await,
        SourceCommand::Ls(ListArgs { gateway, matching, json }) => {
            let sources = OperatorClient::of(&gateway)?.sources(matching.as_ref()).await?;
            if json {
                for source in sources {
                    terminal::json(&shown(&source)?)?;
                }
                return Ok(Exit::Good);
            }
            let header = ["name", "source", "title", "schedule", "concurrency", "labels", "entry URL"];
            let mut table = terminal::table(header);
            for source in &sources {
                let Source { id, spec, .. } = source;
                let title = displayed(source.title().unwrap_or("-"));
                let entry = displayed(spec.entry.as_str());
                let name = spec.name.as_ref().map_or("-", SourceName::as_str);
                let concurrency = spec.concurrency.to_string();
                let (schedule, labels) = (schedule(spec), labels(spec));
                table.add_row([name, id.as_str(), &*title, &schedule, &concurrency, &labels, &*entry]);
            }
            terminal::text(&format!("{table}\n"))?;
            Ok(Exit::Good)
        }
        SourceCommand::Show { source, gateway, json } => {
            let client = OperatorClient::of(&gateway)?;
            let id = client.source_id(&source).await?;
            let found = client.source(&id).await?;
            let Some(source) = found else { return Err(no_source(&id)) };
            let subscriptions = client.subscriptions(&id).await?;
            if json {
                let mut shown = shown(&source)?;
                if !subscriptions.is_empty() {
                    shown["subscriptions"] = serde_json::to_value(subscriptions)?;
                }
                terminal::json(&shown)?;
            } else {
                let proposed = source.proposed_title.as_ref().filter(|_| source.spec.title.is_none());
                let proposed = proposed
                    .map_or(String::new(), |title| format!("# proposed title: {}\n", displayed(title)));
                let spec = serde_saphyr::to_string(&source.spec)?;
                let mut text = format!("# source ID: {id}\n{proposed}{spec}");
                text.extend(subscriptions.iter().map(text_of));
                terminal::text(&text)?;
            }
            Ok(Exit::Good)
        }
        SourceCommand::Rm { source, gateway } => {
            let client = OperatorClient::of(&gateway)?;
            let id = client.source_id(&source).await?;
            client.remove(&id).await?;
            say!("{id} removed; its stored resources stay")?;
            Ok(Exit::Good)
        }
    }
}

/// A Source as JSON: its ID, the fields of its spec, and the proposed title.
fn shown(source: &Source) -> serde_json::Result<serde_json::Value> {
    let mut shown = serde_json::to_value(&source.spec)?;
    shown["id"] = source.id.as_str().into();
    if let Some(title) = &source.proposed_title {
        shown["proposed_title"] = title.as_str().into();
    }
    Ok(shown)
}

/// The state of a subscription, as comments behind the YAML that `thresher apply` reads.
fn text_of(subscription: &Subscription) -> String {
    let Subscription {
        topic, hub, state, until, last_error, accepted, dropped, missed, delivered_at, ..
    } = subscription;
    let hub = hub.as_deref().unwrap_or("none");
    let until = until.map_or(String::new(), |until| format!(" until {until}, unless renewed"));
    let last = delivered_at.map_or("never".to_owned(), |at| at.to_string());
    let mut text = format!("# notifications: {topic}\n#   hub: {hub}\n#   state: {state}{until}\n");
    if let Some(error) = last_error {
        // A hub's message may have several lines.
        let error = error.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "#   last error: {error}");
    }
    let _ = writeln!(
        text,
        "#   deliveries: {accepted} accepted, {dropped} dropped, last accepted {last}; changes missed: {missed}"
    );
    text
}

async fn add(args: SourceAddArgs) -> CommandResult {
    http::without_secret(&args.url)?;
    let wanted = spec(&args)?;
    let id = SourceId::of_entry(&wanted.entry);
    let client = OperatorClient::of(&args.gateway)?;
    let called = called(wanted.name.as_ref(), id.as_str());
    match client.create(&wanted).await {
        Ok(source) if runs_on_request(&wanted) && !args.no_run => {
            let run = client.submit(&id, &RunRequest { mode: wanted.mode, ..RunRequest::default() }).await;
            let run =
                run.inspect_err(|_| note!("{called} is added, but its first run could not be requested"))?;
            say!(
                "{called} added, first run {} requested; watch it with `thresher run watch {called}`",
                run.run
            )?;
            say!("{}", next(&source))?;
        }
        Ok(source) => say!("{called} added, {}", first(&source))?,
        Err(error) if error.kind == Kind::Conflict && args.replace => {
            let read = client.source(&id).await?.and_then(|source| source.revision);
            let Some(read) = read else { return Err(error.into()) };
            let source = client.change(&id, &wanted, read).await?;
            say!("{called} changed; {}", next(&source))?;
        }
        // Or else another Source has the name.
        Err(error) if error.kind == Kind::Conflict && client.source(&id).await?.is_some() => {
            return Err(usage(format!("a Source {id} exists already; pass --replace to change it")));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(Exit::Good)
}

/// Whether a Source runs on an operator's request only.
fn runs_on_request(spec: &Spec) -> bool {
    spec.enabled && spec.schedule.is_none() && spec.follow.is_none()
}

/// The first run of a new Source.
fn first(source: &Source) -> String {
    let Source { spec, next_due, .. } = source;
    match next_due {
        _ if !spec.enabled || runs_on_request(spec) => format!("no run requested; {}", next(source)),
        Some(due) if spec.follow.is_none() => format!("first run {}", time(due)),
        _ => "first run now".to_owned(),
    }
}

/// The next run of a Source.
fn next(source: &Source) -> String {
    let Source { id, spec, next_due, .. } = source;
    let id = called(spec.name.as_ref(), id);
    match next_due {
        _ if !spec.enabled => format!("disabled: start a run with `thresher run submit {id}`"),
        _ if spec.follow.is_some() => "its changes are polled".to_owned(),
        Some(due) => format!("next run {}", time(due)),
        None => format!("no schedule: start runs with `thresher run submit {id}`"),
    }
}

fn time(at: &jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn spec(args: &SourceAddArgs) -> Result<Spec, Failed> {
    let schedule = match (args.every, &args.cron) {
        (Some(every), _) => Some(Schedule::every(every.as_secs())),
        (None, Some(expression)) => Some(Schedule::cron(expression.clone())),
        (None, None) => None,
    };
    let mut plain = plain(&args.url, &args.spec);
    source_set::describe(&mut plain, &args.description);
    source_set::publication(&mut plain, &args.publication);
    Ok(Spec {
        enabled: !args.disabled,
        schedule,
        follow: args.follow.then(PollInterval::default),
        concurrency: args.concurrency,
        requests_per_second: args.max_rate,
        robots: args.robots,
        contact: args.contact.clone(),
        credential: args.credential.clone(),
        allow_networks: args.allow_network.clone(),
        push: args.push,
        notify: args.notify.clone(),
        inbox: args.inbox.clone(),
        ..plain
    })
}

/// The spec of a Source without special settings.
pub(super) fn plain(url: &Url, wanted: &SpecArgs) -> Spec {
    let scope = &wanted.scope;
    let text = |regex: &Option<regex::Regex>| regex.as_ref().map(|regex| regex.as_str().to_owned());
    Spec {
        mode: wanted.mode,
        prefer: wanted.prefer,
        absent: scope.absent,
        max_deletes_percent: scope.max_deletes,
        keep_versions: wanted.keep_versions,
        max_body_bytes: wanted.max_size,
        metadata_prefix: wanted.oai.metadata_prefix.clone(),
        sets: wanted.oai.sets.clone(),
        encoding: wanted.oai.encoding,
        landing_pages: wanted.landing_pages,
        include: text(&scope.include),
        exclude: text(&scope.exclude),
        origins: scope.origins,
        mirrors: scope.mirrors,
        patches: scope.patches,
        only: scope.only.clone(),
        follow_links: scope.follow.follow_links.clone(),
        follow_types: scope.follow.follow_type.clone(),
        follow_max: scope.follow.follow_max,
        follow_rules: scope.follow.follow_rule.clone(),
        strict: scope.strict,
        accept_html: scope.accept_html,
        ..Spec::new(url.clone())
    }
}

/// The labels of a Source, such as `country=jp tier=1`.
fn labels(source: &Spec) -> String {
    let labels: Vec<String> = source.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    labels.join(" ")
}

fn schedule(source: &Spec) -> String {
    let mut parts = Vec::new();
    if !source.enabled {
        parts.push("disabled".to_owned());
    }
    match source.schedule.as_ref().map(|schedule| &schedule.times) {
        Some(Times::EverySeconds(seconds)) => parts.push(format!("every {seconds} s")),
        Some(Times::Cron(expression)) => parts.push(format!("cron {expression}")),
        None => {}
    }
    if let Some(bounds) = source.follow {
        parts.push(format!("follow, {} to {} s", bounds.min_seconds, bounds.max_seconds));
    }
    if parts.is_empty() { "manual".to_owned() } else { parts.join(", ") }
}
