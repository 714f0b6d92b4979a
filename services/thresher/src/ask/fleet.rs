//! Requests to the fleet itself over NATS.

use ::fleet::NatsConfig;
use api::{Run, Submit};
use bus::jetstream::Credentials;
use control::{Config as ControlConfig, Control, LeaseRecord, Revised, Run as FleetRun, View};
use model::{RunId, SourceId};
use service::{SecretRef, Vars};

use super::error::{Kind, NotDone};
use super::whom;
use crate::cli::FleetArgs;
use crate::exit::{Failed, usage};

/// The variable with the password of `--nats-user`: never on the command line, where other users see it.
const PASSWORD: &str = "THRESHER_NATS_PASSWORD";

/// Connects to the control store, without changing its settings.
pub(super) async fn connect(args: &FleetArgs) -> Result<Control, Failed> {
    let servers = whom::nats(args);
    let config = ControlConfig {
        servers: servers.clone(),
        namespace: args.namespace.clone(),
        ..ControlConfig::default()
    };
    let password = args.nats_user.as_ref().map(|_| SecretRef::Env(PASSWORD.to_owned()));
    let credentials = Credentials {
        user: args.nats_user.clone(),
        password,
        file: args.nats_credentials.clone(),
        ..Credentials::default()
    };
    let login = NatsConfig { servers, credentials, ..NatsConfig::default() };
    let options = login.connect_options(&Vars::of_process()).await;
    Ok(Control::visit(&config, options.map_err(|error| usage(error.to_string()))?).await?)
}

/// The present or last run of each Source.
pub(super) async fn runs(control: &Control) -> Result<Vec<Run>, NotDone> {
    let (runs, leases) = (control.runs().view().await?, control.leases().view().await?);
    Ok(runs.all().iter().map(|run| standing(run, &leases)).collect())
}

/// The present or last run of a Source.
pub(super) async fn last_run(control: &Control, id: &SourceId) -> Result<Option<Run>, NotDone> {
    match control.runs().get(id).await? {
        Some(run) => Ok(Some(present(control, run).await?)),
        None => Ok(None),
    }
}

/// The present state of a run.
pub(super) async fn present(control: &Control, run: Revised<FleetRun>) -> Result<Run, NotDone> {
    Ok(standing(&run, &control.leases().view().await?))
}

fn standing(run: &FleetRun, leases: &View<LeaseRecord>) -> Run {
    let tenure = leases.get(&run.spec.source).map(|lease| lease.tenure());
    Run::new(run, &run.standing(tenure.as_ref()))
}

/// Requests the same run again, with approval to delete more than the deletion guard allows.
pub(super) async fn approve(control: &Control, id: &SourceId, run: RunId) -> Result<Run, NotDone> {
    let absent = || NotDone::new(Kind::Absent, format!("there is no run {run} of {id}"));
    let last = control.runs().get(id).await?.ok_or_else(absent)?;
    let asked = Submit::approving(run, &last).map_err(|why| NotDone::new(Kind::Conflict, why))?;
    super::Asked::Fleet(Box::new(control.clone())).submit(id, &asked).await
}

/// A run that is followed in the control store.
pub(crate) struct Followed {
    source: SourceId,
    id: RunId,
    runs: View<FleetRun>,
    leases: View<LeaseRecord>,
    is_first: bool,
}

impl Followed {
    pub(super) async fn open(control: &Control, source: &SourceId, id: RunId) -> Result<Self, NotDone> {
        let (runs, leases) = (control.runs().view().await?, control.leases().view().await?);
        Ok(Self { source: source.clone(), id, runs, leases, is_first: true })
    }

    /// The present state of the run, then each changed one.
    pub(super) async fn next(&mut self) -> Result<Run, NotDone> {
        if !std::mem::take(&mut self.is_first) {
            tokio::select! {
                () = self.runs.changed() => {}
                () = self.leases.changed() => {}
            }
        }
        let source = &self.source;
        let gone = || NotDone::new(Kind::Absent, format!("there is no run of {source} any more"));
        let run = self.runs.get(source).ok_or_else(gone)?;
        if run.spec.id != self.id {
            let other = run.spec.id;
            return Err(NotDone::new(Kind::Absent, format!("another run of {source} has begun: {other}")));
        }
        Ok(standing(&run, &self.leases))
    }
}
