//! A file with Sources: one, a list of them, or several documents of either kind.

use std::fmt;
use std::io::Read;
use std::path::Path;

use api::Spec;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Error;
use strsim::levenshtein;

use crate::exit::{Failed, usage};

/// The largest file: far more Sources than a fleet has.
const LARGEST: u64 = 64 * 1024 * 1024;

/// A document: one Source, or a list of them.
struct Document(Vec<Spec>);

/// The text of a file, or of standard input, and its name.
pub(super) fn text(path: &Path) -> Result<(String, String), Failed> {
    let name = path.display().to_string();
    let mut text = String::new();
    let read = match name.as_str() {
        "-" => std::io::stdin().lock().take(LARGEST + 1).read_to_string(&mut text),
        _ => fs_err::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text)),
    };
    let name = if name == "-" { "standard input".to_owned() } else { name };
    let length = read.map_err(|error| usage(format!("{name} cannot be read: {error}")))?;
    if length as u64 > LARGEST {
        return Err(usage(format!("{name} is larger than {LARGEST} bytes; give several files")));
    }
    Ok((name, text))
}

/// The Sources of a file.
///
/// # Errors
/// What is wrong, where, and what to write instead.
pub(super) fn read(name: &str, text: &str) -> Result<Vec<Spec>, String> {
    let options = serde_saphyr::options! { with_snippet: false, strict_booleans: true };
    let documents: Vec<Document> =
        serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
            let place =
                error.location().map_or(String::new(), |at| format!(":{}:{}", at.line(), at.column()));
            format!("{name}{place}: {}", words(&error))
        })?;
    let sources: Vec<Spec> = documents.into_iter().flat_map(|document| document.0).collect();
    if sources.is_empty() {
        return Err(format!("{name} names no Source; begin with `entry: https://…`"));
    }
    Ok(sources)
}

/// The parser's message without the position, which is printed already; for a misspelling, the likely name.
fn words(error: &Error) -> String {
    match error.without_snippet() {
        Error::SerdeUnknownField { field, expected, .. } => {
            let renamed = api::with_new_name(format!("unknown field `{field}`"));
            if renamed.starts_with('`') {
                renamed
            } else {
                format!("there is no field {field:?}{}", nearest(field, expected))
            }
        }
        Error::SerdeUnknownVariant { variant, expected, .. } => {
            format!("{variant:?} is none of what can stand here{}", nearest(variant, expected))
        }
        other => {
            let said = other.to_string();
            said.split(" at line ").next().unwrap_or_default().to_owned()
        }
    }
}

/// The name nearest to a misspelling, or all names if none is near.
fn nearest(slip: &str, names: &[&str]) -> String {
    let near = names.iter().map(|name| (levenshtein(slip, name), *name)).min();
    match near {
        Some((distance, name)) if distance <= 1 + slip.len() / 3 => format!("; did you mean {name}?"),
        _ => format!("; there are {}", names.join(", ")),
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Source, or a list of Sources")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Document, A::Error> {
        Spec::deserialize(MapAccessDeserializer::new(map)).map(|wanted| Document(vec![wanted]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Document, A::Error> {
        let mut all = Vec::new();
        while let Some(wanted) = sequence.next_element()? {
            all.push(wanted);
        }
        Ok(Document(all))
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Document, E> {
        Ok(Document(Vec::new()))
    }
}
