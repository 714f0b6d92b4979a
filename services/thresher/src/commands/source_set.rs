//! `thresher source set`: change what describes a Source to people, which of its links are followed, in which encoding its
//! records are read, and whether it is published.

use api::Spec;
use model::Publish;

use crate::cli::{DescriptionArgs, FollowArgs, PublicationArgs, SourceSetArgs, UnsetField};
use crate::client::{OperatorClient, called, no_source};
use crate::exit::{CommandResult, Exit, usage};
use crate::terminal::say;

/// Runs the command.
pub(super) async fn run(args: SourceSetArgs) -> CommandResult {
    if !changes_anything(&args) {
        return Err(usage(
            "nothing to change; pass --name, --title, --label, --notes, --source-contact, --follow-links, --encoding, \
             --publish, --publish-archive, --publish-set, --no-publish, --unlabel or --unset",
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
    follow(&mut spec, &args.follow);
    spec.encoding = args.encoding.or(spec.encoding);
    if args.no_publish {
        (spec.publish, spec.publish_networks) = (Publish::Off, Vec::new());
    }
    publication(&mut spec, &args.publication);
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
    let PublicationArgs { publish, publish_networks, publish_archive, publish_sets } = &args.publication;
    name.is_some()
        || args.no_publish
        || publish.is_some()
        || publish_archive.is_some()
        || !publish_sets.is_empty()
        || args.encoding.is_some()
        || !publish_networks.is_empty()
        || !args.follow.follow_links.is_empty()
        || !args.follow.follow_rule.is_empty()
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

/// Sets whether what is stored is published, and for whom: these belong together. And how long lists of the past stay,
/// and which sets it has: these hold also while it is not published.
pub(super) fn publication(spec: &mut Spec, args: &PublicationArgs) {
    let PublicationArgs { publish, publish_networks, publish_archive, publish_sets } = args.clone();
    let publish = publish.or((!publish_networks.is_empty()).then_some(Publish::Networks));
    if let Some(publish) = publish {
        (spec.publish, spec.publish_networks) = (publish, publish_networks);
    }
    spec.publish_archive = publish_archive.or(spec.publish_archive);
    if !publish_sets.is_empty() {
        spec.publish_sets = publish_sets;
    }
}

/// Sets which links are followed, with their types, their limit and the rules: these belong together.
fn follow(spec: &mut Spec, args: &FollowArgs) {
    let FollowArgs { follow_links, follow_type, follow_max, follow_rule } = args.clone();
    if !follow_links.is_empty() || !follow_rule.is_empty() {
        (spec.follow_links, spec.follow_types, spec.follow_max) = (follow_links, follow_type, follow_max);
        spec.follow_rules = follow_rule;
    }
}

fn unset(spec: &mut Spec, field: UnsetField) {
    match field {
        UnsetField::Name => spec.name = None,
        UnsetField::Title => spec.title = None,
        UnsetField::Labels => spec.labels.clear(),
        UnsetField::Notes => spec.notes = None,
        UnsetField::SourceContact => spec.source_contact = None,
        UnsetField::Encoding => spec.encoding = None,
        UnsetField::PublishArchive => spec.publish_archive = None,
        UnsetField::PublishSets => spec.publish_sets.clear(),
        UnsetField::FollowLinks => {
            (spec.follow_links, spec.follow_types, spec.follow_max) = Default::default();
            spec.follow_rules.clear();
        }
    }
}
