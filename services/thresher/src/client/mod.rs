//! The client of the operator's commands: it asks a gateway by HTTP. No command of an operator talks to the bus.

mod batch;
mod endpoint;
mod events;
mod gateway;
mod http;
pub(crate) mod local;
mod profiles;
mod sources;

use api::{BackfillRequest, MoveRequest, Page, Run, RunRequest, Source, Spec, Subscription};
use control::Selector;
use futures::TryStreamExt as _;
use model::{RunId, SourceId};
use url::Url;

pub(crate) use self::endpoint::{ReadFrom, named, read_from};
pub(crate) use self::events::Events;
pub(crate) use self::gateway::{GatewayArgs, LocationArgs};
pub(crate) use self::http::OperatorClient;
pub(crate) use self::sources::{SourceRef, called, no_source};
use crate::client_error::{ClientError, Kind};
use crate::exit::Failed;
use crate::terminal::note;

impl OperatorClient {
    /// The client of the named gateway. By default, that of `thresher serve` on this machine.
    pub(crate) fn of(args: &GatewayArgs) -> Result<Self, Failed> {
        Self::new(endpoint::endpoint(args)?)
    }

    /// All Sources, or those whose labels match, in the order of their IDs.
    pub(crate) async fn sources(&self, matching: Option<&Selector>) -> Result<Vec<Source>, ClientError> {
        self.items(&["sources"], &query_of(matching)).try_collect().await
    }

    /// A Source, if there is one of this name.
    pub(crate) async fn source(&self, id: &SourceId) -> Result<Option<Source>, ClientError> {
        match self.get(&["sources", id.as_str()], &[]).await {
            Err(error) if error.kind == Kind::Absent => Ok(None),
            found => found.map(Some),
        }
    }

    /// The subscriptions of a Source.
    pub(crate) async fn subscriptions(&self, id: &SourceId) -> Result<Vec<Subscription>, ClientError> {
        self.all(&["sources", id.as_str(), "subscriptions"]).await
    }

    /// Adds a Source.
    pub(crate) async fn create(&self, wanted: &Spec) -> Result<Source, ClientError> {
        self.post(&["sources"], &[], wanted, None).await
    }

    /// Changes a Source that was read with this revision.
    pub(crate) async fn change(
        &self,
        id: &SourceId,
        wanted: &Spec,
        read: u64,
    ) -> Result<Source, ClientError> {
        self.put(&["sources", id.as_str()], wanted, read).await
    }

    /// Removes a Source from the fleet.
    pub(crate) async fn remove(&self, id: &SourceId) -> Result<(), ClientError> {
        self.delete(&["sources", id.as_str()]).await
    }

    /// The present or last run of each Source, or of each whose labels match.
    pub(crate) async fn runs(&self, matching: Option<&Selector>) -> Result<Vec<Run>, ClientError> {
        self.items(&["runs"], &query_of(matching)).try_collect().await
    }

    /// The present or last run of a Source, if there was one.
    pub(crate) async fn last_run(&self, id: &SourceId) -> Result<Option<Run>, ClientError> {
        let page: Page<Run> = self.get(&["sources", id.as_str(), "runs"], &[]).await?;
        Ok(page.items.into_iter().next())
    }

    /// Requests a run.
    pub(crate) async fn submit(&self, id: &SourceId, submit: &RunRequest) -> Result<Run, ClientError> {
        // If the response is lost, the same request has no further effect.
        let key = ulid::Ulid::new().to_string();
        self.post(&["sources", id.as_str(), "runs"], &[], submit, Some(&key)).await
    }

    /// Requests earlier versions of a Source's resources.
    pub(crate) async fn backfill(
        &self,
        id: &SourceId,
        request: &BackfillRequest,
    ) -> Result<Run, ClientError> {
        let key = ulid::Ulid::new().to_string();
        self.post(&["sources", id.as_str(), "backfill"], &[], request, Some(&key)).await
    }

    /// Requests that a Source is harvested from another URL.
    pub(crate) async fn move_source(&self, id: &SourceId, to: &Url) -> Result<Run, ClientError> {
        let key = ulid::Ulid::new().to_string();
        self.post(&["sources", id.as_str(), "move"], &[], &MoveRequest { to: to.clone() }, Some(&key)).await
    }

    /// Requests that the move of a Source is taken back.
    pub(crate) async fn take_move_back(&self, id: &SourceId) -> Result<Run, ClientError> {
        let key = ulid::Ulid::new().to_string();
        self.post(&["sources", id.as_str(), "move", "back"], &[], &(), Some(&key)).await
    }

    /// Waits for the end of a run, and tells what it waits for.
    pub(crate) async fn until_over(&self, mut run: Run) -> Result<Run, ClientError> {
        let mut events = self.follow(&run.source.clone(), run.run);
        let mut waits = None;
        while !run.is_over() {
            run = events.next().await?;
            let why = run.message.clone().filter(|_| !run.is_over());
            if why != waits {
                if let Some(why) = &why {
                    note!("{}: {why}", run.source);
                }
                waits = why;
            }
        }
        Ok(run)
    }

    /// An action on a run, as the API calls it: pause, resume or cancel; approve returns the run that may delete more.
    pub(crate) async fn control(&self, id: &SourceId, run: RunId, action: &str) -> Result<Run, ClientError> {
        self.post(&["sources", id.as_str(), "runs", &run.to_string(), action], &[], &(), None).await
    }

    /// Follows a run.
    pub(crate) fn follow(&self, id: &SourceId, run: RunId) -> Events {
        Events::new(self.clone(), id, run)
    }
}

/// The query of a list that a selector limits.
fn query_of(matching: Option<&Selector>) -> Vec<(&'static str, String)> {
    matching.iter().map(|selector| ("match", selector.to_string())).collect()
}
