use secrets::Vars;
use service::config;

use super::*;
use crate::hub_limits::HubLimits;

#[test]
fn the_sample_configuration_is_read_and_says_what_the_defaults_say() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/config/publisher.yaml");
    let vars = Vars::default().with("THRESHER_PUBLISHER_CONFIG", sample);
    let config: Config = config::load("publisher", &vars).unwrap();
    let base = config.publisher.base.as_str();
    let plain: DaemonSettings = serde_saphyr::from_str(&format!("base: '{base}'")).unwrap();
    assert!(config.publisher.tokens.is_some());
    assert_eq!(DaemonSettings { tokens: None, ..config.publisher }, plain);
    plain.check().unwrap();
    plain.base().unwrap();
}

#[test]
fn limits_and_hubs_that_make_no_sense_are_refused_by_name() {
    for (line, name) in [
        ("connections: 0", "connections"),
        ("connections_per_client: 100000", "connections_per_client"),
        ("max_concurrent_publications: 0", "max_concurrent_publications"),
        ("turn_seconds: 0", "turn_seconds"),
        ("hubs: ['https://user:hunter2@hub.example/']", "hubs"),
        ("hubs: ['ftp://hub.example/']", "hubs"),
        ("ping_hubs: ['https://user:hunter2@hub.example/']", "ping_hubs"),
        ("ping_hubs: ['ftp://hub.example/']", "ping_hubs"),
        ("hubs: ['https://hub.example/']\nping_hubs: ['https://hub.example/']", "publisher.hubs too"),
        ("redirect_seconds: 59", "redirect_seconds"),
        ("redirect_seconds: 604801", "redirect_seconds"),
        ("contact: archive", "contact"),
        ("own_hub: {base: 'ftp://hub.example/'}", "own_hub.base"),
        ("own_hub: {base: 'https://hub.example/', subscribers: 0}", "own_hub.subscribers"),
        ("own_hub: {base: 'https://hub.example/', hubs_without_subscribers: 0}", "hubs_without_subscribers"),
        ("own_hub: {base: 'https://hub.example/', longest_lease_seconds: 9}", "longest_lease_seconds"),
    ] {
        let text = format!("base: 'https://mirror.example/'\n{line}\n");
        let settings: DaemonSettings = serde_saphyr::from_str(&text).unwrap();
        let said = format!("{:#}", settings.check().unwrap_err());
        assert!(said.contains(name) && !said.contains("hunter2"), "{said}");
    }
}

#[test]
fn readers_are_led_to_a_bucket_where_there_is_one() {
    let read = |text: &str| {
        serde_saphyr::from_str::<DaemonSettings>(&format!("base: 'https://mirror.example/'\n{text}\n"))
    };
    let led = read("redirect_seconds: 900").unwrap();
    led.check().unwrap();
    led.check_redirect("s3://bucket/harvest").unwrap();
    let said = led.check_redirect("/srv/harvest").unwrap_err().to_string();
    assert!(said.contains("redirect_seconds") && said.contains("leave it out"), "{said}");
    read("").unwrap().check_redirect("/srv/harvest").unwrap();
}

#[test]
fn publishers_of_the_same_sources_have_names_that_begin_alike() {
    let name = |text: &str| serde_saphyr::from_str::<DaemonSettings>(text).unwrap().name();
    let plain = name("base: 'https://mirror.example/'");
    assert_eq!(plain, name("base: 'https://mirror.example'\nlisten: 127.0.0.1:1\n"));
    assert_ne!(plain, name("base: 'https://other.example/'"));
    assert_ne!(plain, name("base: 'https://mirror.example/'\nmatch: country=jp\n"));
    let id = control::MemberId::fresh(&plain);
    assert!(id.as_str().starts_with(&plain), "{id}");
}

#[test]
fn a_hub_needs_the_url_at_which_subscribers_reach_it() {
    let read = |text: &str| {
        serde_saphyr::from_str::<DaemonSettings>(&format!("base: 'https://mirror.example/'\n{text}\n"))
    };
    assert!(read("").unwrap().own_hub.is_none());
    assert!(read("own_hub: {subscribers: 5}").unwrap_err().to_string().contains("base"));
    let settings = read("own_hub: {base: 'https://hub.example/', subscribers: 5}").unwrap();
    settings.check().unwrap();
    let limits = settings.own_hub.unwrap().limits();
    assert_eq!((limits.subscribers, limits.per_host), (5, 100));
    assert_eq!(limits.give_up, HubLimits::default().give_up);
    assert_eq!(limits.longest_lease, HubLimits::default().longest_lease);
}

#[test]
fn each_hub_that_is_told_has_its_part_of_the_memory() {
    let bytes = |text: &str| {
        let text = format!("base: 'https://mirror.example/'\n{text}\n");
        serde_saphyr::from_str::<DaemonSettings>(&text).unwrap().hub_bytes()
    };
    assert_eq!(bytes(""), 0);
    let one = bytes("hubs: ['https://a.example/']");
    let two = bytes("hubs: ['https://a.example/']\nping_hubs: ['https://b.example/']");
    let of_hub = 4 * 12 * 1024 * 1024;
    assert!(one > of_hub && two == one + of_hub, "{one}, {two}");
    let own = "own_hub: {base: 'https://mirror.example/'}";
    assert_eq!(bytes(&format!("{own}\nhubs: ['https://a.example/']")), bytes(own) + of_hub);
}
