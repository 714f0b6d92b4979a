//! Chooses the endpoint: the command line overrides the environment, and a gateway overrides the fleet behind
//! it.

use std::path::Path;

use service::{Secret, SecretRef, Vars};
use url::{Host, Url};

use super::profiles;
use super::server::Server;
use crate::cli::{FleetArgs, LocationArgs, ServerArgs};
use crate::exit::{Failed, usage};
use crate::terminal::note;

/// A gateway, and how to reach it.
#[derive(Debug, Clone)]
pub(super) struct Gateway {
    pub(super) url: Url,
    pub(super) token: Option<Secret>,
    /// The certificates of its authority, as PEM, if the system's are not enough.
    pub(super) authority: Option<Vec<u8>>,
}

/// Where the stored data is read.
#[derive(Debug)]
pub(crate) enum Held {
    /// In a store: a directory, or s3://bucket/prefix.
    Into(String),
    /// Through a gateway.
    Gateway(Server),
}

/// The named gateway, if any.
pub(crate) fn server(args: &ServerArgs) -> Result<Option<Server>, Failed> {
    named(args, &Vars::of_process())?.map(Server::new).transpose()
}

/// The gateway of a request about a fleet; none if the fleet itself is used.
pub(super) fn gateway(args: &FleetArgs) -> Result<Option<Gateway>, Failed> {
    if args.nats.is_empty() { named(&args.server, &Vars::of_process()) } else { Ok(None) }
}

/// Where the stored data is to be read.
pub(crate) fn held(args: &LocationArgs) -> Result<Held, Failed> {
    match &args.into {
        Some(into) => Ok(Held::Into(into.clone())),
        None => Ok(server(&args.server)?.map_or_else(|| Held::Into(".".to_owned()), Held::Gateway)),
    }
}

/// The NATS servers of the fleet.
pub(super) fn nats(args: &FleetArgs) -> Vec<String> {
    if !args.nats.is_empty() {
        return args.nats.clone();
    }
    let servers = Vars::of_process().get("THRESHER_NATS").unwrap_or("nats://127.0.0.1:4222").to_owned();
    servers.split(',').map(|server| server.trim().to_owned()).collect()
}

/// The gateway named on the command line or in the environment.
fn named(args: &ServerArgs, vars: &Vars) -> Result<Option<Gateway>, Failed> {
    let var = |name: &str| vars.get(name).filter(|value| !value.is_empty());
    let url = |text: &str| {
        text.parse::<Url>()
            .map_err(|error| usage(format!("THRESHER_SERVER is {text:?}, and that is no URL: {error}")))
    };
    let gateway = match (&args.server, &args.profile) {
        (Some(server), _) => Gateway { url: server.clone(), token: None, authority: None },
        (None, Some(profile)) => profiles::read(profile, vars)?,
        (None, None) => match (var("THRESHER_SERVER"), var("THRESHER_PROFILE")) {
            (Some(server), _) => Gateway { url: url(server)?, token: None, authority: None },
            (None, Some(profile)) => profiles::read(profile, vars)?,
            (None, None) if args.token_file.is_some() => {
                return Err(usage("--token-file is for a gateway: name it with --server or --profile"));
            }
            (None, None) => return Ok(None),
        },
    };
    if !matches!(gateway.url.scheme(), "http" | "https") || !gateway.url.has_host() {
        return Err(usage(format!(
            "{} is no gateway: give a URL such as https://thresher.example.org",
            gateway.url
        )));
    }
    if !gateway.url.username().is_empty() || gateway.url.password().is_some() {
        return Err(usage(
            "a name or password stands in the gateway's URL; it wants a token: set THRESHER_TOKEN",
        ));
    }
    // A profile's own token overrides the environment's.
    let token = match (&args.token_file, gateway.token) {
        (Some(file), _) => Some(token_of(file)?),
        (None, Some(token)) => Some(token),
        (None, None) => var("THRESHER_TOKEN").map(Secret::new),
    };
    if token.is_some() && gateway.url.scheme() == "http" && !is_this_machine(&gateway.url) {
        note!(
            "warning: the token for {} travels readable to everybody on the way; give an https URL if there is one",
            gateway.url
        );
    }
    Ok(Some(Gateway { token, ..gateway }))
}

/// The token in a file.
pub(super) fn token_of(file: &Path) -> Result<Secret, Failed> {
    if profiles::others_may_read(file) {
        let file = file.display();
        note!(
            "warning: {file} holds a token, and others on this machine can read it; `chmod 600 {file}` ends that"
        );
    }
    SecretRef::File(file.to_owned()).read(&Vars::default()).map_err(usage)
}

pub(super) fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(args: ServerArgs, vars: Vars) -> Result<Option<(String, Option<String>)>, String> {
        let named = named(&args, &vars).map_err(|failed| failed.error.to_string())?;
        Ok(named
            .map(|gateway| (gateway.url.to_string(), gateway.token.map(|token| token.expose().to_owned()))))
    }

    #[test]
    fn the_command_line_counts_before_the_environment_and_a_profiles_token_before_any_other() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("thresher");
        fs_err::create_dir(&folder).unwrap();
        let file = folder.join("profiles.yaml");
        let text = "one: {server: 'https://one.example', token_file: one.token}\ntwo: {server: 'https://two.example'}\n";
        fs_err::write(&file, text).unwrap();
        fs_err::write(folder.join("one.token"), "the token of one\n").unwrap();
        let vars = || {
            let vars = Vars::from([("THRESHER_TOKEN", "any"), ("THRESHER_PROFILE", "two")]);
            vars.with("XDG_CONFIG_HOME", home.path().to_str().unwrap())
        };
        let some = |url: &str, token: &str| Ok(Some((url.to_owned(), Some(token.to_owned()))));
        let none = ServerArgs::default;
        let server = |url: &str| ServerArgs { server: Some(url.parse().unwrap()), ..none() };
        let profile = |name: &str| ServerArgs { profile: Some(name.to_owned()), ..none() };
        assert_eq!(asked(none(), Vars::default()), Ok(None));
        assert_eq!(asked(none(), vars()), some("https://two.example/", "any"));
        assert_eq!(asked(profile("one"), vars()), some("https://one.example/", "the token of one"));
        assert_eq!(asked(server("http://127.0.0.1:1"), vars()), some("http://127.0.0.1:1/", "any"));
        let with_server = vars().with("THRESHER_SERVER", "http://127.0.0.1:2");
        assert_eq!(asked(none(), with_server), some("http://127.0.0.1:2/", "any"));
        let given = ServerArgs { token_file: Some(folder.join("one.token")), ..profile("two") };
        assert_eq!(asked(given, vars()), some("https://two.example/", "the token of one"));
    }

    #[test]
    fn what_is_no_gateway_is_refused_with_what_to_give() {
        let server = |url: &str| {
            asked(ServerArgs { server: Some(url.parse().unwrap()), ..ServerArgs::default() }, Vars::default())
        };
        assert!(server("nats://h:4222").unwrap_err().contains("https://"));
        let said = server("https://me:sesame@h/").unwrap_err();
        assert!(said.contains("THRESHER_TOKEN") && !said.contains("sesame"), "{said}");
        let said = asked(ServerArgs::default(), Vars::from([("THRESHER_SERVER", "here")])).unwrap_err();
        assert!(said.contains("THRESHER_SERVER"), "{said}");
        let alone = ServerArgs { token_file: Some("t".into()), ..ServerArgs::default() };
        assert!(asked(alone, Vars::default()).unwrap_err().contains("--server"));
    }
}
