//! The entry point to the control store.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::ContextBuilder;
use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, rustls};
use model::Persisted;
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::bucket::{Bucket, Layout, Line, Made};
use crate::config::Config;
use crate::cooldowns::Cooldowns;
use crate::error::ControlError;
use crate::hints::Hints;
use crate::hub_hints::HubHints;
use crate::inbox_cursors::InboxCursors;
use crate::inboxes::{InboxLimits, Inboxes};
use crate::kept::Kept;
use crate::lease::Leases;
use crate::members::Members;
use crate::outbox::Outbox;
use crate::plans::Plans;
use crate::problem_actions::ProblemActions;
use crate::runs::Runs;
use crate::samples::Samples;
use crate::sessions::Sessions;
use crate::sources::Sources;
use crate::submissions::Submissions;
use crate::subscriptions::Subscriptions;
use crate::table::Table;

/// The longest pause between two attempts to reconnect: short compared with the time of a lease.
const LONGEST_RECONNECT: Duration = Duration::from_millis(500);
/// The ping interval. A connection without an answer for twice as long is given up.
const PING: Duration = Duration::from_secs(2);

/// The control store.
#[derive(Debug, Clone)]
pub struct Control {
    client: Client,
    context: Context,
    namespace: String,
    replicas: usize,
    sources: Sources,
    runs: Runs,
    tasks: Runs,
    leases: Leases,
    publication_leases: Leases,
    hub_leases: Leases,
    hub_hints: HubHints,
    members: Members,
    cooldowns: Cooldowns,
    sessions: Sessions,
    submissions: Submissions,
    problem_actions: ProblemActions,
    plans: Plans,
    hints: Hints,
    outbox: Outbox,
    inbox_cursors: InboxCursors,
    subscriptions: Subscriptions,
    samples: Samples,
}

impl Control {
    /// Connects, and creates missing buckets. Updates buckets whose configuration differs from `config`.
    ///
    /// # Errors
    /// [`ControlError::Config`]; [`ControlError::Unavailable`] when no server can be reached, or it refuses.
    pub async fn connect(config: &Config) -> Result<Self, ControlError> {
        Self::connect_with(config, ConnectOptions::new()).await
    }

    /// Connects with further options, such as credentials and TLS.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_with(config: &Config, options: ConnectOptions) -> Result<Self, ControlError> {
        // Boxed: the future contains all buckets, which is too large for the stack of a debug build.
        let made = if config.make_buckets { Made::Here } else { Made::Elsewhere };
        Box::pin(Self::open(config, options, made)).await
    }

    async fn open(config: &Config, options: ConnectOptions, made: Made) -> Result<Self, ControlError> {
        config.check()?;
        // A separate connection, so that bulk messages of others do not delay the renewal of a lease.
        let (tell, line) = watch::channel(Line::default());
        let options = options
            .name("thresher-control")
            .ping_interval(PING)
            .max_reconnects(None)
            .reconnect_delay_callback(|tries| Duration::from_millis(50 * tries as u64).min(LONGEST_RECONNECT))
            .request_timeout(Some(config.request_timeout()))
            .event_callback(move |event| {
                note(&event, &tell);
                std::future::ready(())
            });
        let client =
            options.connect(config.servers.clone()).await.map_err(|error| refusal(error, &config.servers))?;
        // The event arrives a little later. A view that was opened before it would be built twice.
        let _ = timeout(config.request_timeout(), line.clone().wait_for(|line| line.up)).await;
        let context = ContextBuilder::new()
            .timeout(config.request_timeout())
            .ack_timeout(config.request_timeout())
            .build(client.clone());
        let buckets = Buckets { client: &client, context: &context, line: &line, config, made };
        let runs = buckets.table(Persisted::Runs, "The present or last run of each Source").await?;
        let past =
            buckets.open(Persisted::PastRuns, config.runs_kept, "Runs that were followed by others").await?;
        let tasks = buckets.table(Persisted::Tasks, "The present or last task of each Source").await?;
        let leases = buckets.table(Persisted::Leases, "Who owns which Source").await?;
        let publications =
            buckets.table(Persisted::PublicationLeases, "Who writes which publication").await?;
        let hubs = buckets.table(Persisted::HubLeases, "Who has which hub of a publication open").await?;
        let members = buckets.table(Persisted::Members, "Which processes are there").await?;
        let specs = buckets.table(Persisted::SourceSpecs, "What is wanted of each Source").await?;
        let names = buckets.table(Persisted::SourceNames, "Which Source bears which name").await?;
        Ok(Self {
            sources: Sources::new(specs, names),
            runs: Runs::new(runs, past.clone()),
            tasks: Runs::new(tasks, past),
            leases: Leases::new(leases, config.lease_ttl()),
            publication_leases: Leases::new(publications, config.lease_ttl()),
            hub_leases: Leases::new(hubs, config.lease_ttl()),
            hub_hints: buckets
                .table(Persisted::HubHints, "For which hubs of publications requests wait")
                .await?,
            members: Members::new(members, config.member_ttl()),
            cooldowns: buckets.table(Persisted::Cooldowns, "Which origins want to be left alone").await?,
            sessions: buckets.table(Persisted::Sessions, "Who has shown a token to a page").await?,
            submissions: buckets.table(Persisted::Submissions, "What was submitted with keys").await?,
            problem_actions: buckets
                .table(Persisted::ProblemActions, "What is to become of problems")
                .await?,
            plans: buckets.table(Persisted::Plans, "What Sources would take to harvest").await?,
            hints: buckets.table(Persisted::Hints, "Which Sources are said to have changed").await?,
            outbox: buckets.table(Persisted::Outbox, "What others are to be told of changes").await?,
            inbox_cursors: buckets
                .table(Persisted::InboxCursors, "How far inboxes of others are read")
                .await?,
            subscriptions: buckets
                .table(Persisted::Subscriptions, "Which channels of Sources are subscribed to")
                .await?,
            samples: buckets.table(Persisted::Samples, "The state of the fleet, once a minute").await?,
            client,
            context: context.clone(),
            namespace: config.namespace.clone(),
            replicas: config.replicas,
        })
    }

    /// The specs of the Sources.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The runs.
    pub fn runs(&self) -> &Runs {
        &self.runs
    }

    /// The runs that are no syncs, but tasks, such as backfills.
    pub fn tasks(&self) -> &Runs {
        &self.tasks
    }

    /// The leases, which record the owner of each Source.
    pub fn leases(&self) -> &Leases {
        &self.leases
    }

    /// The leases of publications: one process at a time writes that of a Source.
    pub fn publication_leases(&self) -> &Leases {
        &self.publication_leases
    }

    /// The leases of the hubs of publications: one process at a time has that of a Source open.
    pub fn hub_leases(&self) -> &Leases {
        &self.hub_leases
    }

    /// The hints that requests wait for the hubs of publications.
    pub fn hub_hints(&self) -> &HubHints {
        &self.hub_hints
    }

    /// The processes of the fleet.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// The cooldowns of origins.
    pub fn cooldowns(&self) -> &Cooldowns {
        &self.cooldowns
    }

    /// The sessions of the console.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Recent requests with an idempotency key.
    pub fn submissions(&self) -> &Submissions {
        &self.submissions
    }

    /// Operator actions on problems.
    pub fn problem_actions(&self) -> &ProblemActions {
        &self.problem_actions
    }

    /// The requested plans.
    pub fn plans(&self) -> &Plans {
        &self.plans
    }

    /// The hints about changed Sources.
    pub fn hints(&self) -> &Hints {
        &self.hints
    }

    /// The outbox of notifications.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// The read positions in inboxes of others.
    pub fn inbox_cursors(&self) -> &InboxCursors {
        &self.inbox_cursors
    }

    /// The notifications that others have posted, stored within these limits. If several processes set limits, the
    /// newest apply.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn inboxes(&self, limits: InboxLimits) -> Result<Inboxes, ControlError> {
        Inboxes::open(&self.context, &self.namespace, self.replicas, limits).await
    }

    /// The subscriptions to channels of Sources.
    pub fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    /// The state of the fleet over the last hours, once a minute.
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// Checks whether the server answers now.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`] with the reason.
    pub async fn health(&self) -> Result<(), ControlError> {
        if self.client.connection_state() != State::Connected {
            let source = "the connection is lost, and tried again all the time".into();
            return Err(ControlError::Unavailable { action: "reach the server".to_owned(), source });
        }
        // The server may be connected, and its buckets still without a leader.
        self.sources.probe().await
    }
}

/// Opens buckets.
struct Buckets<'a> {
    client: &'a Client,
    context: &'a Context,
    line: &'a watch::Receiver<Line>,
    config: &'a Config,
    made: Made,
}

impl Buckets<'_> {
    /// Opens a bucket that stores one revision of each value.
    async fn table<T: Kept>(&self, bucket: Persisted, description: &str) -> Result<Table<T>, ControlError> {
        self.open(bucket, 1, description).await
    }

    async fn open<T: Kept>(
        &self,
        bucket: Persisted,
        revisions: u8,
        description: &str,
    ) -> Result<Table<T>, ControlError> {
        let name = bucket.name();
        let namespace = self.config.namespace.as_str();
        let replicas = self.config.replicas;
        let layout = Layout { namespace, name, description, revisions, replicas, made: self.made };
        // Boxed: there are many of these futures, and each is large.
        Ok(Table::new(Box::pin(Bucket::open(self.client, self.context, self.line, layout)).await?))
    }
}

/// The error of a failed connection.
fn refusal(error: ConnectError, servers: &[String]) -> ControlError {
    let servers = servers.join(", ");
    if is_lasting(&error) {
        return ControlError::Config(format!("{servers}: {error}; check the credentials and TLS"));
    }
    ControlError::unavailable(format!("connect to {servers}"))(error)
}

/// Whether an operator must act before this can work. Invalid secrets and certificates stay invalid.
fn is_lasting(error: &ConnectError) -> bool {
    use ConnectErrorKind::{Authentication, AuthorizationViolation, Io, ServerParse, Tls};
    match error.kind() {
        Authentication | AuthorizationViolation | ServerParse | Tls => true,
        // A failed TLS handshake is reported as an error of the connection.
        Io => {
            let error = error.source().and_then(|source| source.downcast_ref::<io::Error>());
            error.and_then(io::Error::get_ref).is_some_and(|cause| cause.is::<rustls::Error>())
        }
        _ => false,
    }
}

/// Records an event of the connection.
fn note(event: &Event, tell: &watch::Sender<Line>) {
    match event {
        Event::Connected => {
            tell.send_modify(|line| *line = Line { up: true, made: line.made + 1 });
            info!("connected to the control store");
        }
        Event::Disconnected | Event::Closed => {
            tell.send_modify(|line| line.up = false);
            warn!("the connection to the control store is lost; trying again");
        }
        Event::SlowConsumer(_) => {
            tell.send_modify(|line| line.made += 1);
            warn!("changes came faster than they were taken in; the views are made anew");
        }
        other => info!(event = %other, "the control store's connection"),
    }
}
