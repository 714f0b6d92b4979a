//! The spec of a Source as form fields: parsed from a form, and written into one.

use api::{Follow, Spec};
use control::Times;
use jiff::SignedDuration;
use serde_json::{Map, Value, json};

use super::form::Fields;
use crate::api_error::ApiError;

/// Fields that are strings in the API too, under the same names.
const TEXTS: [&str; 21] = [
    "entry",
    "name",
    "title",
    "notes",
    "source_contact",
    "mode",
    "prefer",
    "absent",
    "metadata_prefix",
    "encoding",
    "include",
    "exclude",
    "origins",
    "mirrors",
    "patches",
    "robots",
    "contact",
    "credential",
    "inbox",
    "publish",
    "publish_archive",
];
/// Fields that are numbers in the API.
const NUMBERS: [&str; 6] = [
    "max_deletes_percent",
    "keep_versions",
    "concurrency",
    "requests_per_second",
    "max_body_bytes",
    "follow_max",
];
/// Fields that are lists of strings in the API. The form separates their items by spaces.
const LISTS: [&str; 9] = [
    "only",
    "allow_networks",
    "notify",
    "sets",
    "follow_links",
    "follow_types",
    "follow_rules",
    "publish_networks",
    "publish_sets",
];

/// The field with the labels, an object in the API. The form separates them by spaces.
const LABELS: &str = "labels";

/// Fields that are booleans in the API.
const CHECK_BOXES: [&str; 3] = ["strict", "accept_html", "landing_pages"];

/// Parses a form through the API's own type, so that the same input is refused for the same reasons.
pub(super) fn read(fields: &Fields) -> Result<Spec, ApiError> {
    let mut asked = Map::new();
    for name in TEXTS {
        if let Some(text) = fields.get(name) {
            asked.insert(name.to_owned(), text.into());
        }
    }
    for name in NUMBERS {
        if let Some(number) = number(fields, name)? {
            asked.insert(name.to_owned(), number.into());
        }
    }
    for name in LISTS {
        if let Some(values) = fields.get(name) {
            asked.insert(name.to_owned(), values.split_whitespace().collect());
        }
    }
    if let Some(text) = fields.get(LABELS) {
        asked.insert(LABELS.to_owned(), labels(text)?);
    }
    for name in CHECK_BOXES {
        asked.insert(name.to_owned(), fields.has(name).into());
    }
    asked.insert("enabled".to_owned(), (!fields.has("on_hold")).into());
    if let Some(schedule) = schedule(fields)? {
        asked.insert("schedule".to_owned(), schedule);
    }
    if fields.has("follow") {
        asked.insert("follow".to_owned(), bounds(fields)?);
    }
    if !asked.contains_key("entry") {
        return Err(ApiError::invalid("the entry URL is missing").fields([("entry", "required".to_owned())]));
    }
    serde_json::from_value(Value::Object(asked)).map_err(|error| ApiError::invalid(error.to_string()))
}

fn labels(text: &str) -> Result<Value, ApiError> {
    let refused = |label: &str| {
        let said = format!("{label:?} is no label; write such as country=jp, with spaces between several");
        ApiError::invalid("a label cannot be read").fields([(LABELS, said)])
    };
    let read = |label: &str| -> Result<(String, Value), ApiError> {
        let (key, value) = label.split_once('=').ok_or_else(|| refused(label))?;
        Ok((key.to_owned(), Value::from(value)))
    };
    text.split_whitespace().map(read).collect::<Result<Map<_, _>, _>>().map(Value::Object)
}

fn number(fields: &Fields, name: &str) -> Result<Option<u64>, ApiError> {
    let read = |text: &str| {
        text.parse().map_err(|_| {
            ApiError::invalid("a number cannot be read").fields([(name, format!("{text:?} is no number"))])
        })
    };
    fields.get(name).map(read).transpose()
}

fn schedule(fields: &Fields) -> Result<Option<Value>, ApiError> {
    let times = match fields.get("when") {
        Some("every") => json!({"every_seconds": every(fields)?}),
        Some("cron") => json!({"cron": fields.get("cron").unwrap_or_default()}),
        _ => return Ok(None),
    };
    let mut schedule = json!({ "times": times });
    if let Some(jitter) = number(fields, "jitter_seconds")? {
        schedule["jitter_seconds"] = jitter.into();
    }
    Ok(Some(schedule))
}

/// The interval between two runs, in seconds.
fn every(fields: &Fields) -> Result<u64, ApiError> {
    let refused = |why: String| ApiError::invalid("the interval cannot be read").fields([("every", why)]);
    let text = fields.get("every").ok_or_else(|| refused("required".to_owned()))?;
    let time: SignedDuration =
        text.parse().map_err(|error| refused(format!("{text:?} is no interval such as 6h: {error}")))?;
    time.as_secs().try_into().map_err(|_| refused(format!("{text:?} is negative")))
}

fn bounds(fields: &Fields) -> Result<Value, ApiError> {
    let usual = Follow::default();
    let min = number(fields, "min_seconds")?.unwrap_or(usual.min_seconds);
    let max = number(fields, "max_seconds")?.unwrap_or(usual.max_seconds);
    Ok(json!({"min_seconds": min, "max_seconds": max}))
}

/// The form fields that represent this spec.
pub(super) fn fields(spec: &Spec) -> Fields {
    // The form has the same names as the API, so that a new setting needs a line in one of the tables above.
    let settings = serde_json::to_value(spec).unwrap_or_default();
    let same = TEXTS.iter().chain(&NUMBERS).chain(&LISTS).chain(&CHECK_BOXES).chain([&LABELS]);
    let same = same.filter_map(|name| Some((*name, text(&settings[name])?)));
    let mut fields: Vec<(&str, String)> = same.collect();
    if !spec.enabled {
        fields.push(("on_hold", "on".to_owned()));
    }
    if let Some(schedule) = &spec.schedule {
        fields.extend(match &schedule.times {
            Times::EverySeconds(seconds) => [("when", "every".to_owned()), ("every", time(*seconds))],
            Times::Cron(expression) => [("when", "cron".to_owned()), ("cron", expression.clone())],
        });
        fields.extend(schedule.jitter_seconds.map(|seconds| ("jitter_seconds", seconds.to_string())));
    }
    if let Some(follow) = spec.follow {
        fields.push(("follow", "on".to_owned()));
        fields.push(("min_seconds", follow.min_seconds.to_string()));
        fields.push(("max_seconds", follow.max_seconds.to_string()));
    }
    fields.into_iter().collect()
}

/// A value of the API as the text of a form field; none where the field is empty.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(true) => Some("on".to_owned()),
        Value::Object(labels) => {
            let label =
                |(key, value): (&String, &Value)| format!("{key}={}", value.as_str().unwrap_or_default());
            Some(labels.iter().map(label).collect::<Vec<_>>().join(" "))
        }
        Value::Array(items) => Some(items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")),
        _ => None,
    }
}

/// Formats a duration so that [`every`] can parse it.
fn time(seconds: u64) -> String {
    format!("{:#}", SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use control::{Schedule, SourceSpec};

    use super::*;

    #[test]
    fn the_form_asks_for_what_the_api_understands() {
        let asked = Fields::from([
            ("entry", "https://example.org/"),
            ("when", "every"),
            ("every", "6h"),
            ("absent", "keep"),
            ("keep_versions", "2"),
            ("strict", "on"),
        ]);
        let spec = SourceSpec::from(read(&asked).unwrap());
        spec.check().unwrap();
        assert_eq!(spec.schedule, Some(Schedule::every(6 * 3_600)));
        assert_eq!((spec.absent, spec.keep_versions, spec.strict), (model::Absent::Keep, Some(2), true));
        let plain = read(&Fields::from([("entry", "https://example.org/")])).unwrap();
        assert_eq!(plain, Spec::new("https://example.org/".parse().unwrap()));
        let followed = read(&Fields::from([("entry", "https://example.org/"), ("follow", "on")])).unwrap();
        assert_eq!(followed.follow, Some(Follow::default()));
        SourceSpec::from(followed).check().unwrap();
    }

    #[test]
    fn what_is_wanted_goes_into_a_form_and_back_again() {
        let plain = json!({"entry": "https://example.org/"});
        let every =
            json!({"entry": "https://example.org/", "schedule": {"times": {"every_seconds": 90_061}}});
        let mut all = json!({
            "entry": "https://example.org/", "name": "example.main", "title": "The example", "labels": {"country": "jp", "example.org/tier": ""},
            "notes": "Ask first.", "source_contact": "Ada <ada@example.org>", "enabled": false, "schedule": {"times": {"cron": "0 3 * * *"}, "jitter_seconds": 60},
            "follow": {"min_seconds": 5, "max_seconds": 60}, "mode": "baseline", "prefer": "dump", "absent": "keep",
            "max_deletes_percent": 3, "keep_versions": 2, "metadata_prefix": "mets", "sets": ["col_1", "a:b"], "landing_pages": true, "include": "a", "exclude": "b", "origins": "same", "mirrors": "prefer", "patches": "off", "only": ["type=application/pdf", "collection=https://example.org/c"],
            "follow_links": ["item", "http://t/r"], "follow_types": ["application/pdf"], "follow_max": 5, "strict": true, "accept_html": true, "concurrency": 7,
            "requests_per_second": 9, "robots": "obey", "contact": "mailto:a@example.org", "credential": "one",
            "allow_networks": ["10.1.0.0/16", "fd00:1::7/128"],
            "notify": ["https://index.example.com/", "https://other.example.com/a%20b"],
            "inbox": "https://registry.example.com/inbox/", "max_body_bytes": 1_048_576, "publish": "networks", "publish_networks": ["10.2.0.0/16"],
        });
        // The macro expands only so many fields.
        all["encoding"] = json!("windows-1252");
        all["publish_archive"] = json!("1y");
        all["publish_sets"] = json!(["theses=/theses/", "pdf=[.]pdf$"]);
        all["follow_rules"] = json!([
            "rel=alternate,type=application/pdf,host=f.example.org,profile=http://t/p,max=3,instead",
            "rel=describedby"
        ]);
        for body in [plain, every, all] {
            let spec: Spec = serde_json::from_value(body).unwrap();
            assert_eq!(read(&fields(&spec)).unwrap(), spec);
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_of_its_field() {
        for (name, value) in [
            ("keep_versions", "many"),
            ("every", "x"),
            ("every", "-6h"),
            ("jitter_seconds", "a"),
            ("labels", "jp"),
        ] {
            let mut asked = vec![("entry", "https://example.org/".to_owned()), ("when", "every".to_owned())];
            asked.extend((name != "every").then(|| ("every", "6h".to_owned())));
            asked.push((name, value.to_owned()));
            let refused = read(&asked.into_iter().collect()).unwrap_err();
            assert_eq!(refused.errors()[0].field, name);
        }
        assert_eq!(read(&Fields::default()).unwrap_err().errors()[0].field, "entry");
        assert!(read(&Fields::from([("entry", "no url")])).is_err());
    }
}
