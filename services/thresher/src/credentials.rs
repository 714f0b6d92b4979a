//! The credentials file, which names the places of the secrets.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use fleet::{BasicConfig, CredentialConfig, HeaderConfig};
use secrets::{SecretRef, Vars};
use serde::Deserialize;
use serde_saphyr::{Location, Spanned};
use url::{Host, Url};
use web::Credential;

/// The content of a credentials file.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) credentials: Vec<Credential>,
    /// Warnings for the operator, a sentence each.
    pub(crate) warnings: Vec<String>,
}

/// Why a credentials file is invalid: where, and what to do. It holds no secret.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {why}")]
pub(crate) struct CredentialsError {
    place: String,
    why: String,
}

/// One credential. Its secrets are stored elsewhere: `{env: NAME}` or `{file: PATH}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    origin: String,
    bearer: Option<SecretRef>,
    basic: Option<BasicConfig>,
    header: Option<HeaderConfig>,
}

/// Where secrets are read from, and the warnings so far.
struct Reading<'a> {
    vars: &'a Vars,
    /// The file's directory: paths in it are relative to it.
    directory: PathBuf,
    warnings: Vec<String>,
}

/// Reads a file, and the secrets from the places that it names.
///
/// # Errors
/// [`CredentialsError`], also for an unknown field.
pub(crate) fn read(file: &Path) -> Result<Read, CredentialsError> {
    let text = fs_err::read_to_string(file)
        .map_err(|error| CredentialsError { place: "--credentials".to_owned(), why: error.to_string() })?;
    parse(&text, file, &Vars::of_process())
}

fn parse(text: &str, file: &Path, vars: &Vars) -> Result<Read, CredentialsError> {
    let refuse = |at: Option<Location>, why: String| {
        let file = file.display();
        let place = at.map_or(file.to_string(), |at| format!("{file}:{}:{}", at.line(), at.column()));
        CredentialsError { place, why }
    };
    // The lines around a fault may hold a secret that was written here by mistake.
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    let entries: Vec<Spanned<Entry>> = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| refuse(error.location(), words(&error.to_string())))?;
    let directory = file.parent().map(Path::to_owned).unwrap_or_default();
    let mut reading = Reading { vars, directory, warnings: Vec::new() };
    let mut credentials = Vec::new();
    for entry in entries {
        let at = entry.referenced;
        credentials.push(reading.credential(entry.value).map_err(|why| refuse(Some(at), why))?);
    }
    Ok(Read { credentials, warnings: reading.warnings })
}

impl Reading<'_> {
    fn credential(&mut self, entry: Entry) -> Result<Credential, String> {
        let url = origin(&entry.origin)?;
        let origin = model::Origin::of(&url).map_err(|error| error.to_string())?;
        if url.scheme() == "http" && !is_this_machine(&url) {
            self.warnings.push(format!(
                "the credential for {origin} is sent unencrypted; use an https origin if there is one"
            ));
        }
        let Entry { bearer, basic, header, .. } = entry;
        let credential = CredentialConfig {
            origin,
            bearer: bearer.map(|token| self.beside(token)),
            basic: basic.map(|basic| BasicConfig { password: self.beside(basic.password), ..basic }),
            header: header.map(|header| HeaderConfig { value: self.beside(header.value), ..header }),
        };
        credential.read(self.vars)
    }

    /// The place of a secret: the path of a file is relative to the credentials.
    fn beside(&mut self, place: SecretRef) -> SecretRef {
        let SecretRef::File(path) = place else { return place };
        let path = self.directory.join(path);
        if is_readable_by_all(&path) {
            let path = path.display();
            self.warnings.push(format!(
                "{path} holds a secret, and other users of this machine can read it; run `chmod 600 {path}`"
            ));
        }
        SecretRef::File(path)
    }
}

/// The parser's message without the position, which is printed already, and without the unexpected text,
/// which may be a secret.
fn words(message: &str) -> String {
    let message = message.split(" at line ").next().unwrap_or(message);
    match message.rsplit_once(", expected ") {
        Some((_, expected)) if message.starts_with("invalid ") => {
            format!("expected {expected}")
        }
        _ => message.to_owned(),
    }
}

/// An origin only: with a path, an operator might think that only URLs below it get the secret.
fn origin(text: &str) -> Result<Url, String> {
    let is_bare = |url: &Url| {
        let rest = (url.path(), url.query(), url.fragment(), url.username(), url.password());
        url.has_host() && matches!(rest, ("/", None, None, "", None))
    };
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && is_bare(url));
    url.ok_or_else(|| {
        "origin is not of the form https://host or https://host:port; a credential is sent to a whole origin, so leave out \
         user, path and query"
            .to_owned()
    })
}

/// Whether a URL stays on this machine.
pub(crate) fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

fn is_readable_by_all(path: &Path) -> bool {
    // A missing file is reported soon after.
    fs_err::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o004 != 0)
}

#[cfg(test)]
mod tests {
    use secrets::Secret;

    use super::*;

    fn read_text(text: &str) -> Result<Read, String> {
        let vars = Vars::from([("TOKEN", "sesame"), ("SPACED", "ses ame ")]);
        parse(text, Path::new("keys.yaml"), &vars).map_err(|error| error.to_string())
    }

    fn refused(text: &str) -> String {
        let error = read_text(text).unwrap_err();
        assert!(!error.contains("sesame"), "{error}");
        error
    }

    #[test]
    fn each_kind_is_read_for_its_origin() {
        let read = read_text(
            "# ours\n- origin: https://a.example\n  bearer: {env: TOKEN}\n\
             - origin: https://b.example:8443/\n  basic: {user: me, password: {env: TOKEN}}\n\
             - {origin: 'https://a.example', header: {name: X-Api-Key, value: {env: TOKEN}}}\n",
        )
        .unwrap();
        let origins: Vec<&str> = read.credentials.iter().map(|one| one.origin().as_str()).collect();
        assert_eq!(origins, ["https://a.example:443", "https://b.example:8443", "https://a.example:443"]);
        let origin: model::Origin = "https://a.example".parse().unwrap();
        assert_eq!(read.credentials[0], Credential::bearer(origin, &Secret::new("sesame")).unwrap());
        assert!(read.warnings.is_empty() && !format!("{read:?}").contains("sesame"), "{read:?}");
    }

    #[test]
    fn an_unknown_field_is_refused_with_its_line_and_column() {
        let error = refused("- origin: https://a.example\n  bearer: {env: TOKEN}\n  path: /private\n");
        assert!(error.starts_with("keys.yaml:3:3: unknown field `path`"), "{error}");
        let error = refused("- origin: https://a.example\n  basic: {user: me, pass: {env: TOKEN}}\n");
        assert!(error.starts_with("keys.yaml:2:21: unknown field `pass`"), "{error}");
    }

    #[test]
    fn a_secret_written_in_clear_is_refused_and_not_repeated() {
        for (text, place) in [
            ("- origin: https://a.example\n  bearer: sesame\n", "keys.yaml:2:"),
            ("- origin: https://a.example\n  basic: me:sesame\n", "keys.yaml:2:"),
            ("- origin: https://a.example\n  bearer: {env: [sesame]}\n", "keys.yaml:2:"),
            ("- sesame\n", "keys.yaml:1:"),
            ("bearer: sesame\n", "keys.yaml:1:"),
            ("- origin: https://me:sesame@a.example\n  bearer: {env: TOKEN}\n", "keys.yaml:1:"),
            ("- origin: \"https://a.example\n  bearer: sesame\n", "keys.yaml:"),
        ] {
            let error = refused(text);
            assert!(error.starts_with(place), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_no_credential_is_refused_with_its_place_and_what_to_do() {
        for (text, what) in [
            ("- origin: https://a.example\n", "exactly one of"),
            ("- origin: https://a.example/private\n  bearer: {env: TOKEN}\n", "leave out"),
            ("- origin: a.example\n  bearer: {env: TOKEN}\n", "https://host"),
            ("- origin: https://a.example\n  bearer: {env: NOBODY_SET_IT}\n", "NOBODY_SET_IT"),
            ("- origin: https://a.example\n  bearer: {env: SPACED}\n", "a space at an end"),
            ("- origin: https://a.example\n  bearer: {file: nowhere}\n", "nowhere"),
            ("- origin: https://a.example\n  header: {name: Host, value: {env: TOKEN}}\n", "\"Host\""),
            ("- bearer: {env: TOKEN}\n", "missing field `origin`"),
        ] {
            let error = refused(text);
            assert!(error.starts_with("keys.yaml:1:") && error.contains(what), "{text}: {error}");
        }
    }

    #[test]
    fn a_secret_on_a_readable_way_gets_a_warning() {
        let warnings = |origin: &str| {
            read_text(&format!("- origin: {origin}\n  bearer: {{env: TOKEN}}\n")).unwrap().warnings
        };
        assert!(warnings("http://a.example")[0].contains("http://a.example:80 is sent unencrypted"));
        assert_eq!((warnings("http://127.0.0.1:8080").len(), warnings("http://[::1]").len()), (0, 0));
    }

    #[test]
    fn a_file_is_looked_for_beside_the_credentials_and_should_be_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys.yaml");
        let token = folder.path().join("token");
        fs_err::write(&token, "sesame\n").unwrap();
        fs_err::write(&keys, "- origin: https://a.example\n  bearer: {file: token}\n").unwrap();
        for (mode, warnings) in [(0o644, 1), (0o600, 0)] {
            fs_err::set_permissions(&token, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = read(&keys).unwrap();
            assert_eq!((read.credentials.len(), read.warnings.len()), (1, warnings), "{read:?}");
            assert!(read.warnings.iter().all(|warning| warning.contains("chmod 600")), "{read:?}");
        }
    }
}
