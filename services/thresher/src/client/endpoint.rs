//! Chooses the gateway: the command line wins over the environment, and both over the gateway of this machine.

use std::path::Path;

use secrets::{Secret, SecretRef, Vars};
use url::Url;

use super::gateway::{GatewayArgs, LocationArgs};
use super::http::OperatorClient;
use super::{local, profiles};
use crate::credentials::is_this_machine;
use crate::exit::{Failed, usage};
use crate::terminal::note;

/// A gateway, and how to reach it.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    pub(super) url: Url,
    pub(super) token: Option<Secret>,
    /// The certificates of its authority, as PEM, if the system's are not enough.
    pub(super) authority: Option<Vec<u8>>,
    /// Whether the operator named it.
    pub(super) is_named: bool,
}

/// Where stored data is read from.
#[derive(Debug)]
pub(crate) enum ReadFrom {
    /// A store: a directory, or s3://bucket/prefix.
    Store(String),
    /// A gateway.
    Gateway(OperatorClient),
}

/// The named gateway, if any.
pub(crate) fn named(args: &GatewayArgs) -> Result<Option<OperatorClient>, Failed> {
    find(args, &Vars::of_process())?.map(OperatorClient::new).transpose()
}

/// The named gateway, else that of `thresher serve` on this machine.
pub(super) fn endpoint(args: &GatewayArgs) -> Result<Endpoint, Failed> {
    let vars = Vars::of_process();
    match find(args, &vars)? {
        Some(named) => Ok(named),
        None => local::endpoint(&vars),
    }
}

/// Where stored data is to be read from.
pub(crate) fn read_from(args: &LocationArgs) -> Result<ReadFrom, Failed> {
    match &args.into {
        Some(into) => Ok(ReadFrom::Store(into.clone())),
        None => Ok(named(&args.gateway)?.map_or_else(|| ReadFrom::Store(".".to_owned()), ReadFrom::Gateway)),
    }
}

impl Endpoint {
    /// A named gateway without a token.
    pub(super) fn named(url: Url) -> Self {
        Self { url, token: None, authority: None, is_named: true }
    }
}

/// The gateway named on the command line or in the environment.
fn find(args: &GatewayArgs, vars: &Vars) -> Result<Option<Endpoint>, Failed> {
    let var = |name: &str| vars.get(name).filter(|value| !value.is_empty());
    let url = |text: &str| {
        text.parse::<Url>()
            .map_err(|error| usage(format!("THRESHER_SERVER is {text:?}, which is no URL: {error}")))
    };
    let gateway = match (&args.server, &args.profile) {
        (Some(server), _) => Endpoint::named(server.clone()),
        (None, Some(profile)) => profiles::read(profile, vars)?,
        (None, None) => match (var("THRESHER_SERVER"), var("THRESHER_PROFILE")) {
            (Some(server), _) => Endpoint::named(url(server)?),
            (None, Some(profile)) => profiles::read(profile, vars)?,
            (None, None) if args.token_file.is_some() => {
                return Err(usage("--token-file needs a gateway; name it with --server or --profile"));
            }
            (None, None) => return Ok(None),
        },
    };
    if !matches!(gateway.url.scheme(), "http" | "https") || !gateway.url.has_host() {
        return Err(usage(format!(
            "{} is no URL of a gateway; pass one such as https://thresher.example.org",
            gateway.url
        )));
    }
    if !gateway.url.username().is_empty() || gateway.url.password().is_some() {
        return Err(usage(
            "the gateway's URL contains a user or password; remove them, and set THRESHER_TOKEN to its token",
        ));
    }
    // A profile's own token overrides the environment's.
    let token = match (&args.token_file, gateway.token) {
        (Some(file), _) => Some(token_of(file)?),
        (None, Some(token)) => Some(token),
        (None, None) => var("THRESHER_TOKEN").map(Secret::new),
    };
    if token.is_some() && gateway.url.scheme() == "http" && !is_this_machine(&gateway.url) {
        note!("warning: the token for {} is sent unencrypted; use an https URL if there is one", gateway.url);
    }
    Ok(Some(Endpoint { token, ..gateway }))
}

/// The token in a file.
pub(super) fn token_of(file: &Path) -> Result<Secret, Failed> {
    if profiles::others_may_read(file) {
        let file = file.display();
        note!(
            "warning: {file} holds a token, and other users of this machine can read it; run `chmod 600 {file}`"
        );
    }
    SecretRef::File(file.to_owned()).read(&Vars::default()).map_err(usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(args: GatewayArgs, vars: Vars) -> Result<Option<(String, Option<String>)>, String> {
        let named = find(&args, &vars).map_err(|failed| failed.error.to_string())?;
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
        let none = GatewayArgs::default;
        let server = |url: &str| GatewayArgs { server: Some(url.parse().unwrap()), ..none() };
        let profile = |name: &str| GatewayArgs { profile: Some(name.to_owned()), ..none() };
        assert_eq!(asked(none(), Vars::default()), Ok(None));
        assert_eq!(asked(none(), vars()), some("https://two.example/", "any"));
        assert_eq!(asked(profile("one"), vars()), some("https://one.example/", "the token of one"));
        assert_eq!(asked(server("http://127.0.0.1:1"), vars()), some("http://127.0.0.1:1/", "any"));
        let with_server = vars().with("THRESHER_SERVER", "http://127.0.0.1:2");
        assert_eq!(asked(none(), with_server), some("http://127.0.0.1:2/", "any"));
        let given = GatewayArgs { token_file: Some(folder.join("one.token")), ..profile("two") };
        assert_eq!(asked(given, vars()), some("https://two.example/", "the token of one"));
    }

    #[test]
    fn what_is_no_gateway_is_refused_with_what_to_give() {
        let server = |url: &str| {
            asked(
                GatewayArgs { server: Some(url.parse().unwrap()), ..GatewayArgs::default() },
                Vars::default(),
            )
        };
        assert!(server("nats://h:4222").unwrap_err().contains("https://"));
        let said = server("https://me:sesame@h/").unwrap_err();
        assert!(said.contains("THRESHER_TOKEN") && !said.contains("sesame"), "{said}");
        let said = asked(GatewayArgs::default(), Vars::from([("THRESHER_SERVER", "here")])).unwrap_err();
        assert!(said.contains("THRESHER_SERVER"), "{said}");
        let alone = GatewayArgs { token_file: Some("t".into()), ..GatewayArgs::default() };
        assert!(asked(alone, Vars::default()).unwrap_err().contains("--server"));
    }
}
