use serde_json::Value;

use super::*;

fn described() -> Value {
    serde_json::to_value(openapi()).unwrap()
}

#[test]
fn the_description_is_openapi_3_1_and_every_operation_wants_a_token() {
    let described = described();
    assert_eq!(described["openapi"], "3.1.0");
    assert_eq!(described["security"][0]["token"], Value::Array(Vec::new()));
    let operations: Vec<&Value> = described["paths"]
        .as_object()
        .unwrap()
        .values()
        .flat_map(|path| path.as_object().unwrap().values())
        .collect();
    assert!(operations.len() >= 6);
    for operation in operations {
        assert!(operation.get("security").is_none(), "{operation}");
        for status in ["401", "403", "429"] {
            let content = &operation["responses"][status]["content"][PROBLEM_JSON]["schema"]["$ref"];
            assert_eq!(content, "#/components/schemas/Problem", "{operation}");
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    fn look(value: &Value, whole: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    let place = reference.strip_prefix('#').expect("a place in the same document");
                    assert!(whole.pointer(place).is_some(), "{reference} leads nowhere");
                }
                fields.values().for_each(|value| look(value, whole));
            }
            Value::Array(items) => items.iter().for_each(|value| look(value, whole)),
            _ => {}
        }
    }
    let described = described();
    look(&described, &described);
}
