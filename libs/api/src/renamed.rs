//! Fields of requests that have another name now. An old one is refused with the new one's name.

/// The old and the new name of each field.
const RENAMED: [(&str, &str); 7] = [
    ("wanted", "spec"),
    ("continuous", "follow"),
    ("least_seconds", "min_seconds"),
    ("most_seconds", "max_seconds"),
    ("history", "keep_versions"),
    ("about", "kind"),
    ("undo", "unignore"),
];

/// The parser's message on a field, with the new name if the field was renamed.
pub fn with_new_name(message: String) -> String {
    let unknown = message.split_once("unknown field `").and_then(|(_, rest)| rest.split('`').next());
    let renamed = RENAMED.iter().find(|(old, _)| Some(*old) == unknown);
    match renamed {
        Some((old, new)) => format!("`{old}` is named `{new}` now"),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::{Ignore, SourceBatch, Spec};

    use super::with_new_name;

    fn refusal<T: serde::de::DeserializeOwned>(body: Value) -> String {
        let error = serde_json::from_value::<T>(body).err().expect("a refusal");
        with_new_name(error.to_string())
    }

    #[test]
    fn an_old_field_is_refused_with_its_new_name() {
        let entry = "https://example.org/";
        let spec = json!({"entry": entry, "continuous": {"least_seconds": 5, "most_seconds": 60}});
        assert_eq!(refusal::<Spec>(spec), "`continuous` is named `follow` now");
        let spec = json!({"entry": entry, "follow": {"least_seconds": 5, "most_seconds": 60}});
        assert_eq!(refusal::<Spec>(spec), "`least_seconds` is named `min_seconds` now");
        let batch = json!({"sources": [{"wanted": {"entry": entry}}]});
        assert_eq!(refusal::<SourceBatch>(batch), "`wanted` is named `spec` now");
        let ignore = json!({"select": {"all": true}, "undo": true});
        assert_eq!(refusal::<Ignore>(ignore), "`undo` is named `unignore` now");
        let misspelt = refusal::<Spec>(json!({"entry": entry, "shedule": {}}));
        assert!(misspelt.contains("unknown field `shedule`"), "{misspelt}");
    }
}
