//! A server, a namespace for each test, and a connection that can be cut.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use control::{AskedBy, Config, Control, RunSpec, SourceSpec};
use jiff::Timestamp;
use model::{RunId, RunMode, SourceId};
use testkit::servers::NatsFixture;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;
use url::Url;

/// Longer than any step of a test takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A configuration with a namespace of its own, and short times.
pub(crate) async fn config() -> Config {
    config_at(&NatsFixture::get().await.url)
}

pub(crate) fn config_at(url: &str) -> Config {
    Config {
        servers: vec![url.to_owned()],
        namespace: format!("t-{}", RunId::fresh()),
        lease_seconds: 2,
        member_seconds: 2,
        ..Config::default()
    }
}

pub(crate) async fn control() -> Control {
    Control::connect(&config().await).await.unwrap()
}

pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

pub(crate) fn spec(n: usize) -> SourceSpec {
    SourceSpec::new(Url::parse(&format!("https://example.org/{n}")).unwrap())
}

pub(crate) fn source(n: usize) -> SourceId {
    spec(n).id
}

pub(crate) fn asked(n: usize) -> RunSpec {
    RunSpec {
        id: RunId::fresh(),
        source: source(n),
        mode: RunMode::Auto,
        asked_by: AskedBy::Operator,
        asked_at: now(),
        allow_deletes: false,
        repair: false,
        task: None,
    }
}

/// The result of `happens`, or a panic after the time limit.
pub(crate) async fn soon<T>(what: &str, happens: impl Future<Output = T>) -> T {
    timeout(PATIENCE, happens).await.unwrap_or_else(|_| panic!("it did not happen: {what}"))
}

/// A connection to the server that can be cut.
pub(crate) struct Line {
    address: SocketAddr,
    whole: watch::Sender<bool>,
}

impl Line {
    pub(crate) async fn to(url: &str) -> Line {
        let server = url.strip_prefix("nats://").unwrap().to_owned();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (whole, state) = watch::channel(true);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let server = server.clone();
                let mut state = state.clone();
                tokio::spawn(async move {
                    if !*state.borrow_and_update() {
                        return;
                    }
                    let Ok(mut server) = TcpStream::connect(server).await else { return };
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                        _ = state.changed() => {}
                    }
                });
            }
        });
        Line { address, whole }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    pub(crate) fn cut(&self) {
        self.whole.send_replace(false);
    }

    pub(crate) fn repair(&self) {
        self.whole.send_replace(true);
    }
}
