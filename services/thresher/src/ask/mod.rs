//! Clients of the operator's commands: a gateway by HTTP, or the fleet itself over NATS. Both return the same
//! types of the API, so that a command shows the same with either.

mod batch;
mod error;
mod events;
mod fleet;
mod held;
mod profiles;
mod server;
mod whom;

use api::{Run, Source, Submit, Subscription, Wanted};
use control::{Control, Revised, Revision, RunSpec, SourceSpec};
use jiff::Timestamp;
use model::{RunId, SourceId};

pub(crate) use self::error::{Kind, NotDone};
use self::events::Events;
use self::fleet::Followed;
pub(crate) use self::held::About;
pub(crate) use self::server::Server;
pub(crate) use self::whom::{Held, held, server};
use crate::cli::FleetArgs;
use crate::exit::Failed;

/// The endpoint of a request.
#[derive(Debug)]
pub(crate) enum Asked {
    /// The fleet itself, over NATS.
    Fleet(Box<Control>),
    /// A gateway, by HTTP.
    Gateway(Server),
}

/// What to do with a run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Steer {
    Pause,
    Resume,
    Cancel,
}

/// A run that is followed.
pub(crate) enum Follow {
    Fleet(Box<Followed>),
    Gateway(Box<Events>),
}

impl Asked {
    /// The endpoint named on the command line, or in the environment.
    pub(crate) async fn of(args: &FleetArgs) -> Result<Self, Failed> {
        match whom::gateway(args)? {
            Some(gateway) => Ok(Self::Gateway(Server::new(gateway)?)),
            None => Ok(Self::Fleet(Box::new(fleet::connect(args).await?))),
        }
    }

    /// All Sources, in the order of their names.
    pub(crate) async fn sources(&self) -> Result<Vec<Source>, NotDone> {
        match self {
            Self::Fleet(control) => {
                let sources = control.sources().list().await?;
                Ok(sources.iter().map(shown).collect())
            }
            Self::Gateway(server) => server.all(&["sources"], &[]).await,
        }
    }

    /// A Source, if there is one of this name.
    pub(crate) async fn source(&self, id: &SourceId) -> Result<Option<Source>, NotDone> {
        let found = match self {
            Self::Fleet(control) => {
                control.sources().get(id).await.map(|found| shown(&found)).map_err(NotDone::from)
            }
            Self::Gateway(server) => server.get(&["sources", id.as_str()], &[]).await,
        };
        match found {
            Err(error) if error.kind == Kind::Absent => Ok(None),
            found => found.map(Some),
        }
    }

    /// The subscriptions of a Source.
    pub(crate) async fn subscriptions(&self, id: &SourceId) -> Result<Vec<Subscription>, NotDone> {
        match self {
            Self::Fleet(control) => {
                let now = Timestamp::now();
                let mut all = control.subscriptions().of(id).await?;
                all.sort_by(|one, two| one.id.cmp(&two.id));
                Ok(all.iter().map(|subscription| Subscription::new(subscription, now)).collect())
            }
            Self::Gateway(server) => {
                match server.all(&["sources", id.as_str(), "subscriptions"], &[]).await {
                    // A gateway that is older than this program.
                    Err(error) if error.kind == Kind::Absent => Ok(Vec::new()),
                    found => found,
                }
            }
        }
    }

    /// Adds a Source, or, as a dry run, returns how it would be.
    pub(crate) async fn create(&self, wanted: &Wanted, only_tried: bool) -> Result<Source, NotDone> {
        let spec = SourceSpec::from(wanted.clone());
        match self {
            Self::Fleet(_) if only_tried => {
                spec.check().map_err(control::ControlError::from)?;
                Ok(Source::new(&spec, None, Timestamp::now()))
            }
            Self::Fleet(control) => {
                let revision = control.sources().create(&spec).await?;
                Ok(Source::new(&spec, Some(revision), Timestamp::now()))
            }
            Self::Gateway(server) => server.post(&["sources"], &trial(only_tried), wanted, None).await,
        }
    }

    /// Changes a Source that was read with this revision, or, as a dry run, returns how it would be.
    pub(crate) async fn change(
        &self,
        wanted: &Wanted,
        read: u64,
        only_tried: bool,
    ) -> Result<Source, NotDone> {
        let spec = SourceSpec::from(wanted.clone());
        match self {
            Self::Fleet(_) if only_tried => {
                spec.check().map_err(control::ControlError::from)?;
                Ok(Source::new(&spec, None, Timestamp::now()))
            }
            Self::Fleet(control) => {
                let revision = control.sources().update(&spec, Revision::new(read)).await?;
                Ok(Source::new(&spec, Some(revision), Timestamp::now()))
            }
            Self::Gateway(server) => {
                let path = ["sources", spec.id.as_str()];
                server.put(&path, &trial(only_tried), wanted, read).await
            }
        }
    }

    /// Removes a Source from the fleet.
    pub(crate) async fn delete(&self, id: &SourceId) -> Result<(), NotDone> {
        match self {
            Self::Fleet(control) => {
                let read = control.sources().get(id).await?;
                Ok(control.sources().delete(id, read.revision).await?)
            }
            Self::Gateway(server) => server.delete(&["sources", id.as_str()]).await,
        }
    }

    /// The present or last run of each Source.
    pub(crate) async fn runs(&self) -> Result<Vec<Run>, NotDone> {
        match self {
            Self::Fleet(control) => fleet::runs(control).await,
            Self::Gateway(server) => server.all(&["runs"], &[]).await,
        }
    }

    /// The present or last run of a Source, if there was one.
    pub(crate) async fn last_run(&self, id: &SourceId) -> Result<Option<Run>, NotDone> {
        match self {
            Self::Fleet(control) => fleet::last_run(control, id).await,
            Self::Gateway(server) => {
                let page: api::Page<Run> = server.get(&["sources", id.as_str(), "runs"], &[]).await?;
                Ok(page.items.into_iter().next())
            }
        }
    }

    /// Requests a run.
    pub(crate) async fn submit(&self, id: &SourceId, asked: &Submit) -> Result<Run, NotDone> {
        match self {
            Self::Fleet(control) => {
                // A run of a misspelled Source would wait for ever.
                control.sources().get(id).await?;
                let spec = RunSpec {
                    id: RunId::fresh(),
                    source: id.clone(),
                    mode: asked.mode,
                    asked_by: control::AskedBy::Operator,
                    asked_at: Timestamp::now(),
                    allow_deletes: asked.allow_deletes,
                    repair: asked.repair,
                };
                let run = control.runs().submit(spec).await?;
                fleet::present(control, run).await
            }
            Self::Gateway(server) => {
                // If the response is lost, the same request has no further effect.
                let key = ulid::Ulid::new().to_string();
                server.post(&["sources", id.as_str(), "runs"], &[], asked, Some(&key)).await
            }
        }
    }

    /// Pauses, resumes or cancels a run.
    pub(crate) async fn steer(&self, id: &SourceId, run: RunId, how: Steer) -> Result<Run, NotDone> {
        match self {
            Self::Fleet(control) => {
                let (runs, now) = (control.runs(), Timestamp::now());
                let run = match how {
                    Steer::Pause => runs.pause(id, run, now).await?,
                    Steer::Resume => runs.resume(id, run, now).await?,
                    Steer::Cancel => runs.cancel(id, run, now).await?,
                };
                fleet::present(control, run).await
            }
            Self::Gateway(server) => {
                let word = match how {
                    Steer::Pause => "pause",
                    Steer::Resume => "resume",
                    Steer::Cancel => "cancel",
                };
                server.post(&["sources", id.as_str(), "runs", &run.to_string(), word], &[], &(), None).await
            }
        }
    }

    /// Approves the deletions of a run that the deletion guard stopped. Returns the run that may delete more.
    pub(crate) async fn approve(&self, id: &SourceId, run: RunId) -> Result<Run, NotDone> {
        match self {
            Self::Fleet(control) => fleet::approve(control, id, run).await,
            Self::Gateway(server) => {
                server
                    .post(&["sources", id.as_str(), "runs", &run.to_string(), "approve"], &[], &(), None)
                    .await
            }
        }
    }

    /// Follows a run.
    pub(crate) async fn follow(&self, id: &SourceId, run: RunId) -> Result<Follow, NotDone> {
        Ok(match self {
            Self::Fleet(control) => Follow::Fleet(Box::new(Followed::open(control, id, run).await?)),
            Self::Gateway(server) => Follow::Gateway(Box::new(Events::new(server.clone(), id, run))),
        })
    }
}

impl Follow {
    /// The present state of the run, then each changed one. Not to be called after its end.
    pub(crate) async fn next(&mut self) -> Result<Run, NotDone> {
        match self {
            Self::Fleet(followed) => followed.next().await,
            Self::Gateway(events) => events.next().await,
        }
    }
}

fn shown(source: &Revised<SourceSpec>) -> Source {
    Source::new(source, Some(source.revision), Timestamp::now())
}

fn trial(only_tried: bool) -> Vec<(&'static str, String)> {
    if only_tried { vec![("dry_run", "true".to_owned())] } else { Vec::new() }
}
