//! HTTP options, shared by all commands that send requests to a Source.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use model::{Origin, Robots};
use planning::RetryPolicy;
use url::Url;
use web::{AddressPolicy, BodyLimits, Client, Network, RobotsPolicy, WebConfig};

use crate::credentials;
use crate::exit::{Failed, usage};
use crate::terminal::note;
use crate::values::{bytes, interval};

/// The networks inside of a site, as they are sent to a fleet.
const INSIDE: [&str; 5] = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"];

/// HTTP options.
#[derive(Debug, Args)]
#[command(next_help_heading = "HTTP options")]
pub(crate) struct HttpArgs {
    /// YAML file that names a credential for each origin.
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,

    /// Your contact for the Source's operator, sent in the User-Agent: a mail address or a URL.
    #[arg(long, value_name = "MAIL|URL", env = "THRESHER_CONTACT", value_parser = contact)]
    contact: Option<String>,

    /// How robots.txt is applied.
    #[arg(long, value_enum, default_value_t = Robots::LinksOnly)]
    robots: Robots,

    /// Allow requests to private addresses (10.0.0.0/8, 192.168.0.0/16, fc00::/7, …). By default, only public addresses
    /// and the host of the given URL are allowed. Cloud metadata addresses are never allowed.
    #[arg(long)]
    allow_private: bool,

    /// Allow requests to this address or network. Repeatable.
    #[arg(long, visible_alias = "allow-network", value_name = "CIDR")]
    allow_address: Vec<Network>,

    /// Maximum requests per second and origin. Default: no limit
    #[arg(long, value_name = "N")]
    max_rate: Option<NonZeroU32>,

    /// Timeout of a connection attempt.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = interval)]
    connect_timeout: Duration,

    /// Timeout until the response headers arrive.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = interval)]
    timeout: Duration,

    /// Timeout of a response body that stalls.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = interval)]
    stall_timeout: Duration,

    /// Minimum bytes of a response body per minute. A slower one is abandoned and retried later.
    #[arg(long, value_name = "BYTES", default_value = "64KiB", value_parser = bytes)]
    min_speed: NonZeroU64,

    /// Timeout of a whole response body, plus one second for each 16 KiB of it.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = interval)]
    body_timeout: Duration,

    /// Maximum retries of a failed request in one run, if a retry can help.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(..=100))]
    retries: u32,
}

impl HttpArgs {
    /// The client's configuration for a Source with this `entry` URL. Prints warnings.
    ///
    /// # Errors
    /// Wrong usage, when the credentials cannot be read, or are part of the URL.
    pub(crate) fn config(&self, entry: &Url) -> Result<WebConfig, Failed> {
        without_secret(entry)?;
        let mut credentials = Vec::new();
        if let Some(file) = &self.credentials {
            let read = credentials::read(file).map_err(usage)?;
            for warning in &read.warnings {
                note!("warning: {warning}");
            }
            credentials = read.credentials;
        }
        let mut addresses = AddressPolicy::public_unless(entry);
        if self.allow_private {
            addresses = addresses.allow_private();
        }
        for network in &self.allow_address {
            addresses = addresses.allow_network(*network);
        }
        Ok(WebConfig {
            contact: self.contact.clone(),
            connect_timeout: self.connect_timeout,
            first_byte_timeout: self.timeout,
            stall_timeout: self.stall_timeout,
            bodies: BodyLimits {
                least: self.min_speed.get(),
                time: self.body_timeout,
                ..BodyLimits::default()
            },
            requests_per_second: self.max_rate,
            attempts: self.attempts(),
            credentials,
            addresses,
            entry: Origin::of(entry).ok(),
            robots: match self.robots {
                Robots::Obey => RobotsPolicy::obey(),
                Robots::LinksOnly => RobotsPolicy::links_only(),
                Robots::Ignore => RobotsPolicy::ignore(),
            },
            ..WebConfig::default()
        })
    }

    /// The settings that belong to the Source, not to the requesting process: these are sent to a fleet.
    pub(crate) fn wanted(&self, wanted: &mut api::Spec) {
        wanted.requests_per_second = self.max_rate;
        wanted.contact.clone_from(&self.contact);
        wanted.robots = self.robots;
        wanted.allow_networks.clone_from(&self.allow_address);
        if self.allow_private {
            let inside =
                INSIDE.map(|network| network.parse::<Network>().expect("it is written as a network"));
            wanted.allow_networks.extend(inside);
        }
    }

    /// Attempts of one request, including the first.
    fn attempts(&self) -> u32 {
        self.retries + 1
    }

    /// As many attempts for a resource as for a document.
    pub(crate) fn retry_policy(&self) -> RetryPolicy {
        let default = RetryPolicy::default();
        let attempts = self.attempts();
        RetryPolicy { attempts, mismatches: default.mismatches.min(attempts), ..default }
    }
}

/// Refuses a URL with a user or password: it would be stored and printed as it is.
///
/// # Errors
/// Wrong usage. The message does not have the secret.
pub(crate) fn without_secret(entry: &Url) -> Result<(), Failed> {
    if entry.username().is_empty() && entry.password().is_none() {
        return Ok(());
    }
    Err(usage(format!(
        "the URL of {} contains a user or password, which the harvest would show to its readers. Remove it, and pass \
         --credentials FILE with the place of the secret (in a fleet: `http.credentials` of its configuration)",
        entry.host_str().unwrap_or("the Source")
    )))
}

/// The client of a command.
///
/// # Errors
/// Wrong usage, when the configuration is invalid.
pub(crate) fn client(config: WebConfig) -> Result<Client, Failed> {
    Client::new(config).map_err(usage)
}

/// A comment of the `User-Agent` header: characters that would end it, or break the header, are refused.
fn contact(text: &str) -> Result<String, String> {
    let is_header_text = |c: char| matches!(c, ' '..='~') && !matches!(c, '(' | ')' | '\\');
    if text.trim().is_empty() || !text.chars().all(is_header_text) {
        return Err(
            "give a mail address or a URL, in ASCII and without parentheses or backslashes".to_owned()
        );
    }
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        http: HttpArgs,
    }

    fn config(words: &[&str]) -> Result<WebConfig, String> {
        let line =
            Line::try_parse_from([&["thresher"], words].concat()).map_err(|error| error.to_string())?;
        let entry = "http://127.0.0.1/".parse().unwrap();
        line.http.config(&entry).map_err(|failed| failed.error.to_string())
    }

    #[test]
    fn without_options_the_client_is_polite_and_stays_outside() {
        let config = config(&[]).unwrap();
        let entry = "http://127.0.0.1/".parse().unwrap();
        let expected = WebConfig {
            contact: std::env::var("THRESHER_CONTACT").ok(),
            addresses: AddressPolicy::public_unless(&entry),
            entry: Origin::of(&entry).ok(),
            robots: RobotsPolicy::links_only(),
            ..WebConfig::default()
        };
        assert_eq!(config, expected);
    }

    #[test]
    fn each_option_reaches_the_client() {
        let words = "--contact a@example.org --robots obey --allow-private --allow-address 127.0.0.2 --allow-address 198.18.0.0/15 \
                     --max-rate 7 --connect-timeout 1s --timeout 2m --stall-timeout 500ms --min-speed 1KiB \
                     --body-timeout 3s --retries 0";
        let config = config(&words.split_whitespace().collect::<Vec<_>>()).unwrap();
        assert!(config.user_agent_header().ends_with(" (+a@example.org)"));
        assert_eq!((config.robots, config.attempts), (RobotsPolicy::obey(), 1));
        assert_eq!(config.requests_per_second.map(NonZeroU32::get), Some(7));
        let times = [config.connect_timeout, config.first_byte_timeout, config.stall_timeout];
        assert_eq!(times.map(|time| time.as_millis()), [1_000, 120_000, 500]);
        assert_eq!((config.bodies.least, config.bodies.time), (1024, Duration::from_secs(3)));
        let entry = "http://127.0.0.1/".parse().unwrap();
        let addresses = AddressPolicy::public_unless(&entry)
            .allow_private()
            .allow_network("127.0.0.2/32".parse().unwrap())
            .allow_network("198.18.0.0/15".parse().unwrap());
        assert_eq!(config.addresses, addresses);
    }

    #[test]
    fn a_fleet_is_told_the_networks_that_are_allowed() {
        let words = ["thresher", "--allow-private", "--allow-network", "127.0.0.2"];
        let mut wanted = api::Spec::new("http://127.0.0.1/".parse().unwrap());
        Line::try_parse_from(words).unwrap().http.wanted(&mut wanted);
        let told: Vec<_> = wanted.allow_networks.iter().map(ToString::to_string).collect();
        assert_eq!(told[..2], ["127.0.0.2/32", "10.0.0.0/8"]);
        assert_eq!(told.len(), 1 + INSIDE.len());
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_to_give() {
        for (words, what) in [
            (["--contact", "a\r\nb"], "mail address"),
            (["--contact", "a)b"], "without parentheses"),
            (["--contact", " "], "mail address"),
            (["--contact", "mü@example.org"], "ASCII"),
            (["--allow-address", "example.org"], "10.1.0.0/16"),
            (["--allow-address", "10.0.0.0/33"], "10.1.0.0/16"),
            (["--timeout", "0s"], "above 0"),
            (["--timeout", "60"], "unit"),
            (["--timeout", "-1s"], "unit"),
            (["--timeout", "soon"], "90s"),
            (["--max-rate", "0"], "max-rate"),
            (["--retries", "101"], "100"),
        ] {
            // With `=`, since a value may begin with a dash.
            let error = config(&[&words.join("=")]).unwrap_err();
            assert!(error.contains(what), "{words:?}: {error}");
        }
    }
}
