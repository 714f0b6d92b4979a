//! The one door to all of it.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::ContextBuilder;
use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions, Event, rustls};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::bucket::{Bucket, Layout, Line, Made};
use crate::hints::Hints;
use crate::inboxes::{InboxLimits, Inboxes};
use crate::lease::Leases;
use crate::members::Members;
use crate::outbox::Outbox;
use crate::plans::Plans;
use crate::readings::Readings;
use crate::rests::Rests;
use crate::runs::Runs;
use crate::sessions::Sessions;
use crate::sources::Sources;
use crate::submissions::Submissions;
use crate::subscriptions::Subscriptions;
use crate::table::Table;
use crate::words::Words;
use crate::{Config, ControlError};

/// The longest pause between two tries to reach the server again: short against the time of a lease.
const LONGEST_RECONNECT: Duration = Duration::from_millis(500);
/// A connection that does not answer for twice as long is given up.
const PING: Duration = Duration::from_secs(2);

/// What the fleet shares.
#[derive(Debug, Clone)]
pub struct Control {
    client: Client,
    context: Context,
    namespace: String,
    replicas: usize,
    sources: Sources,
    runs: Runs,
    leases: Leases,
    members: Members,
    rests: Rests,
    sessions: Sessions,
    submissions: Submissions,
    words: Words,
    plans: Plans,
    hints: Hints,
    outbox: Outbox,
    readings: Readings,
    subscriptions: Subscriptions,
}

impl Control {
    /// Connects, and makes the buckets that are not there yet, or are kept in another way than `config` wants.
    ///
    /// # Errors
    /// [`ControlError::Config`]; [`ControlError::Unavailable`] when no server can be reached, or it refuses.
    pub async fn connect(config: &Config) -> Result<Self, ControlError> {
        Self::connect_with(config, ConnectOptions::new()).await
    }

    /// The same, with what else the connection needs: credentials, TLS.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_with(config: &Config, options: ConnectOptions) -> Result<Self, ControlError> {
        // In a box, as in `visit`: it is as large as all buckets together, too large for the stack of a debug build.
        let made = if config.make_buckets { Made::Here } else { Made::Elsewhere };
        Box::pin(Self::open(config, options, made)).await
    }

    /// Connects to look, or to say something, as operators do: buckets that are there stay as their fleet keeps them, whatever
    /// `config.replicas` says.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn visit(config: &Config, options: ConnectOptions) -> Result<Self, ControlError> {
        let made = if config.make_buckets { Made::WhereMissing } else { Made::Elsewhere };
        Box::pin(Self::open(config, options, made)).await
    }

    async fn open(config: &Config, options: ConnectOptions, made: Made) -> Result<Self, ControlError> {
        config.check()?;
        // A connection of its own: what others send in bulk must not hold up the renewal of a lease.
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
        // It is told of a little later; a view that was opened before would be made twice.
        let _ = timeout(config.request_timeout(), line.clone().wait_for(|line| line.up)).await;
        let context = ContextBuilder::new()
            .timeout(config.request_timeout())
            .ack_timeout(config.request_timeout())
            .build(client.clone());
        let open = async |name, revisions, description| {
            let namespace = config.namespace.as_str();
            let replicas = config.replicas;
            let layout = Layout { namespace, name, description, revisions, replicas, made };
            // In a box: there are many of them, and each is large.
            Box::pin(Bucket::open(&client, &context, &line, layout)).await
        };
        let runs = Table::new(open("runs", 1, "The present or last run of each Source").await?);
        let past =
            Table::new(open("runs-past", config.runs_kept, "Runs that were followed by others").await?);
        Ok(Self {
            sources: Sources::new(Table::new(open("sources", 1, "What is wanted of each Source").await?)),
            runs: Runs::new(runs, past),
            leases: Leases::new(
                Table::new(open("leases", 1, "Who owns which Source").await?),
                config.lease_ttl(),
            ),
            members: Members::new(
                Table::new(open("members", 1, "Which processes are there").await?),
                config.member_ttl(),
            ),
            rests: Rests::new(Table::new(open("rests", 1, "Which origins want to be left alone").await?)),
            sessions: Sessions::new(Table::new(
                open("sessions", 1, "Who has shown a token to a page").await?,
            )),
            submissions: Submissions::new(Table::new(
                open("submissions", 1, "What was submitted with keys").await?,
            )),
            words: Words::new(Table::new(open("words", 1, "What is to become of problems").await?)),
            plans: Plans::new(Table::new(open("plans", 1, "What Sources would take to harvest").await?)),
            hints: Hints::new(Table::new(open("hints", 1, "Which Sources are said to have changed").await?)),
            outbox: Outbox::new(Table::new(
                open("outbox", 1, "What others are to be told of changes").await?,
            )),
            readings: Readings::new(Table::new(
                open("readings", 1, "How far inboxes of others are read").await?,
            )),
            subscriptions: Subscriptions::new(Table::new(
                open("subscriptions", 1, "Which channels of Sources are subscribed to").await?,
            )),
            client,
            context: context.clone(),
            namespace: config.namespace.clone(),
            replicas: config.replicas,
        })
    }

    /// What is wanted of the Sources.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The runs.
    pub fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Who owns which Source.
    pub fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Which processes are there.
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Which origins want to be left alone.
    pub fn rests(&self) -> &Rests {
        &self.rests
    }

    /// Who has shown a token to a page.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// What was submitted lately with keys.
    pub fn submissions(&self) -> &Submissions {
        &self.submissions
    }

    /// What the operator has to say about problems.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// What it would take to harvest Sources, as far as somebody asked.
    pub fn plans(&self) -> &Plans {
        &self.plans
    }

    /// Which Sources somebody says to have changed.
    pub fn hints(&self) -> &Hints {
        &self.hints
    }

    /// What others are to be told of changes.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// How far inboxes of others are read.
    pub fn readings(&self) -> &Readings {
        &self.readings
    }

    /// The notifications that others have left, kept within these limits: of all that say some, the newest word counts.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`].
    pub async fn inboxes(&self, limits: InboxLimits) -> Result<Inboxes, ControlError> {
        Inboxes::open(&self.context, &self.namespace, self.replicas, limits).await
    }

    /// Which channels of Sources are subscribed to.
    pub fn subscriptions(&self) -> &Subscriptions {
        &self.subscriptions
    }

    /// Whether the server answers now.
    ///
    /// # Errors
    /// [`ControlError::Unavailable`] says what is wrong.
    pub async fn health(&self) -> Result<(), ControlError> {
        if self.client.connection_state() != State::Connected {
            let source = "the connection is lost, and tried again all the time".into();
            return Err(ControlError::Unavailable { action: "reach the server".to_owned(), source });
        }
        // Also a server that is connected may have no leader for its buckets.
        self.sources.probe().await
    }
}

/// Why there is no connection.
fn refusal(error: ConnectError, servers: &[String]) -> ControlError {
    let servers = servers.join(", ");
    if is_lasting(&error) {
        return ControlError::Config(format!("{servers}: {error}; check the credentials and TLS"));
    }
    ControlError::unavailable(format!("connect to {servers}"))(error)
}

/// Whether a person has to act before this can work: secrets and certificates that were no good stay so.
fn is_lasting(error: &ConnectError) -> bool {
    use ConnectErrorKind::{Authentication, AuthorizationViolation, Io, ServerParse, Tls};
    match error.kind() {
        Authentication | AuthorizationViolation | ServerParse | Tls => true,
        // What goes wrong while encryption is agreed on comes as an error of the connection.
        Io => {
            let error = error.source().and_then(|source| source.downcast_ref::<io::Error>());
            error.and_then(io::Error::get_ref).is_some_and(|cause| cause.is::<rustls::Error>())
        }
        _ => false,
    }
}

/// Keeps account of the line to the server.
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
