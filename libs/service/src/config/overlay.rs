//! Fields from environment variables, which override those of the file.

use std::collections::BTreeMap;

use secrets::Vars;
use serde_json::Value;

use super::{ConfigError, parse};

/// Sets the fields that variables name, and returns which variable set which field.
///
/// After the prefix, `__` separates nested fields: `SERVICE__DRAIN_SECONDS` is `service.drain_seconds`.
pub(super) fn apply(
    fields: &mut Value,
    prefix: &str,
    vars: &Vars,
) -> Result<BTreeMap<String, String>, ConfigError> {
    let mut overridden = BTreeMap::new();
    for (name, rest, text) in vars.under(prefix) {
        let refuse = |why: String| ConfigError::Variable { name: name.to_owned(), why };
        let path: Vec<String> = rest.split("__").map(str::to_ascii_lowercase).collect();
        if path.iter().any(String::is_empty) {
            return Err(refuse("a field has no name".to_owned()));
        }
        let value = parse(text).map_err(|why| refuse(format!("its value is not YAML: {why}")))?;
        set(fields, &path, value).map_err(|at| refuse(format!("`{at}` has no fields of its own")))?;
        overridden.insert(path.join("."), name.to_owned());
    }
    Ok(overridden)
}

/// Sets the field at `path`, or returns the part of the path that is no group of fields.
fn set(fields: &mut Value, path: &[String], value: Value) -> Result<(), String> {
    let mut at = fields;
    for (depth, name) in path.iter().enumerate() {
        if at.is_null() {
            *at = Value::Object(Default::default());
        }
        let Value::Object(group) = at else { return Err(path[..depth].join(".")) };
        at = group.entry(name.clone()).or_insert(Value::Null);
    }
    *at = value;
    Ok(())
}
