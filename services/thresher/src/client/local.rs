//! The gateway of `thresher serve` on this machine: how its user's commands find it, and what they show it.
//!
//! Where no tokens are configured, `serve` makes one at each start. It writes it into two files of the user, for its
//! gateway and for the commands, which no other user can read. The token ends with the process. So a program of another
//! user that takes the port afterwards learns nothing of use.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use secrets::{Secret, Vars};
use serde::{Deserialize, Serialize};
use url::Url;

use super::endpoint::Endpoint;
use super::profiles::{folder, others_may_read};
use crate::exit::{Failed, usage};

/// The address where a gateway listens by default.
const DEFAULT: &str = "http://127.0.0.1:8080";
/// The file for the commands.
const PROFILE: &str = "serve.yaml";
/// The file for the gateway.
const TOKENS: &str = "serve-tokens.yaml";

/// Where the gateway listens, and its token.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    server: Url,
    token: String,
}

/// A line of the gateway's file of tokens.
#[derive(Serialize)]
struct Token<'a> {
    name: &'a str,
    role: &'a str,
    token: &'a str,
}

/// The files of a running `serve`; they are removed when it ends.
#[derive(Debug)]
pub(crate) struct LocalAccess {
    files: Vec<(PathBuf, String)>,
}

impl LocalAccess {
    /// Makes a token for the gateway at this loopback address, and writes the files.
    ///
    /// # Errors
    /// When the user has no home directory, or it cannot be written.
    pub(crate) fn open(listen: SocketAddr, vars: &Vars) -> anyhow::Result<Self> {
        let folder = folder(vars).context(
            "the gateway has no tokens, and there is no home directory for one (HOME is not set); name a file in \
             gateway.tokens, or leave the gateway out with --only",
        )?;
        let token = format!("{:032x}{:032x}", rand::random::<u128>(), rand::random::<u128>());
        let tokens = serde_saphyr::to_string(&[Token { name: "serve", role: "admin", token: &token }])?;
        let profile = Profile { server: format!("http://{listen}").parse()?, token };
        let files = [(TOKENS, tokens), (PROFILE, serde_saphyr::to_string(&profile)?)];
        let files: Vec<_> = files.into_iter().map(|(name, text)| (folder.join(name), text)).collect();
        for (path, text) in &files {
            write(path, text).with_context(|| {
                let path = path.display();
                format!("cannot write the token of the gateway to {path}; or name a file in gateway.tokens")
            })?;
        }
        Ok(Self { files })
    }

    /// The file of tokens for the gateway.
    pub(crate) fn tokens(&self) -> PathBuf {
        self.files[0].0.clone()
    }
}

impl Drop for LocalAccess {
    fn drop(&mut self) {
        for (path, text) in &self.files {
            // Another `serve` of this user may have replaced it.
            if fs_err::read_to_string(path).is_ok_and(|found| found == *text) {
                let _ = fs_err::remove_file(path);
            }
        }
    }
}

/// Replaces a file by one that only its owner can read.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs_err::create_dir_all(folder)?;
    // A temporary file is readable by its owner only.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path)?;
    Ok(())
}

/// The gateway of this machine, with its token if this user runs it.
pub(super) fn endpoint(vars: &Vars) -> Result<Endpoint, Failed> {
    let default = || Endpoint { is_named: false, ..Endpoint::named(DEFAULT.parse().expect("a URL")) };
    let Some(path) = folder(vars).map(|folder| folder.join(PROFILE)) else { return Ok(default()) };
    let text = match fs_err::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(default()),
        Err(error) => return Err(usage(error)),
    };
    let is_readable = others_may_read(&path);
    let path = path.display();
    if is_readable {
        return Err(usage(format!(
            "{path} holds a token, and other users can read it; remove it, and restart `thresher serve`"
        )));
    }
    // The parser's message could quote the token.
    let Ok(Profile { server, token }) = serde_saphyr::from_str(&text) else {
        return Err(usage(format!("{path} cannot be read; remove it, and restart `thresher serve`")));
    };
    Ok(Endpoint { url: server, token: Some(Secret::new(token)), authority: None, is_named: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(home: &Path) -> Vars {
        Vars::from([("HOME", home.to_str().unwrap())])
    }

    #[test]
    fn commands_find_the_gateway_of_serve_and_its_token_until_it_ends() {
        let home = tempfile::tempdir().unwrap();
        let found = || endpoint(&vars(home.path())).unwrap();
        assert_eq!((found().url.as_str(), found().token), ("http://127.0.0.1:8080/", None));
        let first = LocalAccess::open("127.0.0.1:9090".parse().unwrap(), &vars(home.path())).unwrap();
        assert_eq!(found().url.as_str(), "http://127.0.0.1:9090/");
        let token = found().token.expect("it is written").expose().to_owned();
        let tokens = fs_err::read_to_string(first.tokens()).unwrap();
        assert!(token.len() == 64 && tokens.contains(&token) && tokens.contains("role: admin"), "{tokens}");
        let second = LocalAccess::open("127.0.0.1:9091".parse().unwrap(), &vars(home.path())).unwrap();
        assert_ne!(found().token.expect("it is written").expose(), token, "each start makes a new token");
        drop(first);
        assert_eq!(found().url.as_str(), "http://127.0.0.1:9091/", "the files of the second remain");
        drop(second);
        assert_eq!(found().token, None);
    }

    #[cfg(unix)]
    #[test]
    fn no_other_user_can_read_the_token() {
        use std::os::unix::fs::PermissionsExt as _;
        let home = tempfile::tempdir().unwrap();
        let access = LocalAccess::open("127.0.0.1:9090".parse().unwrap(), &vars(home.path())).unwrap();
        for (path, _) in &access.files {
            assert_eq!(fs_err::metadata(path).unwrap().permissions().mode() & 0o077, 0);
        }
        let profile = &access.files[1].0;
        fs_err::set_permissions(profile, std::fs::Permissions::from_mode(0o644)).unwrap();
        let error = endpoint(&vars(home.path())).map(|_| ()).unwrap_err().error.to_string();
        assert!(error.contains("restart `thresher serve`"), "{error}");
    }

    #[test]
    fn without_a_home_the_message_says_what_to_configure() {
        let error = LocalAccess::open("127.0.0.1:9090".parse().unwrap(), &Vars::default()).unwrap_err();
        assert!(error.to_string().contains("gateway.tokens"), "{error}");
        assert!(endpoint(&Vars::default()).unwrap().token.is_none());
    }
}
