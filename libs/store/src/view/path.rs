//! Where a resource's file lies in a view. The mapping is described in the module above.

use std::fmt;
use std::path::Path;

use fixity::Sha256;
use model::ResourceUri;

use super::name::{self, LONGEST, Role};

/// The path of a resource's file, relative to the view's directory: names separated by `/`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ViewPath(String);

/// Where one name is cut, and how much of it is left in each piece.
const CUT: &str = "^_";
const PIECE: usize = 240;
/// Stands for the path where the URI has none.
const NO_PATH: &str = "^~";
/// After the host: the scheme is `https`.
const HTTPS: &str = "https";
/// Folders no host can share, since `+` is escaped in hosts.
const OTHER_URIS: &str = "+uri";
const LONG_URIS: &str = "+long";
/// The longest path that is given; Linux takes 4,096 with the view's directory before it.
const LONGEST_PATH: usize = 1_000;

/// Where the file of `uri` lies.
pub fn path_of(uri: &ResourceUri) -> ViewPath {
    let text = uri.as_str();
    let path = match text.strip_prefix("http://") {
        Some(rest) => hierarchical(rest, 80, ""),
        None => match text.strip_prefix("https://") {
            Some(rest) => hierarchical(rest, 443, HTTPS),
            None => {
                let mut path = OTHER_URIS.to_owned();
                push(&mut path, &name::encode(text, Role::File));
                path
            }
        },
    };
    if path.len() <= LONGEST_PATH {
        return ViewPath(path);
    }
    let digest = Sha256::of(text.as_bytes()).to_string();
    ViewPath(format!("{LONG_URIS}/{}/{digest}", &digest[..2]))
}

impl ViewPath {
    /// The relative path, with `/` between names.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path as the system takes it; relative.
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }

    /// The directory the file lies in. There always is one, the host's at least.
    pub(super) fn directory(&self) -> &str {
        self.0.rsplit_once('/').map_or("", |(directory, _)| directory)
    }

    /// The URI whose file lies here; `None` where only a digest of it is left, or for a path [`path_of`] does not give.
    pub fn uri(&self) -> Option<ResourceUri> {
        let mut names = segments(self.0.split('/'))?.into_iter();
        let top = names.next()?;
        if top == LONG_URIS {
            return None;
        }
        if top == OTHER_URIS {
            return name::decode(&names.next()?)?.parse().ok();
        }
        let (top, scheme) = match top.strip_suffix(HTTPS).and_then(|top| top.strip_suffix('+')) {
            Some(top) => (top, "https"),
            None => (top.as_str(), "http"),
        };
        let mut uri = match top.split_once('+') {
            Some((host, port)) => format!("{scheme}://{}:{port}", name::decode(host)?),
            None => format!("{scheme}://{}", name::decode(top)?),
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
        let uri: ResourceUri = uri.parse().ok()?;
        (path_of(&uri) == *self).then_some(uri)
    }
}

impl fmt::Display for ViewPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The path of what stands after the scheme.
fn hierarchical(rest: &str, default_port: u16, mark: &str) -> String {
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let mut path = String::with_capacity(rest.len() + authority.len() + 16);
    push(&mut path, &top(authority, default_port, mark));
    // A slash in a query or fragment separates nothing.
    let (segments, tail) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    let Some(segments) = segments.strip_prefix('/') else {
        let tail = if tail.is_empty() { String::new() } else { name::encode(tail, Role::File) };
        push(&mut path, &format!("{NO_PATH}{tail}"));
        return path;
    };
    let (directories, last) = match segments.rsplit_once('/') {
        Some((directories, last)) => (Some(directories), last),
        None => (None, segments),
    };
    for segment in directories.into_iter().flat_map(|directories| directories.split('/')) {
        push(&mut path, &name::encode(segment, Role::Directory));
    }
    push(&mut path, &name::encode(&format!("{last}{tail}"), Role::File));
    path
}

/// The top directory. A port is told apart only in its one usual spelling; any other stays part of the host, and is escaped.
fn top(authority: &str, default_port: u16, mark: &str) -> String {
    let split = authority.rsplit_once(':').filter(|(_, port)| {
        let number = port.parse::<u16>();
        number.is_ok_and(|number| number != default_port && number.to_string() == *port)
    });
    let (host, port) = match split {
        Some((host, port)) => (host, port),
        None => (authority, ""),
    };
    // Escaped so that it is neither hidden, nor our own directory, nor taken for the marks behind it.
    let mut top = name::escape(host).replace('+', "^2b");
    if top.starts_with('.') {
        top.replace_range(..1, "^2e");
    }
    for mark in [port, mark].into_iter().filter(|mark| !mark.is_empty()) {
        top.push('+');
        top.push_str(mark);
    }
    top
}

/// Adds a name, in pieces where it is too long for one.
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

/// The names without their cuts.
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
