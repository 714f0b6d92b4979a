//! Writes a link set in JSON.

use serde_json::{Map, Value, json};

use crate::link::Link;

/// Attributes whose values stand in an array (RFC 9264, 4.2.4): all but these.
const SINGLE: [&str; 3] = ["media", "title", "type"];

/// Writes links as a link set in JSON. Links that follow each other and have the same anchor share a context; a link
/// without an anchor is about `context`.
pub fn to_json(links: &[Link], context: &str) -> String {
    let mut contexts: Vec<(&str, Map<String, Value>)> = Vec::new();
    for link in links {
        let anchor = link.anchor.as_deref().unwrap_or(context);
        if contexts.last().is_none_or(|(known, _)| *known != anchor) {
            contexts.push((anchor, Map::from_iter([("anchor".to_owned(), json!(anchor))])));
        }
        let Some((_, members)) = contexts.last_mut() else { continue };
        // A relation named "anchor" cannot be written.
        for rel in link.relations().filter(|rel| *rel != "anchor") {
            let targets = members.entry(rel).or_insert_with(|| json!([]));
            if let Value::Array(targets) = targets {
                targets.push(target(link));
            }
        }
    }
    let contexts: Vec<_> = contexts.into_iter().map(|(_, members)| Value::Object(members)).collect();
    json!({ "linkset": contexts }).to_string()
}

fn target(link: &Link) -> Value {
    let mut members = Map::from_iter([("href".to_owned(), json!(link.target))]);
    for (name, value) in link.attributes.iter().filter(|(name, _)| name != "href") {
        if SINGLE.contains(&name.as_str()) {
            members.entry(name).or_insert_with(|| json!(value));
        } else if let Value::Array(values) = members.entry(name).or_insert_with(|| json!([])) {
            // An international value is an object (RFC 9264, 4.2.4.2).
            values.push(if name.ends_with('*') { json!({ "value": value }) } else { json!(value) });
        }
    }
    Value::Object(members)
}
