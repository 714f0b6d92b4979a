//! The path of a resource's file in a view. The parent module describes the mapping.

use std::fmt;
use std::path::Path;

use fixity::Sha256;
use model::ResourceUri;

use super::hazard::Hazards;
use super::name::{self, LONGEST, Role, Rule, Style};

/// The path of a resource's file, relative to the view's directory: names separated by `/`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ViewPath(String);

/// Marks where a long name is cut into pieces, and the length of a piece.
const CUT: &str = "^_";
const PIECE: usize = 240;
/// The name for a URI without a path.
const NO_PATH: &str = "^~";
/// After the host and port: the scheme is `https`.
const HTTPS: &str = "+https";
/// The port written for `http` URIs without one; `https` is the default.
const HTTP_PORT: u16 = 80;
const HTTPS_PORT: u16 = 443;
/// Folders that no host can have, since `+` is escaped in hosts.
pub(super) const ALSO: &str = "+also";
const OTHER_URIS: &str = "+uri";
const LONG_URIS: &str = "+long";
/// The longest path that is used; Linux allows 4,096 including the view's directory.
const LONGEST_PATH: usize = 1_000;

/// The plain path of `uri`: its file is there unless something else is in the way.
pub fn path_of(uri: &ResourceUri) -> ViewPath {
    ViewPath::by(Rule::Plain, uri)
}

impl ViewPath {
    /// The path of `uri` by a rule; the strict one is unique on all file systems.
    pub(super) fn by(rule: Rule, uri: &ResourceUri) -> Self {
        Self::styled(Style { rule, hazards: Hazards::All }, uri)
    }

    /// The former path of `uri`, from before more names were known to be dangerous; often equal to the
    /// present one.
    pub(super) fn former(rule: Rule, uri: &ResourceUri) -> Self {
        Self::styled(Style { rule, hazards: Hazards::Former }, uri)
    }

    fn styled(style: Style, uri: &ResourceUri) -> Self {
        let path = within_limit(uri.as_str(), style);
        Self(if style.rule == Rule::Strict { format!("{ALSO}/{path}") } else { path })
    }

    /// The relative path, with `/` between names.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path as the system's type; relative.
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }

    /// The directory of the file. It is never empty: the host's at least.
    pub(super) fn directory(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(directory, _)| directory)
    }

    /// The URI of the file at this path; `None` where the path has only its digest.
    pub fn uri(&self) -> Option<ResourceUri> {
        let (rules, path): (&[Rule], _) = match self.0.strip_prefix(ALSO) {
            Some(path) => (&[Rule::Strict], path.strip_prefix('/')?),
            None => (&[Rule::Plain, Rule::Cased], self.0.as_str()),
        };
        let uri: ResourceUri = read(path)?.parse().ok()?;
        rules.iter().any(|rule| Self::by(*rule, &uri) == *self).then_some(uri)
    }
}

impl fmt::Display for ViewPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The path of a URI, or of its digest if that would be too long.
fn within_limit(text: &str, style: Style) -> String {
    let path = if let Some(rest) = text.strip_prefix("https://") {
        hierarchical(rest, HTTPS_PORT, style)
    } else if let Some(rest) = text.strip_prefix("http://") {
        hierarchical(rest, HTTP_PORT, style)
    } else {
        let mut path = OTHER_URIS.to_owned();
        push(&mut path, &name::encode(text, Role::File, style));
        path
    };
    if path.len() <= LONGEST_PATH {
        return path;
    }
    let digest = Sha256::of(text.as_bytes()).to_string();
    format!("{LONG_URIS}/{}/{digest}", &digest[..2])
}

/// The path of the text behind the scheme, which is identified by its default port.
fn hierarchical(rest: &str, default_port: u16, style: Style) -> String {
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let mut path = String::with_capacity(rest.len() + authority.len() + 16);
    push(&mut path, &top(authority, default_port, style));
    // A slash in a query or fragment is no separator.
    let (segments, tail) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let Some(segments) = segments.strip_prefix('/') else {
        let tail = if tail.is_empty() { String::new() } else { name::encode(tail, Role::File, style) };
        push(&mut path, &format!("{NO_PATH}{tail}"));
        return path;
    };
    let (directories, last) = match segments.rsplit_once('/') {
        Some((directories, last)) => (Some(directories), last),
        None => (None, segments),
    };
    for segment in directories.into_iter().flat_map(|directories| directories.split('/')) {
        push(&mut path, &name::encode(segment, Role::Directory, style));
    }
    push(&mut path, &name::encode(&format!("{last}{tail}"), Role::File, style));
    path
}

/// The top directory. A port is recognized only in its usual spelling; otherwise it stays part of the host,
/// and is escaped.
fn top(authority: &str, default_port: u16, style: Style) -> String {
    let split = authority.rsplit_once(':').and_then(|(host, digits)| {
        let port = digits.parse::<u16>().ok()?;
        (port != default_port && port.to_string() == digits).then_some((host, port))
    });
    let host = split.map_or(authority, |(host, _)| host);
    // Escaped so that it is neither hidden, nor our own directory, nor mistaken for the marks behind it.
    let mut top = name::escape(host, style).replace('+', "^2b");
    if top.starts_with('.') {
        top.replace_range(..1, "^2e");
    }
    let is_https = default_port == HTTPS_PORT;
    match split {
        Some((_, port)) if is_https => top.push_str(&format!("+{port}{HTTPS}")),
        Some((_, port)) => top.push_str(&format!("+{port}")),
        None if is_https => {}
        None => top.push_str(&format!("+{HTTP_PORT}")),
    }
    top
}

/// The URI of a path without [`ALSO`].
fn read(path: &str) -> Option<String> {
    let mut names = segments(path.split('/'))?.into_iter();
    let top = names.next()?;
    if top == OTHER_URIS {
        return name::decode(&names.next()?);
    }
    let mut uri = match top.split_once('+') {
        None => format!("https://{}", name::decode(&top)?),
        Some((host, mark)) => {
            let host = name::decode(host)?;
            match mark.strip_suffix(HTTPS) {
                Some(port) => format!("https://{host}:{port}"),
                None if mark.parse() == Ok(HTTP_PORT) => format!("http://{host}"),
                None => format!("http://{host}:{mark}"),
            }
        }
    };
    for segment in names {
        match segment.strip_prefix(NO_PATH) {
            Some("") => {}
            Some(tail) => uri.push_str(&name::decode(tail)?),
            None => {
                uri.push('/');
                uri.push_str(&name::decode(&segment)?);
            }
        }
    }
    Some(uri)
}

/// Adds a name, in pieces if it is too long.
fn push(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('/');
    }
    if name.len() <= LONGEST {
        path.push_str(name);
        return;
    }
    // Names are ASCII, so they can be cut anywhere.
    let mut rest = name;
    while rest.len() > PIECE {
        let (piece, tail) = rest.split_at(PIECE);
        path.push_str(&format!("{piece}{CUT}/{CUT}"));
        rest = tail;
    }
    path.push_str(rest);
}

/// Joins the pieces of names.
fn segments<'a>(names: impl Iterator<Item = &'a str>) -> Option<Vec<String>> {
    let mut segments = Vec::new();
    let mut begun: Option<String> = None;
    for name in names {
        let mut whole = begun.take().unwrap_or_default();
        let name = if whole.is_empty() { name } else { name.strip_prefix(CUT)? };
        match name.strip_suffix(CUT) {
            Some(piece) => {
                whole.push_str(piece);
                begun = Some(whole);
            }
            None => {
                whole.push_str(name);
                segments.push(whole);
            }
        }
    }
    begun.is_none().then_some(segments)
}
