//! `thresher source set`: change what describes a Source to people.

use api::Spec;

use crate::cli::{DescriptionArgs, DescriptionField, SourceSetArgs};
use crate::client::{OperatorClient, called, no_source};
use crate::exit::{CommandResult, Exit, usage};
use crate::terminal::say;

/// Runs the command.
pub(super) async fn run(args: SourceSetArgs) -> CommandResult {
    if !changes_anything(&args) {
        return Err(usage(
            "nothing to change; pass --name, --title, --label, --notes, --source-contact, --unlabel or --unset",
        ));
    }
    let client = OperatorClient::of(&args.gateway)?;
    let id = client.source_id(&args.source).await?;
    let Some(found) = client.source(&id).await? else { return Err(no_source(&id)) };
    let read = found.revision.unwrap_or_default();
    let mut spec = found.spec.clone();
    for field in &args.unset {
        unset(&mut spec, *field);
    }
    for key in &args.unlabel {
        spec.labels.remove(key);
    }
    describe(&mut spec, &args.description);
    if spec == found.spec {
        say!("{} unchanged", called(spec.name.as_ref(), id.as_str()))?;
        return Ok(Exit::Good);
    }
    let changed = client.change(&id, &spec, read).await?;
    say!("{} changed", called(changed.spec.name.as_ref(), id.as_str()))?;
    Ok(Exit::Good)
}

fn changes_anything(args: &SourceSetArgs) -> bool {
    let DescriptionArgs { name, title, labels, notes, source_contact } = &args.description;
    let texts = [title, notes, source_contact];
    name.is_some()
        || texts.iter().any(|text| text.is_some())
        || !(labels.is_empty() && args.unlabel.is_empty() && args.unset.is_empty())
}

/// Sets what the options state, and keeps the rest.
pub(super) fn describe(spec: &mut Spec, args: &DescriptionArgs) {
    let DescriptionArgs { name, title, labels, notes, source_contact } = args.clone();
    spec.name = name.or(spec.name.take());
    spec.title = title.or(spec.title.take());
    spec.notes = notes.or(spec.notes.take());
    spec.source_contact = source_contact.or(spec.source_contact.take());
    spec.labels.extend(labels);
}

fn unset(spec: &mut Spec, field: DescriptionField) {
    match field {
        DescriptionField::Name => spec.name = None,
        DescriptionField::Title => spec.title = None,
        DescriptionField::Labels => spec.labels.clear(),
        DescriptionField::Notes => spec.notes = None,
        DescriptionField::SourceContact => spec.source_contact = None,
    }
}
