//! `thresher apply`: the Sources of a file, as they are wanted.

mod file;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use api::Wanted;
use control::SourceSpec;
use model::SourceId;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::ask::{Asked, NotDone};
use crate::cli::ApplyArgs;
use crate::exit::{CommandResult, Exit, usage};
use crate::terminal::{self, note, say};

/// What became of a Source, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Line<'a> {
    source: &'a SourceId,
    entry: &'a str,
    done: Done,
    /// What differs, by field.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<String, Change>,
    /// Whether nothing was written.
    dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// What became of a Source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Done {
    Created,
    Changed,
    Unchanged,
    Refused,
}

/// What a field was, and is to be; null where nothing was said.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Change {
    from: Value,
    to: Value,
}

/// Runs the command.
pub(crate) async fn run(args: ApplyArgs) -> CommandResult {
    // All of it is read before any of it is done: a slip in the last file changes nothing.
    let mut all: Vec<(SourceSpec, Wanted)> = Vec::new();
    for path in &args.files {
        let (name, text) = file::text(path)?;
        for wanted in file::read(&name, &text).map_err(usage)? {
            let spec = SourceSpec::from(wanted.clone());
            spec.check().map_err(|error| usage(format!("{name}: {error}")))?;
            if all.iter().any(|(other, _)| other.id == spec.id) {
                return Err(usage(format!("{name}: {} is wanted twice; say it once", spec.entry)));
            }
            all.push((spec, wanted));
        }
    }
    let asked = Asked::of(&args.fleet).await?;
    let mut exit = Exit::Good;
    for (spec, wanted) in &all {
        let (done, fields, why) = match apply(&asked, &spec.id, wanted, args.dry_run).await {
            Ok((done, fields)) => (done, fields, None),
            Err(error) => {
                // The others are done all the same; the first that is not says how this ends.
                exit = if exit == Exit::Good { error.exit() } else { exit };
                (Done::Refused, BTreeMap::new(), Some(error.to_string()))
            }
        };
        let entry = spec.entry.as_str();
        let line = Line { source: &spec.id, entry, done, fields, dry_run: args.dry_run, why };
        match (args.json, &line.why) {
            (true, _) => terminal::json(&line)?,
            (false, None) => say!("{}", line.text())?,
            (false, Some(why)) => note!("{entry}: {why}"),
        }
    }
    Ok(exit)
}

/// Brings one Source to what is wanted of it.
async fn apply(
    asked: &Asked,
    id: &SourceId,
    wanted: &Wanted,
    dry_run: bool,
) -> Result<(Done, BTreeMap<String, Change>), NotDone> {
    let Some(found) = asked.source(id).await? else {
        asked.create(wanted, dry_run).await?;
        return Ok((Done::Created, BTreeMap::new()));
    };
    let fields = changes(&found.wanted, wanted);
    if fields.is_empty() {
        return Ok((Done::Unchanged, fields));
    }
    // Whoever changes it at this moment is not overwritten: this is refused then.
    asked.change(wanted, found.revision.unwrap_or_default(), dry_run).await?;
    Ok((Done::Changed, fields))
}

/// The fields in which two Sources differ.
fn changes(before: &Wanted, after: &Wanted) -> BTreeMap<String, Change> {
    let fields = |wanted: &Wanted| match serde_json::to_value(wanted) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let (mut before, after) = (fields(before), fields(after));
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
            (Done::Created, false) => "created",
            (Done::Created, true) => "would be created",
            (Done::Changed, false) => "changed",
            (Done::Changed, true) => "would be changed",
            (Done::Unchanged, _) => "unchanged",
            (Done::Refused, _) => "refused",
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
        format!("{} ({}) {done}{fields}", self.entry, self.source)
    }
}
