//! Floods: a fixed number of posts per second, whether earlier ones were answered or not.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use reqwest::{Client, RequestBuilder};
use simulated_source::SimulatedSource;
use testkit::hub::sign;
use tokio::task::JoinSet;

use super::Beset;

/// How often the due posts are started.
const TICK: Duration = Duration::from_millis(10);
/// The approximate bytes of a forged payload.
const FORGED_BYTES: usize = 20_000;

/// The kinds of floods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flood {
    /// No flood: the baseline of the comparison.
    Nobody,
    /// A sender that knows a callback but not its secret.
    Forged,
    /// The hub of a subscription itself.
    Signed,
    /// Senders of notifications without a token.
    Notifications,
}

/// The result of a flood.
#[derive(Debug, Default)]
pub(super) struct Flooded {
    /// Responses by status; 0 is none.
    pub(super) statuses: BTreeMap<u16, u64>,
    /// Started posts per second.
    pub(super) per_second: u64,
}

/// The counter of a status.
pub(super) fn counted_as(status: u16) -> String {
    if status == 0 { "flood_unanswered".to_owned() } else { format!("flood_{status}") }
}

impl Flooded {
    /// The number of responses with this status.
    pub(super) fn of(&self, status: u16) -> u64 {
        self.statuses.get(&status).copied().unwrap_or_default()
    }

    /// The total number.
    pub(super) fn posts(&self) -> u64 {
        self.statuses.values().sum()
    }
}

impl Flood {
    /// All, in the order of the first round.
    pub(super) const ALL: [Self; 4] = [Self::Nobody, Self::Forged, Self::Signed, Self::Notifications];

    /// Its name in the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Forged => "forged deliveries",
            Self::Signed => "signed deliveries",
            Self::Notifications => "notifications",
        }
    }

    /// The target of its posts.
    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Nobody => "nothing",
            Self::Forged | Self::Signed => "/push/$SUBSCRIPTION/$PART",
            Self::Notifications => "/ldn/inbox",
        }
    }

    /// Whether the gateway has to accept it as genuine.
    pub(super) fn is_signed(self) -> bool {
        self == Self::Signed
    }

    /// The number of its posts.
    pub(super) fn posts(self, per_second: u64, seconds: u64) -> u64 {
        if self == Self::Nobody { 0 } else { per_second * seconds }
    }

    /// Posts, and returns the responses when all have arrived.
    pub(super) async fn pour(self, beset: &Beset, per_second: u64, seconds: u64) -> anyhow::Result<Flooded> {
        let posts = self.posts(per_second, seconds);
        if posts == 0 {
            return Ok(Flooded::default());
        }
        let client = Client::builder().no_proxy().timeout(Duration::from_secs(60)).build()?;
        let lie = lie(&beset.sources[0]);
        let mut times = tokio::time::interval(TICK);
        let start = Instant::now();
        let mut open = JoinSet::new();
        let mut begun = 0;
        let mut flooded = Flooded::default();
        while begun < posts {
            times.tick().await;
            let due = (start.elapsed().as_secs_f64() * per_second as f64) as u64;
            for number in begun..due.min(posts) {
                let request = self.post(&client, beset, &lie, number)?;
                open.spawn(async move {
                    let sent = request.send().await;
                    sent.map_or(0, |answer| answer.status().as_u16())
                });
            }
            begun = begun.max(due.min(posts));
            while let Some(answered) = open.try_join_next() {
                *flooded.statuses.entry(answered?).or_default() += 1;
            }
        }
        flooded.per_second = (posts as f64 / start.elapsed().as_secs_f64()).round() as u64;
        while let Some(answered) = open.join_next().await {
            *flooded.statuses.entry(answered?).or_default() += 1;
        }
        Ok(flooded)
    }

    fn post(self, client: &Client, beset: &Beset, lie: &str, number: u64) -> anyhow::Result<RequestBuilder> {
        let to = &beset.subscribers[0];
        let path = to.callback.strip_prefix("http://push.example").context("a callback elsewhere")?;
        let callback = client.post(format!("{}{path}", beset.gateway));
        Ok(match self {
            Self::Nobody => anyhow::bail!("nobody posts nothing"),
            Self::Forged => {
                callback.header("x-hub-signature", sign("a guess", lie.as_bytes())).body(lie.to_owned())
            }
            Self::Signed => {
                let payload = nothing(&beset.sources[0], number);
                callback.header("x-hub-signature", sign(&to.secret, payload.as_bytes())).body(payload)
            }
            Self::Notifications => {
                // Every second one is from a permitted origin.
                let origin =
                    if number.is_multiple_of(2) { "https://review.example.com" } else { "https://x.example" };
                let about = beset.sources[1].url();
                let body = format!(
                    r#"{{"@context": "https://www.w3.org/ns/activitystreams", "id": "urn:x:{number}", "type": "Update", "origin": {{"id": "{origin}"}}, "object": "{about}/{number}"}}"#
                );
                let inbox = client.post(format!("{}/ldn/inbox", beset.gateway));
                inbox.header("content-type", "application/ld+json").body(body)
            }
        })
    }
}

/// A long notification that reports every resource as deleted.
fn lie(source: &SimulatedSource) -> String {
    let until = source.now().plus(1);
    let mut entries = String::new();
    for each in source.expected() {
        let _ = write!(
            entries,
            "<url><loc>{}</loc><rs:md change=\"deleted\" datetime=\"{until}\"/></url>",
            each.uri
        );
    }
    let filling = "x".repeat(FORGED_BYTES.saturating_sub(entries.len()));
    notification(source, &until.to_string(), &format!("{entries}<!--{filling}-->"))
}

/// A unique notification that reports no change.
fn nothing(source: &SimulatedSource, number: u64) -> String {
    notification(source, &source.now().to_string(), &format!("<!-- {number} -->"))
}

fn notification(source: &SimulatedSource, until: &str, content: &str) -> String {
    let from = source.now();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
         xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\
         <rs:md capability=\"change-notification\" from=\"{from}\" until=\"{until}\"/>{content}</urlset>\n"
    )
}
