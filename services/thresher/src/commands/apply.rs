//! `thresher apply`: create or update the Sources of a file.

mod file;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};

use api::{Source, SourceDone, SourceInBatch, Spec};
use control::{SourceName, SourceSpec};
use model::SourceId;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::cli::ApplyArgs;
use crate::client::OperatorClient;
use crate::client_error::{ClientError, Kind};
use crate::exit::{CommandResult, Exit, usage};
use crate::terminal::{self, note, say};

/// Sources that are applied before their results are printed.
const AT_ONCE: usize = 200;
/// Up to this many Sources are requested one by one.
const FEW: usize = 20;

/// The result of a Source, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Line<'a> {
    source: &'a SourceId,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a SourceName>,
    entry: &'a str,
    done: SourceDone,
    /// The changed fields.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<String, Change>,
    /// Whether nothing was written.
    dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// A field before and after; null where it was not set.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Change {
    from: Value,
    to: Value,
}

/// Runs the command.
pub(crate) async fn run(args: ApplyArgs) -> CommandResult {
    // All of it is read before any of it is applied: a mistake in the last file changes nothing.
    let mut all: Vec<(SourceSpec, Spec)> = Vec::new();
    for path in &args.files {
        let (name, text) = file::text(path)?;
        for wanted in file::read(&name, &text).map_err(usage)? {
            let spec = SourceSpec::from(wanted.clone());
            spec.check().map_err(|error| usage(format!("{name}: {error}")))?;
            if all.iter().any(|(other, _)| other.id == spec.id) {
                return Err(usage(format!("{name}: {} is there twice; remove one of them", spec.entry)));
            }
            if let Some(taken) = spec.name.as_ref()
                && all.iter().any(|(other, _)| other.name.as_ref() == Some(taken))
            {
                return Err(usage(format!("{name}: two Sources are named {taken}; rename one of them")));
            }
            all.push((spec, wanted));
        }
    }
    let client = OperatorClient::of(&args.gateway)?;
    let mut exit = Exit::Good;
    let mut found = existing(&client, &all).await?;
    for some in all.chunks(AT_ONCE) {
        for ((spec, _), outcome) in some.iter().zip(apply(&client, &mut found, some, args.dry_run).await?) {
            let (done, fields, message) = match outcome {
                Ok((done, fields)) => (done, fields, None),
                Err(error) => {
                    // The others are applied all the same; the first error decides the exit status.
                    exit = if exit == Exit::Good { Exit::of(&error) } else { exit };
                    (SourceDone::Refused, BTreeMap::new(), Some(error.to_string()))
                }
            };
            let entry = spec.entry.as_str();
            let name = spec.name.as_ref();
            let line = Line { source: &spec.id, name, entry, done, fields, dry_run: args.dry_run, message };
            match (args.json, &line.message) {
                (true, _) => terminal::json(&line)?,
                (false, None) => say!("{}", line.text())?,
                (false, Some(message)) => note!("{entry}: {message}"),
            }
        }
    }
    Ok(exit)
}

/// The result of a Source: what was done, and the changed fields.
type Outcome = Result<(SourceDone, BTreeMap<String, Change>), ClientError>;

/// The existing Sources of the file, by their IDs. A few are requested one by one; for many, all Sources are
/// requested at once.
async fn existing(
    client: &OperatorClient,
    all: &[(SourceSpec, Spec)],
) -> Result<HashMap<String, Source>, ClientError> {
    let mut found = Vec::new();
    if all.len() > FEW {
        found = client.sources(None).await?;
    } else {
        for (spec, _) in all {
            found.extend(client.source(&spec.id).await?);
        }
    }
    Ok(found.into_iter().map(|source| (source.id.clone(), source)).collect())
}

/// Applies the specs of some Sources.
async fn apply(
    client: &OperatorClient,
    found: &mut HashMap<String, Source>,
    some: &[(SourceSpec, Spec)],
    dry_run: bool,
) -> Result<Vec<Outcome>, ClientError> {
    let mut batch = Vec::new();
    let mut differences = Vec::new();
    for (spec, wanted) in some {
        let before = found.remove(spec.id.as_str());
        let fields = before.as_ref().map(|before| changes(&before.spec, wanted));
        if fields.as_ref().is_none_or(|fields| !fields.is_empty()) {
            // A concurrent change by another client is not overwritten: this request is then refused.
            let revision = Some(before.and_then(|before| before.revision).unwrap_or_default());
            batch.push(SourceInBatch { spec: wanted.clone(), revision });
        }
        differences.push(fields);
    }
    let mut applied = client.apply(&batch, dry_run).await?.into_iter();
    let outcomes = differences.into_iter().map(|fields| match fields {
        Some(fields) if fields.is_empty() => Ok((SourceDone::Unchanged, fields)),
        fields => match applied.next() {
            Some(done) => done.map(|done| (done, fields.unwrap_or_default())),
            None => {
                Err(ClientError::new(Kind::Broken, "the gateway sent no result for it; apply the file again"))
            }
        },
    });
    Ok(outcomes.collect())
}

/// The fields in which two specs differ.
fn changes(before: &Spec, after: &Spec) -> BTreeMap<String, Change> {
    let fields = |wanted: &Spec| match serde_json::to_value(wanted) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let mut before = fields(before);
    let after = fields(after);
    let mut changes = BTreeMap::new();
    for (field, to) in after {
        let from = before.remove(&field).unwrap_or_default();
        if from != to {
            changes.insert(field, Change { from, to });
        }
    }
    changes.extend(before.into_iter().map(|(field, from)| (field, Change { from, to: Value::Null })));
    changes
}

impl Line<'_> {
    fn text(&self) -> String {
        let done = match (self.done, self.dry_run) {
            (SourceDone::Created, false) => "created",
            (SourceDone::Created, true) => "would be created",
            (SourceDone::Changed, false) => "changed",
            (SourceDone::Changed, true) => "would be changed",
            (SourceDone::Unchanged, _) => "unchanged",
            (SourceDone::Refused, _) => "refused",
        };
        let shown = |value: &Value| match value {
            Value::Null => "nothing".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let fields: Vec<String> = self
            .fields
            .iter()
            .map(|(field, change)| format!("{field} from {} to {}", shown(&change.from), shown(&change.to)))
            .collect();
        let fields = if fields.is_empty() { String::new() } else { format!(": {}", fields.join(", ")) };
        let called = self.name.map_or(self.entry, SourceName::as_str);
        format!("{called} ({}) {done}{fields}", self.source)
    }
}
