//! Profiles: named gateways, in a file of the operator.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use secrets::{Secret, Vars};
use serde::Deserialize;
use url::Url;

use super::endpoint::{Endpoint, token_of};
use crate::exit::{Failed, usage};

/// A gateway, and the place of its token.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    server: Url,
    #[serde(default)]
    token: Option<String>,
    /// A relative path is relative to the file of profiles.
    #[serde(default)]
    token_file: Option<PathBuf>,
    #[serde(default)]
    ca_file: Option<PathBuf>,
}

/// The gateway of the profile called `name`.
///
/// # Errors
/// Wrong usage: there is no such profile, or its file is invalid.
pub(super) fn read(name: &str, vars: &Vars) -> Result<Endpoint, Failed> {
    let folder =
        folder(vars).ok_or_else(|| usage("profiles are in the home directory, but HOME is not set"))?;
    let file = folder.join("profiles.yaml");
    let text = fs_err::read_to_string(&file).map_err(|error| {
        usage(format!("the profile {name} cannot be read: {error}; docs/cli.md shows such a file"))
    })?;
    let mut profiles = parse(&text, &file)?;
    if profiles.values().any(|profile| profile.token.is_some()) && others_may_read(&file) {
        let file = file.display();
        return Err(usage(format!(
            "{file} holds tokens, and other users of this machine can read it; run `chmod 600 {file}`, or name files with token_file instead"
        )));
    }
    let names = profiles.keys().cloned().collect::<Vec<_>>().join(", ");
    let Some(profile) = profiles.remove(name) else {
        return Err(usage(format!("{} has no profile {name:?}; it has {names}", file.display())));
    };
    let beside = |path: &Path| folder.join(path);
    let token = match (profile.token, profile.token_file) {
        (Some(_), Some(_)) => {
            return Err(usage(format!("the profile {name} has both token and token_file; give one of them")));
        }
        (Some(token), None) => Some(Secret::new(token)),
        (None, Some(token_file)) => Some(token_of(&beside(&token_file))?),
        (None, None) => None,
    };
    let authority = profile.ca_file.map(|ca| fs_err::read(beside(&ca))).transpose().map_err(usage)?;
    Ok(Endpoint { token, authority, ..Endpoint::named(profile.server) })
}

fn parse(text: &str, file: &Path) -> Result<BTreeMap<String, Profile>, Failed> {
    // The lines around a fault may hold a token.
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).map_err(|error: serde_saphyr::Error| {
        let place = error.location().map_or(String::new(), |at| format!(":{}:{}", at.line(), at.column()));
        let said = error.to_string();
        let why = match error.without_snippet() {
            serde_saphyr::Error::SerdeUnknownField { .. } | serde_saphyr::Error::SerdeMissingField { .. } => {
                said.split(" at line ").next().unwrap_or_default()
            }
            // The unexpected text may be a token.
            _ => "it is no map of names to {server, token or token_file, ca_file}",
        };
        usage(format!("{}{place}: {why}", file.display()))
    })
}

/// The user's folder of Thresher: `$XDG_CONFIG_HOME/thresher`, or `~/.config/thresher`.
pub(super) fn folder(vars: &Vars) -> Option<PathBuf> {
    let absolute = |name: &str| vars.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(config.join("thresher"))
}

/// Whether users other than its owner can read a file.
pub(super) fn others_may_read(path: &Path) -> bool {
    // A missing file is reported soon after.
    fs_err::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(text: &str, mode: u32, name: &str) -> Result<(String, Option<String>), String> {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".config/thresher/profiles.yaml");
        fs_err::create_dir_all(file.parent().unwrap()).unwrap();
        fs_err::write(&file, text).unwrap();
        fs_err::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let vars = Vars::from([("HOME", home.path().to_str().unwrap()), ("XDG_CONFIG_HOME", "not/absolute")]);
        let gateway = read(name, &vars).map_err(|failed| failed.error.to_string())?;
        Ok((gateway.url.to_string(), gateway.token.map(|token| token.expose().to_owned())))
    }

    #[test]
    fn a_profile_names_a_gateway_and_its_token() {
        let text =
            "a: {server: 'https://a.example/api', token: sesame}\nb: {server: 'http://127.0.0.1:8080'}\n";
        assert_eq!(
            profile(text, 0o600, "a").unwrap(),
            ("https://a.example/api".to_owned(), Some("sesame".to_owned()))
        );
        assert_eq!(profile(text, 0o600, "b").unwrap(), ("http://127.0.0.1:8080/".to_owned(), None));
        let said = profile(text, 0o600, "c").unwrap_err();
        assert!(said.contains("no profile \"c\"") && said.contains("a, b"), "{said}");
    }

    #[test]
    fn a_file_with_tokens_that_others_can_read_is_refused_and_one_without_is_not() {
        let with = "a: {server: 'https://a.example', token: sesame}\n";
        for mode in [0o644, 0o640, 0o604] {
            let said = profile(with, mode, "a").unwrap_err();
            assert!(said.contains("chmod 600") && !said.contains("sesame"), "{said}");
        }
        assert!(profile("a: {server: 'https://a.example'}\n", 0o644, "a").is_ok());
    }

    #[test]
    fn a_slip_is_named_with_its_line_and_no_token_is_repeated() {
        for (text, place, what) in [
            ("a:\n  server: https://a.example\n  tokn: sesame\n", ":3:", "tokn"),
            ("a: {token: sesame}\n", ":1:", "server"),
            ("a: {server: 'https://a.example', token: [sesame]}\n", ":1:", "no map of names"),
            ("- sesame\n", ":1:", "no map of names"),
            ("a: {server: 'https://a.example', token: sesame, token_file: b}\n", "", "one of them"),
        ] {
            let said = profile(text, 0o600, "a").unwrap_err();
            assert!(said.contains(place) && said.contains(what) && !said.contains("sesame"), "{said}");
        }
    }
}
