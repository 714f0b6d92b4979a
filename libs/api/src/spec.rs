//! The spec of a Source. The API and the control store share it, so that a setting exists once.

pub use control::{PollInterval as Follow, Spec};

#[cfg(test)]
mod tests {
    use control::SourceSpec;
    use serde_json::json;
    use utoipa::PartialSchema as _;

    use super::*;

    #[test]
    fn what_is_left_out_is_what_a_plain_source_has() {
        let given: Spec = serde_json::from_value(json!({"entry": "https://example.org/"})).unwrap();
        assert_eq!(Spec::new("https://example.org/".parse().unwrap()), given);
    }

    #[test]
    fn every_field_goes_there_and_back_again() {
        let mut all = json!({
            "entry": "https://example.org/", "name": "example.main", "title": "The example", "labels": {"country": "jp", "example.org/tier": "1"},
            "notes": "Ask first.", "source_contact": "Ada <ada@example.org>", "enabled": false, "schedule": {"times": {"cron": "0 3 * * *"}, "jitter_seconds": 60},
            "follow": {"min_seconds": 5, "max_seconds": 60}, "mode": "baseline", "prefer": "dump", "absent": "keep",
            "max_deletes_percent": 3, "keep_versions": 2, "metadata_prefix": "mets", "sets": ["col_1", "a:b"], "landing_pages": true, "include": "a", "exclude": "b", "origins": "same", "mirrors": "prefer", "patches": "off", "only": ["type=application/pdf", "collection=https://example.org/c"],
            "follow_links": ["item", "http://t/r"], "follow_types": ["application/pdf"], "follow_max": 5, "strict": true, "accept_html": true, "concurrency": 7,
            "requests_per_second": 9, "robots": "obey", "contact": "mailto:a@example.org", "credential": "one",
            "allow_networks": ["10.1.0.0/16", "fd00:1::7/128"],
            "push": "off", "max_body_bytes": 1_048_576, "notify": ["https://index.example.com/"],
            "inbox": "https://registry.example.com/inbox/", "publish": "networks", "publish_networks": ["10.2.0.0/16"],
        });
        // The macro expands only so many fields.
        all["encoding"] = json!("windows-1252");
        all["publish_archive"] = json!("1y");
        all["publish_sets"] = json!(["theses=/theses/", "pdf=[.]pdf$"]);
        all["follow_rules"] = json!([
            "rel=alternate,type=application/pdf,host=f.example.org,profile=http://t/p,max=3,instead",
            "rel=describedby"
        ]);
        let given: Spec = serde_json::from_value(all.clone()).unwrap();
        assert_eq!(serde_json::to_value(&given).unwrap(), all);
        // The stored form has the same fields, but for one name.
        let spec = SourceSpec::from(given);
        let mut kept = serde_json::to_value(&spec).unwrap();
        let fields = kept.as_object_mut().unwrap();
        fields.remove("id");
        let bounds = fields.remove("continuous").unwrap();
        let follow = json!({"min_seconds": bounds["least_seconds"], "max_seconds": bounds["most_seconds"]});
        fields.insert("follow".to_owned(), follow);
        assert_eq!(kept, all);
    }

    #[test]
    fn the_names_in_the_description_are_those_that_are_understood() {
        let schema = serde_json::to_value(Spec::schema()).unwrap();
        for field in
            ["mode", "prefer", "absent", "origins", "mirrors", "patches", "robots", "push", "publish"]
        {
            for name in schema["properties"][field]["enum"].as_array().unwrap() {
                let body = json!({"entry": "https://example.org/", field: name});
                assert!(serde_json::from_value::<Spec>(body).is_ok(), "{field}: {name}");
            }
        }
    }

    #[test]
    fn names_and_labels_that_break_their_rules_are_refused_by_the_value() {
        let refused = |field: &str, value: serde_json::Value| {
            let body = json!({"entry": "https://example.org/", field: value});
            serde_json::from_value::<Spec>(body).unwrap_err().to_string()
        };
        assert!(refused("name", json!("Zenodo")).contains("\"Zenodo\" is no name of a Source"));
        assert!(refused("labels", json!({"a b": "c"})).contains("\"a b\" is no key of a label"));
        assert!(refused("labels", json!({"a": "b c"})).contains("\"b c\" is no value of a label"));
    }

    #[test]
    fn an_unknown_field_is_refused() {
        let body = json!({"entry": "https://example.org/", "shedule": {}});
        assert!(serde_json::from_value::<Spec>(body).unwrap_err().to_string().contains("shedule"));
    }
}
