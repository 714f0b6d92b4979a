//! Moves a Source to another entry URL, and back (docs/adr/0067): the catalog is copied, then one spec replaces the other.
//!
//! Each step may be repeated: a scheduler that dies leaves the task to the next owner of the Source. The spec that is left
//! goes last, since only a Source with a spec has an owner.

use std::sync::Arc;

use catalog::Catalog;
use control::{AskedBy, ControlError, RunSpec, SourceSpec, Spec, Versioned};
use harvest::HarvestError;
use model::{RunId, RunMode};
use resourcesync::Mode;
use store::Key;

use super::task::{Attempt, TaskEnd};
use super::{RunExecutor, client, with_neighbours};
use crate::context::SchedulerContext;
use crate::run_options;

impl RunExecutor<'_> {
    /// One attempt to move the Source to the entry URL of this spec.
    pub(super) fn moving(&self, to: &SourceSpec) -> Attempt {
        let context = self.context.clone();
        let (left, to) = (Arc::clone(&self.source.value), to.clone());
        Box::pin(async move {
            if let Some(why) = copy(&context, &left, &to).await? {
                return Ok(TaskEnd::Refused(why));
            }
            let replaced = async {
                replace_spec(&context, &left, &to).await?;
                submit_run(&context, &to).await
            };
            Ok(replaced.await.map_or_else(TaskEnd::Control, |()| TaskEnd::Done { is_clean: true }))
        })
    }

    /// One attempt to take the move to this Source back: the Source of this spec is harvested again.
    pub(super) fn moving_back(&self, to: &SourceSpec) -> Attempt {
        let context = self.context.clone();
        let (left, to) = (Arc::clone(&self.source.value), to.clone());
        Box::pin(async move {
            let moves = context.store.moves().await?;
            if let Some(later) = moves.iter().find(|later| later.source == left.id) {
                return Ok(TaskEnd::Refused(format!(
                    "it was moved on, from {} to {}; take that back first",
                    later.url, later.to_url
                )));
            }
            let Some(moved) = moves.into_iter().find(|moved| moved.source == to.id && moved.to == left.id)
            else {
                // An earlier attempt may have come to its end.
                return Ok(match context.control.sources().get(&to.id).await {
                    Ok(_) => TaskEnd::Done { is_clean: true },
                    Err(ControlError::Absent { .. }) => {
                        TaskEnd::Refused(format!("{} was not moved from {}", left.entry, to.entry))
                    }
                    Err(error) => TaskEnd::Control(error),
                });
            };
            Box::pin(harvest::take_move_back(&context.store, &moved, context.catalogs.clone())).await?;
            if let Err(error) = replace_spec(&context, &left, &to).await {
                return Ok(TaskEnd::Control(error));
            }
            context.store.forget_move(&moved.source).await?;
            Ok(TaskEnd::Done { is_clean: true })
        })
    }

    /// Removes the spec of the Source that was left. If that fails, it stays, without a name and disabled.
    pub(super) async fn remove_left_spec(&self) {
        let sources = self.context.control.sources();
        let removed = match sources.get(&self.source.id).await {
            Ok(found) => sources.delete(&self.source.id, found.revision).await,
            Err(ControlError::Absent { .. }) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            tracing::warn!(source.id = %self.source.id, %error, "the spec of a Source that was left stays, disabled");
        }
    }
}

/// Makes the copy of the catalog, unless an earlier attempt did. Returns why not, if the operator must act first.
async fn copy(
    context: &SchedulerContext,
    left: &SourceSpec,
    to: &SourceSpec,
) -> Result<Option<String>, HarvestError> {
    let store = &context.store;
    let known = store.moves().await?.into_iter().find(|known| known.source == left.id);
    match &known {
        Some(other) if other.to != to.id && other.is_whole => {
            return Ok(Some(format!("it was moved to {} already; take that back first", other.to_url)));
        }
        Some(other) if other.to != to.id => {
            return Ok(Some(format!("a move to {} was begun; repeat that, and take it back", other.to_url)));
        }
        Some(known) if known.is_whole => return Ok(None),
        Some(_) => {}
        None => {
            let path = Key::Catalog(to.id.clone()).to_string();
            if store.source(&to.id).await?.is_some() || Catalog::exists(&store.object_store(), &path).await? {
                return Ok(Some(format!(
                    "the store has a Source of {} already; nothing can be moved over it",
                    to.entry
                )));
            }
        }
    }
    let Some(marker) = store.source(&left.id).await? else {
        return Ok(Some("the Source was never synced: remove it, and add one with the new URL".to_owned()));
    };
    if !harvest::may_move(store, &left.id, context.catalogs.clone()).await? {
        return Ok(Some("its last run is not finished; run it to its end first".to_owned()));
    }
    if let Some(why) = offers_nothing(context, to).await {
        return Ok(Some(why));
    }
    let now = context.clock.now();
    let moving = harvest::move_source(store, marker, &to.entry, now, context.catalogs.clone());
    Box::pin(moving).await?;
    Ok(None)
}

/// Why nothing can be harvested at the entry URL of a spec: then a move changes nothing.
async fn offers_nothing(context: &SchedulerContext, to: &SourceSpec) -> Option<String> {
    let options = match run_options::options(to, &first_run(context, to)) {
        Ok(options) => with_neighbours(context, to, options),
        Err(error) => return Some(error.to_string()),
    };
    let client = match client(context, &options) {
        Ok(client) => client,
        Err(error) => return Some(format!("{} cannot be asked as it is to be: {error}", to.entry)),
    };
    let reading = documents::read_options(Mode::Tolerant, context.clock.now());
    let search = discovery::discover_source(
        &client,
        &to.entry,
        &reading,
        Vec::new(),
        &options.oai,
        options.landing_pages,
    );
    match Box::pin(search).await {
        Ok((found, _)) if found.sets.is_empty() => Some(format!("{} offers nothing to harvest", to.entry)),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}

/// Lets one spec take the name of another, and its part. The other one stays, without a name and disabled, until the task
/// is finished.
async fn replace_spec(
    context: &SchedulerContext,
    left: &SourceSpec,
    to: &SourceSpec,
) -> Result<(), ControlError> {
    let sources = context.control.sources();
    let Versioned { value, revision } = sources.get(&left.id).await?;
    if value.enabled || value.name.is_some() {
        let spec = Spec { name: None, enabled: false, ..value.spec.clone() };
        sources.update(&SourceSpec::from(spec), revision).await?;
    }
    match sources.create(to).await {
        Err(ControlError::NameTaken { name }) => {
            tracing::warn!(source.id = %to.id, name, "another Source took the name meanwhile; the moved one has none");
            let spec = Spec { name: None, ..to.spec.clone() };
            sources.create(&SourceSpec::from(spec)).await.map(drop)
        }
        // By an earlier attempt.
        Err(ControlError::Exists { .. }) => Ok(()),
        created => created.map(drop),
    }
}

/// Requests the first run of a Source that was moved to.
async fn submit_run(context: &SchedulerContext, to: &SourceSpec) -> Result<(), ControlError> {
    match context.control.runs().submit(first_run(context, to)).await {
        Ok(_) | Err(ControlError::Exists { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn first_run(context: &SchedulerContext, to: &SourceSpec) -> RunSpec {
    RunSpec {
        id: RunId::fresh(),
        source: to.id.clone(),
        mode: RunMode::Auto,
        asked_by: AskedBy::Operator,
        asked_at: context.clock.now(),
        allow_deletes: false,
        repair: false,
        task: None,
    }
}
