use super::*;

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

fn refused(policy: &AddressPolicy, target: &str) -> bool {
    Guard::new(policy.clone()).check(&url(target)).is_err()
}

fn at(addresses: &[&str]) -> Vec<SocketAddr> {
    addresses.iter().map(|address| SocketAddr::new(address.parse().unwrap(), 0)).collect()
}

fn reaches(guard: &Guard, name: &str, addresses: &[&str]) -> Option<Vec<SocketAddr>> {
    guard.reachable(name, 80, at(addresses)).ok()
}

#[test]
fn the_default_lets_everything_pass_by_address_and_by_name() {
    let guard = Guard::new(AddressPolicy::default());
    for target in ["http://127.0.0.1/", "http://169.254.169.254/", "http://[::1]/", "http://example.org/"] {
        assert_eq!(guard.check(&url(target)), Ok(()));
    }
    let all = ["127.0.0.1", "169.254.169.254", "93.184.215.14"];
    assert_eq!(reaches(&guard, "example.org", &all), Some(at(&all)));
    assert_eq!(AddressPolicy::allow_all(), AddressPolicy::default());
}

#[test]
fn addresses_in_urls_are_refused_however_they_are_written() {
    let policy = AddressPolicy::public_only();
    for target in [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.0.0.1:8080/",
        "http://0177.0.0.1/",
        "http://127.0.0.1./",
        "https://10.1.2.3/",
        "http://169.254.169.254/latest/meta-data/",
        "http://0.0.0.0/",
        "http://[::]/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://[fd00::1]/",
        "http://[fe80::1]/",
        "http://224.0.0.1/",
        "http://192.0.2.1/",
        "http://100.64.0.1/",
    ] {
        assert!(refused(&policy, target), "{target}");
    }
    for target in ["http://1.1.1.1/", "http://[2606:4700::1111]/", "http://localhost/", "http://example.org/"]
    {
        assert!(!refused(&policy, target), "{target}");
    }
}

#[test]
fn an_entry_given_as_an_address_is_that_address_at_any_port() {
    let policy = AddressPolicy::public_unless(&url("http://127.0.0.1:8080/a"));
    assert!(!refused(&policy, "http://127.0.0.1/"));
    assert!(!refused(&policy, "https://127.0.0.1:9090/b"));
    for target in ["http://127.0.0.2:8080/", "http://10.0.0.1/", "http://[::1]/"] {
        assert!(refused(&policy, target), "{target}");
    }
    let policy = policy.and_entry(&url("http://[fe80::1]/"));
    assert!(!refused(&policy, "http://[fe80::1]:81/"));
    let policy = policy.and_entry(&url("http://169.254.169.254/"));
    assert!(refused(&policy, "http://169.254.169.254/latest/"), "metadata is never allowed");
}

#[test]
fn a_public_entry_allows_nothing() {
    let policy = AddressPolicy::public_unless(&url("https://example.org/"));
    assert!(refused(&policy, "http://127.0.0.1/"));
    assert_eq!(reaches(&Guard::new(policy), "other.org", &["10.0.0.1"]), None);
}

#[test]
fn private_may_be_allowed_without_this_machine_and_its_cloud() {
    let policy = AddressPolicy::public_only().allow_private();
    for target in ["http://10.0.0.1/", "http://192.168.7.7/", "http://100.64.0.1/", "http://[fd00::1]/"] {
        assert!(!refused(&policy, target), "{target}");
    }
    let rest =
        ["http://127.0.0.1/", "http://169.254.1.1/", "http://100.100.100.200/", "http://[fd00:ec2::254]/"];
    for target in rest {
        assert!(refused(&policy, target), "{target}");
    }
    assert!(!refused(&policy.allow(Loopback), "http://127.0.0.1/"));
}

#[test]
fn of_a_names_addresses_only_the_allowed_are_left() {
    let guard = Guard::new(AddressPolicy::public_only());
    assert_eq!(reaches(&guard, "example.org", &["10.0.0.1", "1.1.1.1", "::1"]), Some(at(&["1.1.1.1"])));
    let refused = guard.reachable("example.org", 80, at(&["10.0.0.1", "::1"])).unwrap_err();
    assert_eq!(refused.to_string(), "10.0.0.1 is a private address");
    assert_eq!(reaches(&guard, "example.org", &[]), Some(Vec::new()));
}

#[test]
fn an_entry_given_as_a_name_keeps_the_addresses_that_it_first_had() {
    let guard = Guard::new(AddressPolicy::public_unless(&url("http://repository.intern/")));
    assert!(reaches(&guard, "repository.intern", &["10.0.0.1", "10.0.0.2"]).is_some());
    assert!(reaches(&guard, "Repository.intern.", &["10.0.0.2"]).is_some(), "one of them");
    assert_eq!(reaches(&guard, "repository.intern", &["10.0.0.3"]), None, "of the same class");
    assert_eq!(reaches(&guard, "repository.intern", &["127.0.0.1"]), None, "of another class");
    assert_eq!(reaches(&guard, "other.intern", &["10.0.0.1"]), None, "of another name");
    let left = reaches(&guard, "repository.intern", &["127.0.0.1", "10.0.0.1"]);
    assert_eq!(left, Some(at(&["10.0.0.1"])));
    let moved = guard.reachable("repository.intern", 80, at(&["8.8.8.8"])).unwrap_err().to_string();
    assert!(
        moved.contains("8.8.8.8 is a public address") && moved.contains("other addresses before"),
        "{moved}"
    );
}

#[test]
fn an_entry_given_as_a_name_has_its_leave_at_its_port_alone() {
    let guard = Guard::new(AddressPolicy::public_unless(&url("http://repository.intern:8080/")));
    let inside = || at(&["10.0.0.1"]);
    assert!(guard.reachable("repository.intern", 8080, inside()).is_ok());
    for port in [80, 443, 9999] {
        let refused = guard.reachable("repository.intern", port, inside()).unwrap_err().to_string();
        assert!(refused.contains("the port of the entry URL"), "{port}: {refused}");
    }
    let usual = Guard::new(AddressPolicy::public_unless(&url("http://repository.intern/")));
    assert!(usual.reachable("repository.intern", 80, inside()).is_ok());
    assert!(usual.reachable("repository.intern", 443, inside()).is_ok(), "it may lead to https");
    assert!(usual.reachable("repository.intern", 81, inside()).is_err());
}

#[test]
fn a_name_with_a_public_address_beside_a_private_one_has_no_leave() {
    let guard = Guard::new(AddressPolicy::public_unless(&url("http://evil.test/")));
    assert_eq!(reaches(&guard, "evil.test", &["127.0.0.1", "8.8.8.8"]), Some(at(&["8.8.8.8"])));
    assert_eq!(reaches(&guard, "evil.test", &["127.0.0.1"]), None);
}

#[test]
fn where_the_operator_allows_the_network_an_entry_may_move_within_it() {
    let policy = AddressPolicy::public_unless(&url("http://repository.intern/"));
    let guard = Guard::new(policy.allow_network("10.0.0.0/8".parse().unwrap()));
    assert!(reaches(&guard, "repository.intern", &["10.0.0.1"]).is_some());
    assert!(reaches(&guard, "repository.intern", &["10.0.0.2"]).is_some());
    assert_eq!(reaches(&guard, "repository.intern", &["127.0.0.1"]), None);
}

#[test]
fn metadata_is_reached_by_no_class_and_no_network() {
    let all = ["0.0.0.0/0", "::/0"].map(|network| network.parse().unwrap());
    let policy = AddressPolicy::public_only().allow_private().allow(Loopback).allow(Metadata);
    let policy = all.into_iter().fold(policy, AddressPolicy::allow_network);
    for address in ["169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16"] {
        assert!(refused(&policy, &format!("http://{address}/")), "{address}");
        assert_eq!(reaches(&Guard::new(policy.clone()), "metadata.example", &[address]), None, "{address}");
    }
    for address in ["fd00:ec2::254", "fd20:ce::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"] {
        assert!(refused(&policy, &format!("http://[{address}]/")), "{address}");
    }
    assert!(!refused(&policy, "http://169.254.1.1/"), "what is beside it is allowed");
    let why = Guard::new(policy).check(&url("http://169.254.169.254/")).unwrap_err().to_string();
    assert!(why.contains("no option allows"), "{why}");
}

#[test]
fn an_entry_that_is_public_at_first_cannot_become_private() {
    let guard = Guard::new(AddressPolicy::public_unless(&url("http://example.org/")));
    assert!(reaches(&guard, "example.org", &["1.1.1.1"]).is_some());
    assert_eq!(reaches(&guard, "example.org", &["10.0.0.1"]), None);
}

#[test]
fn an_entrys_name_leads_to_no_metadata_and_to_no_cable() {
    for address in ["169.254.169.254", "169.254.1.1", "fe80::1", "0.0.0.0", "224.0.0.1"] {
        let guard = Guard::new(AddressPolicy::public_unless(&url("http://example.org/")));
        assert_eq!(reaches(&guard, "example.org", &[address]), None, "{address}");
    }
}

#[test]
fn a_network_is_allowed_to_every_host_and_nothing_beside_it() {
    let network = |text: &str| text.parse::<Network>().unwrap();
    let policy = AddressPolicy::public_only()
        .allow_network(network("10.1.0.0/16"))
        .allow_network(network("127.0.0.2/32"))
        .allow_network(network("fd00:1::/32"));
    for target in
        ["http://10.1.2.3/", "http://127.0.0.2/", "http://[::ffff:127.0.0.2]/", "http://[fd00:1::7]/"]
    {
        assert!(!refused(&policy, target), "{target}");
    }
    for target in
        ["http://10.2.0.1/", "http://127.0.0.1/", "http://[64:ff9b::7f00:2]/", "http://[fd00:2::7]/"]
    {
        assert!(refused(&policy, target), "{target}");
    }
    let guard = Guard::new(policy);
    assert_eq!(reaches(&guard, "inside.example", &["10.2.0.1", "10.1.0.1"]), Some(at(&["10.1.0.1"])));
    assert_eq!(reaches(&guard, "inside.example", &["10.2.0.1"]), None);
}
