//! Files and variables, valid and invalid.

use std::io::Write as _;

use secrets::SecretRef;
use tempfile::NamedTempFile;

use super::*;
use crate::telemetry::Format;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    service: FrameConfig,
    store: String,
    #[serde(default)]
    jobs: u16,
    #[serde(default)]
    token: Option<SecretRef>,
    #[serde(default)]
    only: Vec<String>,
}

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// Loads a file together with these variables.
fn load_with<const N: usize>(text: &str, vars: [(&str, &str); N]) -> Result<Config, String> {
    let file = file(text);
    let path = file.path().to_str().unwrap().to_owned();
    let all = Vars::from(vars).with("THRESHER_FETCHER_CONFIG", &path);
    load("fetcher", &all).map_err(|error| error.to_string().replace(&path, "FILE"))
}

#[test]
fn a_renamed_field_is_refused_with_its_new_name() {
    let error = load_with("store: a\nframe:\n  drain_seconds: 5\n", []).unwrap_err();
    assert!(error.contains("`frame` is named `service` now"), "{error}");
}

#[test]
fn file_sets_fields_and_the_rest_has_defaults() {
    let config = load_with(
        "# a comment\nstore: s3://bucket\njobs: 4\nservice:\n  telemetry: {format: json}\n  drain_seconds: 5\ntoken: {env: TOKEN}\n",
        [],
    )
    .unwrap();
    assert_eq!((config.store.as_str(), config.jobs, config.service.drain_seconds), ("s3://bucket", 4, 5));
    assert_eq!(config.service.telemetry.format, Format::Json);
    assert_eq!(config.service.admin, AdminConfig::default());
    assert_eq!(config.token, Some(SecretRef::Env("TOKEN".to_owned())));
}

#[test]
fn variables_go_over_the_file_and_into_groups_that_it_lacks() {
    let config = load_with(
        "store: a\njobs: 4\n",
        [
            ("THRESHER_FETCHER__JOBS", "8"),
            ("THRESHER_FETCHER__SERVICE__ADMIN__LISTEN", "127.0.0.1:1234"),
            ("THRESHER_FETCHER__ONLY", "[x, y]"),
            ("THRESHER_FETCHER__TOKEN__FILE", "/run/secrets/token"),
            ("THRESHER_VERIFIER__JOBS", "nonsense of another service"),
        ],
    )
    .unwrap();
    assert_eq!((config.jobs, config.service.admin.listen.port()), (8, 1234));
    assert_eq!(config.only, ["x", "y"]);
    assert_eq!(config.token, Some(SecretRef::File("/run/secrets/token".into())));
}

#[test]
fn without_a_file_variables_alone_will_do() {
    let config: Config = load("fetcher", &Vars::from([("THRESHER_FETCHER__STORE", "'42'")])).unwrap();
    assert_eq!(config.store, "42");
}

#[test]
fn words_of_yaml_that_look_like_booleans_stay_words() {
    assert_eq!(load_with("store: off", []).unwrap().store, "off");
}

#[test]
fn missing_file_is_named_with_the_variable_that_names_it() {
    let vars = Vars::from([("THRESHER_FETCHER_CONFIG", "/nowhere/fetcher.yaml")]);
    let error = load::<Config>("fetcher", &vars).unwrap_err().to_string();
    assert!(error.starts_with("cannot read the configuration file /nowhere/fetcher.yaml: "), "{error}");
    assert!(error.ends_with("; THRESHER_FETCHER_CONFIG names the file to read"), "{error}");
}

#[test]
fn no_yaml_is_refused_with_file_and_line() {
    let error = load_with("store: a\njobs: [1, 2\n", []).unwrap_err();
    assert!(error.starts_with("the configuration file FILE is not YAML: "), "{error}");
    assert!(error.contains("line"), "{error}");
    assert!(load_with("store: a\nstore: b\n", []).unwrap_err().contains("store"), "a field given twice");
}

#[test]
fn wrong_value_is_refused_with_file_and_field() {
    let error = load_with("store: a\nservice:\n  drain_seconds: soon\n", []).unwrap_err();
    assert_eq!(
        error,
        "field `service.drain_seconds` from FILE: invalid type: string \"soon\", expected u64; correct it, or leave it out where \
         there is a default"
    );
}

#[test]
fn unknown_field_is_refused_with_those_that_exist() {
    let error = load_with("store: a\nservice:\n  drain_secs: 5\n", []).unwrap_err();
    assert!(error.starts_with("field `service.drain_secs` from FILE: unknown field `drain_secs`"), "{error}");
    assert!(error.contains("`drain_seconds`"), "{error}");
}

#[test]
fn missing_field_is_named() {
    let error = load::<Config>("fetcher", &Vars::default()).unwrap_err().to_string();
    assert!(error.contains("missing field `store`"), "{error}");
    assert!(error.contains("THRESHER_FETCHER_CONFIG"), "{error}");
}

#[test]
fn bad_variable_is_blamed_and_not_the_file() {
    let error = load_with("store: a\njobs: 4\n", [("THRESHER_FETCHER__JOBS", "70000")]).unwrap_err();
    assert!(error.starts_with("field `jobs` from environment variable THRESHER_FETCHER__JOBS: "), "{error}");
    let error = load_with("store: a", [("THRESHER_FETCHER__JBOS", "4")]).unwrap_err();
    assert!(error.starts_with("field `jbos` from environment variable THRESHER_FETCHER__JBOS: "), "{error}");
}

#[test]
fn variable_that_cannot_be_a_field_is_refused() {
    for (name, value, why) in [
        ("THRESHER_FETCHER__STORE__KEY", "x", "`store` has no fields of its own"),
        ("THRESHER_FETCHER__SERVICE____X", "x", "a field has no name"),
        ("THRESHER_FETCHER__ONLY", "[x", "its value is not YAML"),
    ] {
        let error = load_with("store: a", [(name, value)]).unwrap_err();
        assert!(error.starts_with(&format!("environment variable {name}: {why}")), "{error}");
    }
}

#[test]
fn secret_in_the_file_is_refused_and_not_repeated() {
    let error = load_with("store: a\ntoken: hunter2\n", []).unwrap_err();
    assert!(
        error.starts_with("field `token` from FILE: write where the secret lies, {env: NAME}"),
        "{error}"
    );
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn variables_do_not_show_their_values() {
    assert!(!format!("{:?}", Vars::from([("TOKEN", "hunter2")])).contains("hunter2"));
}
